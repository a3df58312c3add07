"""Texts that classes of torch are read as: their steps are those that torch takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tpcalc.functions.tape import evaluate
from tpcalc.torch.family import family
from tpcalc.torch.optimizers.reading import CLASSES
from tpcalc.torch.optimizers.recipe import read_recipe
from tpcalc.training.optimizers import Optimizer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RATE = 0.07
SHAPES = {"square": (4, 4), "tall": (6, 3), "flat": (2, 5), "vector": (5,)}
optim = torch.optim
# By case: a class, its settings, and the steps that its text is the rule of.
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "plain": ("SGD", {}, 3),
    "decay alone": ("SGD", {"weight_decay": 0.3}, 3),
    "momentum": ("SGD", {"momentum": 0.8, "weight_decay": 0.3}, 3),
    "nesterov": ("SGD", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.3}, 3),
    "dampening": ("SGD", {"momentum": 0.8, "dampening": 0.4}, 1),
    "upwards": ("SGD", {"momentum": 0.8, "maximize": True, "weight_decay": 0.1}, 3),
    "Adam": ("Adam", {"betas": (0.8, 0.95), "eps": 1e-3}, 3),
    "coupled": ("Adam", {"weight_decay": 0.3}, 3),
    "decoupled": ("Adam", {"weight_decay": 0.3, "decoupled_weight_decay": True}, 3),
    "AdamW": ("AdamW", {"weight_decay": 0.3, "maximize": True}, 3),
    "AMSGrad": ("Adam", {"amsgrad": True, "weight_decay": 0.3}, 1),
    "AMSGrad, decoupled": ("AdamW", {"amsgrad": True}, 1),
    "NAdam": ("NAdam", {"weight_decay": 0.3, "momentum_decay": 0.02}, 3),
    "NAdam, decoupled": ("NAdam", {"weight_decay": 0.3, "decoupled_weight_decay": True}, 3),
    "RAdam": ("RAdam", {"weight_decay": 0.3}, 8),
    "RAdam, decoupled": ("RAdam", {"weight_decay": 0.3, "decoupled_weight_decay": True}, 8),
    "Adamax": ("Adamax", {"weight_decay": 0.3, "eps": 1e-3}, 1),
    "SparseAdam": ("SparseAdam", {"eps": 1e-3}, 1),
    "Adadelta": ("Adadelta", {"weight_decay": 0.3, "eps": 1e-3}, 3),
    "Adagrad": ("Adagrad", {"weight_decay": 0.3, "eps": 1e-3}, 3),
    "Adagrad, slower": ("Adagrad", {"lr_decay": 0.3}, 1),
    "RMSprop": ("RMSprop", {"alpha": 0.8}, 3),
    "RMSprop, decay": ("RMSprop", {"alpha": 0.8, "weight_decay": 0.3}, 3),
    "RMSprop, momentum": ("RMSprop", {"alpha": 0.8, "momentum": 0.5, "eps": 1e-3}, 3),
    "RMSprop, centered": ("RMSprop", {"alpha": 0.8, "momentum": 0.5, "centered": True}, 3),
    "ASGD": ("ASGD", {"lambd": 0.2}, 1),
    "Rprop": ("Rprop", {}, 1),
    "Adafactor": ("Adafactor", {"weight_decay": 0.3}, 3),
    "Adafactor, small": ("Adafactor", {"beta2_decay": -0.6, "d": 1.5, "eps": (None, 2.0)}, 3),
}


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """NAdam keeps a product of numbers in the default format."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Some(torch.nn.Module):
    """Parameters of some shapes, the same at all widths but for one more."""

    def __init__(self, shapes: dict[str, tuple[int, ...]], n: int = 0) -> None:
        super().__init__()
        shapes = {**shapes, "wide": (n, 1)} if n else shapes
        draw = torch.Generator().manual_seed(3)
        for name, shape in shapes.items():
            value = torch.randn(shape, generator=draw, dtype=torch.float64)
            self.register_parameter(name, torch.nn.Parameter(value))


def optimizers(make: Callable[[Any], Any], shapes: dict[str, tuple[int, ...]] = SHAPES) -> Any:
    """Parameters, the torch optimizer, and the text of each parameter."""
    recipe = read_recipe(make, family(lambda n: Some(shapes, n), (8, 16, 24)))
    model = Some(shapes)
    named = {name: recipe.groups[name].get("optimizer", recipe.optimizer) for name in shapes}
    return dict(model.named_parameters()), make(model), named


def agree(make: Callable[[Any], Any], steps: int, shapes: Any = SHAPES) -> None:
    """Steps of texts with gradients of three seeds are those of torch."""
    weights, optimizer, texts = optimizers(make, shapes)
    states = {name: {"w": weight.detach().numpy().copy()} for name, weight in weights.items()}
    draw = np.random.default_rng(5)
    for step in range(1, steps + 1):
        for name, weight in weights.items():
            gradient = draw.standard_normal(weight.shape)
            weight.grad = torch.from_numpy(gradient.copy())
            if isinstance(optimizer, optim.SparseAdam):
                weight.grad = weight.grad.to_sparse(1)
            states[name] = stepped(texts[name], states[name], gradient, step)
        optimizer.step()
        for name, weight in weights.items():
            np.testing.assert_allclose(
                weight.detach().numpy(), states[name]["w"], rtol=1e-10, atol=1e-10, err_msg=name
            )


def stepped(own: Optimizer, state: dict[str, Any], gradient: Any, step: int) -> dict[str, Any]:
    """A step of a text: its own lines where it is entrywise, its formulas in numpy otherwise."""
    numbers = {name: float(number) for name, (number, _) in own.settings.items()}
    parts = {**dict.fromkeys(own.parts, np.zeros_like(gradient)), **state, "g": gradient}
    if not own.whole:
        for name, fn in own.lines(step, numbers):
            parts[name] = evaluate(fn, [parts[part] for part in own.parts], [RATE])
        return parts
    rows, cols = gradient.shape if gradient.ndim == 2 else (gradient.size, 1)
    known = {**numbers, **FUNCTIONS, "t": step, "lr": RATE, "rows": rows, "cols": cols}
    for line in filter(str.strip, own.program.splitlines()):
        name, _, formula = (piece.strip() for piece in line.partition("="))
        formula = re.sub(r"(?<=[\w)])\s+(?=[\w(])", "*", formula).replace("^", "**")
        parts[name] = eval(formula, known, parts)
    return parts


def polar(x: Any) -> Any:
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return left @ right


def factored(x: Any) -> Any:
    """A vector has no factors."""
    means = (x.mean(axis, keepdims=True) for axis in (1, 0)) if x.ndim > 1 else (x, x.mean())
    rows, cols = means
    return rows * cols / x.mean()


FUNCTIONS = {
    "sqrt": np.sqrt,
    "sign": np.sign,
    "abs": np.abs,
    "max": np.maximum,
    "norm": np.linalg.norm,
    "rms": lambda x: np.sqrt((x**2).mean()),
    "ratio": lambda above, below: above / below if above and below else 1.0,
    "polar": polar,
    "factored": factored,
}


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_torch(case: str) -> None:
    name, settings, steps = CASES[case]
    agree(lambda model: getattr(optim, name)(model.parameters(), lr=RATE, **settings), steps)


@pytest.mark.parametrize("factor", [None, "original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon(factor: str | None, nesterov: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Newton-Schulz steps that end at the polar factor, in float64."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.double)
    settings = {"ns_coefficients": (1.5, -0.5, 0.0), "ns_steps": 60, "adjust_lr_fn": factor}
    shapes = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}
    agree(
        lambda model: optim.Muon(
            model.parameters(), lr=RATE, weight_decay=0.3, nesterov=nesterov, **settings
        ),
        3 if nesterov else 1,
        shapes,
    )


# ------------------------------------------------------------------ classes of other packages


class Foreign(optim.Optimizer):  # type: ignore[misc]
    """A step that a test writes, as a class of a package that is not here."""

    def __init__(self, parameters: Any, **settings: Any) -> None:
        super().__init__(parameters, settings)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                weight.sub_(self.move(weight, weight.grad, group))

    def move(self, w: Any, g: Any, group: dict[str, Any]) -> Any:
        raise NotImplementedError


def lion(w: Any, g: Any, group: Any) -> Any:
    return group["lr"] * (group["weight_decay"] * w + g.sign())


def lamb(w: Any, g: Any, group: Any) -> Any:
    update = g / (g.abs() + group["eps"]) + group["weight_decay"] * w
    adapts = group["weight_decay"] or group["always_adapt"]
    return group["lr"] * update * (w.norm() / update.norm() if adapts else 1)


def lars(w: Any, g: Any, group: Any) -> Any:
    decay = group["weight_decay"]
    adapts = decay or group["always_adapt"]
    share = group["trust_coeff"] * w.norm() / (g.norm() + decay * w.norm()) if adapts else 1
    return group["lr"] * share * (g + decay * w)


def adam_or_muon(w: Any, g: Any, group: Any) -> Any:
    own = g / (g.abs() + group.get("eps", 0))
    if group["use_muon"]:
        left, _, right = torch.linalg.svd(g, full_matrices=False)
        own = left @ right * max(1, g.shape[0] / g.shape[1]) ** 0.5
    return group["lr"] * (own + group["weight_decay"] * w)


def foreign(package: str, name: str, move: Any) -> Any:
    """A class of a package."""
    return type(name, (Foreign,), {"__module__": package, "move": lambda self, *own: move(*own)})


BETAS = {"betas": (0.9, 0.99), "eps": 1e-3}
ALWAYS = {"bias_correction": True, "grad_averaging": True, "max_grad_norm": None}
OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Lion": (foreign("lion_pytorch.x", "Lion", lion), {"betas": (0.9, 0.99)}),
    "LAMB": (foreign("timm.optim.lamb", "Lamb", lamb), {**BETAS, **ALWAYS}),
    "LARS": (foreign("timm.optim", "Lars", lars), {"momentum": 0.9, "trust_coeff": 0.02}),
}


@pytest.mark.parametrize("decay", [0, 0.3])
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("case", OTHERS)
def test_other_packages(case: str, always: bool, decay: float) -> None:
    kind, settings = OTHERS[case]
    own = {"lr": RATE, "weight_decay": decay, "always_adapt": always and case != "Lion"}
    agree(lambda model: kind(model.parameters(), **settings, **own), 1)


def test_groups_of_muon_and_adam() -> None:
    kind = foreign("muon", "SingleDeviceMuonWithAuxAdam", adam_or_muon)

    def make(model: Any) -> Any:
        own = {"lr": RATE, "weight_decay": 0.3}
        muon = {"params": [model.tall, model.square], "momentum": 0.95, "use_muon": True, **own}
        rest = [model.flat, model.vector, *([model.wide] if hasattr(model, "wide") else [])]
        adam = {"params": rest, "betas": (0.9, 0.95), "eps": 1e-3, "use_muon": False, **own}
        return kind([muon, adam])

    agree(make, 1)


def test_all_classes_of_torch_are_known() -> None:
    made = {
        name
        for name, kind in vars(optim).items()
        if isinstance(kind, type)
        and issubclass(kind, optim.Optimizer)
        and kind is not optim.Optimizer
    }
    assert made <= set(CLASSES)
