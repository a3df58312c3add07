"""The unrolled training program against a network trained by autograd, weight for weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy_run import draw, is_input, run
from torch_optimizers import LOSSES

import tpcalc as tp
from tpcalc.exponents import as_ex
from tpcalc.functions.expr import const
from tpcalc.passes.template import Template
from tpcalc.passes.unroll import Schedule, unroll
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input, Kind
from tpcalc.training.parameterizations import Exponents, lookup
from tpcalc.training.schedule import Factors
from tpcalc.training.training import Settings

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH = 12
Own = Callable[[str, int], float]


class Net:
    """The same network with explicit weights, trained by autograd."""

    def __init__(
        self,
        inputs: dict[str, np.ndarray],
        dims: tuple[int, int, int],
        bias: str,
        mean: Sequence[Fraction],
    ) -> None:
        d, depth, k = dims
        self.depth, self.bias = depth, bias

        def tensor(array: object) -> torch.Tensor:
            return torch.tensor(np.array(array), dtype=torch.float64, requires_grad=True)

        zero = np.zeros(WIDTH)
        self.weights = [tensor(np.stack([inputs.get(f"W1[{j}]", zero) for j in range(d)], 1))]
        shifts = [float(u) for u in mean] or [0.0] * (depth + 1)
        self.weights += [
            tensor(inputs[f"W{layer}"] + shifts[layer - 1]) for layer in range(2, depth + 1)
        ]
        self.weights.append(tensor(np.stack([inputs[f"W{depth + 1}[{i}]"] for i in range(k)])))
        hidden = [inputs.get(f"b{layer}[0]", zero) for layer in range(1, depth + 1)]
        self.biases = [tensor(b) for b in hidden]
        last = f"b{depth + 1}"
        ends = [last] if k == 1 else [f"{last}[{i}]" for i in range(k)]
        self.biases.append(tensor([inputs.get(name, 0.0) for name in ends]))

    def uses(self, layer: int) -> bool:
        return self.bias == "all" or (self.bias == "first" and layer == 1)

    def scales(self, rule: Exponents) -> tuple[list[float], list[float]]:
        return (
            [WIDTH ** -float(e.constant or 0) for e in rule.a],
            [WIDTH ** -float(e.constant or 0) for e in rule.bias_a],
        )

    def inputs_of(self, x: torch.Tensor, rule: Exponents, act: object) -> list[torch.Tensor]:
        """The input of every layer, then the output."""
        found = [x]
        scales, bias_scales = self.scales(rule)
        for layer, (w, b) in enumerate(zip(self.weights, self.biases, strict=True), start=1):
            x = scales[layer - 1] * (w @ x)
            if self.uses(layer):
                x = x + bias_scales[layer - 1] * b
            if layer <= self.depth:
                x = act(x)  # type: ignore[operator]
            found.append(x)
        return found

    def step(
        self, loss: torch.Tensor, lr: float, rule: Exponents, own: Own = lambda kind, layer: 1.0
    ) -> list[list[torch.Tensor]]:
        """One step; returns the changes of the effective weights and of the effective biases.

        ``own(kind, layer)`` is what ``"weights"`` or ``"biases"`` of a layer have in front of it.
        """
        loss.backward()
        changes: list[list[torch.Tensor]] = []
        with torch.no_grad():
            for kind, group, rates, scales in zip(
                ("weights", "biases"),
                (self.weights, self.biases),
                (rule.c, rule.bias_c),
                self.scales(rule),
                strict=True,
            ):
                changes.append([])
                for layer, w in enumerate(group, start=1):
                    change = torch.zeros_like(w)
                    if w.grad is not None:
                        rate = lr * own(kind, layer)
                        change = -rate * WIDTH ** -float(rates[layer - 1].constant or 0) * w.grad
                        w += change
                        w.grad = None
                    changes[-1].append(scales[layer - 1] * change)
        return changes


CASES = [
    ("mup", "tanh", "mse", 1, "first", 1),
    ("ntk", "relu", "mse", 1, "all", 2),
    ("mup", "gelu", "xent", 3, "all", 3),
    ("ntk", "tanh", "logistic", 1, "none", 2),
    ("ip-llr", "relu", "linear", 1, "first", 1),
    ("mup", "leaky_relu:0.2", "xent", 3, "none", 1),
    ("ip-bias", "gelu", "mse", 1, "all", 2),
    ("ip-bias", "tanh", "xent", 3, "all", 2),
    ("ip-non-centered:2", "tanh", "mse", 1, "all", 2),
    ("ip-non-centered:1/2,-1", "gelu", "xent", 3, "first", 1),
    ("ip:-1,-3/2,-1", "tanh", "linear", 1, "none", 2),
]
ACTS = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "leaky_relu:0.2": lambda z: torch.nn.functional.leaky_relu(z, 0.2),
}


@pytest.mark.parametrize(("param", "act", "loss", "outputs", "bias", "batch"), CASES)
def test_S0_1_4_training_equals_autograd(
    param: str, act: str, loss: str, outputs: int, bias: str, batch: int
) -> None:
    _equals_autograd(param, act, loss, outputs, bias, batch)


GROUPS = {
    "hidden": {"lr": "1/4", "power": "1/2"},
    "bias": {"lr": 3},
    "[24]": {"power": "1/2"},
    "1": {"lr": 3, "power": "-1/3"},
}


def own_rate(kind: str, layer: int) -> float:
    """What GROUPS say, by hand: [24] fits layers 2 and 4, and agrees with hidden about layer 2."""
    factor = 3.0 if kind == "biases" or layer == 1 else 0.25 if layer in (2, 3) else 1.0
    powers = {1: -1 / 3, 2: 1 / 2, 3: 1 / 2 if kind == "weights" else 0, 4: 1 / 2}
    return factor * WIDTH ** powers[layer]


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("warmup:2,cosine", (0, 1 / 2, 1)),
        ("linear", (1, 2 / 3, 1 / 3)),
        ([0.3, 0, "7/5", 9], (0.3, 0, 1.4)),
        (lambda step: Fraction(1, step + 1), (1, 1 / 2, 1 / 3)),
    ],
    ids=["warmup", "linear", "list", "function"],
)
@pytest.mark.parametrize(("loss", "outputs", "batch"), [("mse", 1, 2), ("xent", 3, 1)])
def test_schedules_and_groups_equal_autograd(
    schedule: Factors, factors: tuple[float, ...], loss: str, outputs: int, batch: int
) -> None:
    settings = ("mup", "tanh", loss, outputs, "all", batch)
    _equals_autograd(*settings, {"schedule": schedule, "groups": GROUPS}, factors, own_rate)


def _equals_autograd(
    param: str,
    act: str,
    loss: str,
    outputs: int,
    bias: str,
    batch: int,
    more: Settings | None = None,
    factors: Sequence[float] = (1, 1, 1),
    own: Own = lambda kind, layer: 1.0,
) -> None:
    steps, depth, d = 3, 3, 4
    rng = np.random.default_rng(7)
    xs = rng.standard_normal((5, d))
    if loss == "xent":
        ys = np.eye(outputs)[rng.integers(0, outputs, 5)]
    else:
        ys = rng.choice([-1.0, 1.0], (5, outputs))
    data = tp.Samples(tuple(map(tuple, xs.tolist())), tuple(map(tuple, ys.tolist())))
    query = (0.3, -1.0, 0.5, 0.2)
    program = tp.train(
        tp.MLP(depth, act, bias=bias),
        param,
        data,
        steps=steps,
        lr=Fraction(1, 2),
        loss=loss,
        batch=batch,
        queries=[query],
        watch=("x", "dW_x", "dB"),
        **(more or {}),
    )
    inputs = draw(program, WIDTH, np.random.default_rng(3))
    found = run(program, WIDTH, inputs)
    rule = lookup(param)
    net = Net(inputs, (d, depth, outputs), bias, rule.exponents(depth).mean)
    changes: list[list[torch.Tensor]] = []
    for t in range(steps + 1):
        rows = [(t * batch + i) % 5 for i in range(batch)]
        total = torch.zeros((), dtype=torch.float64)
        for i, x in enumerate([*(xs[r] for r in rows), np.array(query)]):
            *layers, f = net.inputs_of(torch.tensor(x), rule.exponents(depth, t), ACTS[act])
            for layer, wanted in enumerate(layers[1:], start=1):
                x = wanted.detach().numpy()
                np.testing.assert_allclose(found[f"x[{layer},{t},{i}]"], x, 1e-8, 1e-13)
            if t > 0:
                _check_contributions(found, changes, layers, t, i, net)
            for k in range(outputs):
                name = f"f[{t},{i}]" if outputs == 1 else f"f[{t},{i},{k}]"
                assert found[name] == pytest.approx(f[k].item(), rel=1e-9, abs=1e-12), name
            if i < batch:
                total = total + LOSSES[loss](f[None], torch.tensor(ys[rows[i]])[None]) / batch
        if t < steps:
            changes = net.step(total, 0.5 * factors[t], rule.exponents(depth, t), own)


def _check_contributions(
    found: dict[str, object],
    changes: list[list[torch.Tensor]],
    layers: list[torch.Tensor],
    t: int,
    i: int,
    net: Net,
) -> None:
    """Every dW_x[l,t,i] and dB[l,t] against the explicit changes of weights and biases."""
    for layer, (change, shift, x) in enumerate(zip(*changes, layers, strict=True), start=1):
        last = layer == net.depth + 1
        for k in range(len(shift) if last else 1):
            part = slice(k, k + 1) if last else slice(None)
            end = f",{k}" if last and len(shift) > 1 else ""
            wanted = (change @ x).detach().numpy()[part]
            name = f"dW_x[{layer},{t},{i}{end}]"
            np.testing.assert_allclose(found[name], wanted, rtol=1e-8, atol=1e-13, err_msg=name)
            name = f"dB[{layer},{t}{end}]"
            assert (name in found) == net.uses(layer)
            if net.uses(layer):
                np.testing.assert_allclose(
                    found[name], shift.numpy()[part], 1e-8, 1e-13, err_msg=name
                )


def test_an_output_that_another_output_uses() -> None:
    """The gradient of f + f^2, with the seeds 1, is 1 + 2 f times that of f."""
    from tpcalc.passes.backward import backward
    from tpcalc.program.program import Builder

    @tp.program
    def twice(t: tp.Tracer) -> None:
        f = t.inner(t.gaussian("u"), tp.tanh(t.gaussian("v")))
        t.output("f", f)
        t.output("g", f * f)

    program = twice.build()
    builder = Builder.copy(program)
    vector = next(i for i, n in enumerate(program.nodes) if is_input(n, Kind.VECTOR))
    outputs = [(program.ref(name), None) for name in ("f", "g")]
    builder.output("du", backward(builder, outputs, [vector]).adjoints[vector])
    inputs = draw(program, WIDTH, np.random.default_rng(1))
    found = run(builder.finish(), WIDTH, inputs)
    u, v = inputs["u[0]"], np.tanh(inputs["v[0]"])
    np.testing.assert_allclose(found["du"], (1 + 2 * (u @ v) / WIDTH) * v / WIDTH, rtol=1e-12)


def test_a_matrix_between_dimensions_of_different_sizes_is_trained() -> None:
    """W has 2 n rows and 3 n columns; its products go both ways in what comes after an update."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        t.dim("m", 2)
        t.dim("k", 3)
        inner = tp.tanh(t.scalar("x", 1) * t.gaussian("v", dim="k"))
        w = t.matrix("W", "m", "k")
        h = 2 * (tp.n**-0.5 * (w @ inner))
        t.output("W_x[1]", h)
        back = tp.n**-0.5 * (w.T @ (t.gaussian("u", dim="m") * tp.tanh(h)))
        t.output("f", t.inner(tp.tanh(back), t.gaussian("r", dim="k")))

    program = made.build()
    (matrix,) = (ref for ref, n in enumerate(program.nodes) if is_input(n, Kind.MATRIX))
    family = replace(program.families["W"], mark=Mark("1", "hidden", 1))
    nodes = tuple(Input(family) if r == matrix else n for r, n in enumerate(program.nodes))
    template = Template(replace(program, nodes=nodes), ("x",))
    (part,) = template.contributions
    assert (part.kind, part.watch.ref, part.parameters) == (
        "dW_x",
        program.ref("W_x[1]"),
        {matrix},
    )
    batches = (((1.0,),), ((-0.5,),), ((2.0,),))
    schedule = Schedule(batches, batches, (), (const(-1),), lambda mark, t: (1, as_ex(-1)))
    unrolled = unroll(template, schedule).cells
    rng = np.random.default_rng(0)
    shapes = {"W": (2 * WIDTH, 3 * WIDTH), "v[0]": 3 * WIDTH, "u[0]": 2 * WIDTH, "r[0]": 3 * WIDTH}
    inputs = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    found = run(unrolled, WIDTH, inputs)
    v, u, r = (torch.tensor(inputs[name]) for name in ("v[0]", "u[0]", "r[0]"))
    w, change = (
        torch.tensor(inputs["W"], requires_grad=True),
        torch.zeros(shapes["W"], dtype=torch.float64),
    )
    for step, ((data,),) in enumerate(batches):
        images = 2 * WIDTH**-0.5 * (torch.stack((w, change)) @ torch.tanh(data * v))
        out = torch.tanh(WIDTH**-0.5 * (w.T @ (u * torch.tanh(images[0])))) @ r / (3 * WIDTH)
        assert found[f"f[{step},0]"] == pytest.approx(out.item(), rel=1e-9), step
        if step:
            moved = found[f"dW_x[1,{step},0]"]
            np.testing.assert_allclose(moved, images[1].detach().numpy(), rtol=1e-8, atol=1e-13)
        change = WIDTH * torch.autograd.grad(out, w)[0]
        w = (w + change).detach().requires_grad_()
