"""Recipes of torch optimizers: powers of rates and settings, lines, groups, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.torch.family import family
from tpcalc.torch.groups import init_, param_groups
from tpcalc.torch.optimizers.recipe import Recipe, read_recipe
from tpcalc.training.optimizer_sizes import Entries
from tpcalc.training.optimizers import lookup

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

optim, nn = torch.optim, torch.nn
schedulers = optim.lr_scheduler
HERE = "test_recipes.py:"
WIDTHS = (64, 128, 192, 320)


class Net(nn.Module):  # type: ignore[misc]
    """Three maps, the last one without a bias."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.embed, self.hidden = nn.Linear(3, n), nn.Linear(n, n)
        self.head = nn.Linear(n, 2, bias=False)


NET = family(Net)


def read(make: Any, own: Any = NET, **more: Any) -> Recipe:
    return read_recipe(make, own, **more)


def all_of(model: Any, kind: Any = optim.Adam, **settings: Any) -> Any:
    return kind(model.parameters(), **settings)


# ------------------------------------------------------------------------------- what is read


def mup(model: Any, n: int) -> Any:
    """Hidden rates of n^-1, a decay that makes up for it, an eps that falls."""
    rest = [model.embed.weight, model.embed.bias, model.hidden.bias, model.head.weight]
    hidden = {"params": [model.hidden.weight], "lr": 0.01 * 64 / n, "weight_decay": 0.1 * n / 64}
    return optim.AdamW([hidden, {"params": rest, "weight_decay": 0}], lr=0.01, eps=1e-8 / n)


def test_powers_of_rates_and_settings() -> None:
    found = read(mup)
    assert found.optimizer.name == "adamw" and found.notes == ()
    hidden = dict(found.groups["hidden.weight"])
    own: Any = hidden.pop("optimizer")
    assert hidden == {"lr": Fraction(16, 25), "power": -1}
    assert own.values["decay"] == "1/640 n^(1)"
    assert [str(power) for _, power in own.settings.values()] == ["0", "0", "-1", "1"]
    for name in ("embed.weight", "embed.bias", "hidden.bias", "head.weight"):
        assert found.groups[name] == {"lr": Fraction(1, 100), "power": 0}
        assert found.group_of[name] == "AdamW group 1 (lr=0.01, weight_decay=0)"
        assert found.lines[name].startswith(HERE)
    assert found.group_of["hidden.weight"] == "AdamW group 0 (lr=0.002, weight_decay=0.5)"


def test_rates_with_roots_and_tensors() -> None:
    found = read(lambda model, n: all_of(model, lr=torch.tensor(0.5 / n**0.5, dtype=torch.float64)))
    assert found.groups["head.weight"]["power"] == Fraction(-1, 2)
    assert float(found.groups["head.weight"]["lr"]) == pytest.approx(0.5, rel=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("many", [list, tuple, lambda two: dict(zip("ab", two, strict=True))])
def test_several_optimizers(many: Callable[[Any], Any]) -> None:
    """Muon is named for what it trains, whatever its role is."""

    def make(model: Any, n: int) -> Any:
        matrices = [model.hidden.weight, model.head.weight, model.embed.weight]
        muon = optim.Muon(matrices, lr=0.02, weight_decay=0)
        adam = optim.AdamW([model.embed.bias, model.hidden.bias], lr=0.01)
        return many([muon, adam])

    found = read(make)
    named = {name: own.get("optimizer") for name, own in found.groups.items()}
    assert found.optimizer.name == "muon"
    assert {name for name, own in named.items() if own.name == "muon"} == {  # type: ignore[attr-defined]
        "hidden.weight",
        "head.weight",
        "embed.weight",
    }
    assert "Newton-Schulz" in found.notes[0]
    assert found.lines["embed.bias"] != found.lines["embed.weight"]
    assert found.group_of["embed.bias"] == "AdamW group 0"


def test_texts() -> None:
    found = read("adamw(lr=3e-4 n^-1, decay=0.1)", clip=1)
    assert found.optimizer == lookup("adamw(decay=0.1)").with_settings(clip=1)
    own = found.groups["head.weight"]
    assert (own["lr"], str(own["power"])) == (Fraction(3, 10000), "-1")
    assert read("muon").groups == {} and read(lookup("muon")).optimizer == lookup("muon")
    text = "optimizer mine(b=1/2)\nm = b m + g\nw = w - lr m"
    assert read(text).optimizer == lookup(text)
    none = read(None)
    assert none.optimizer == lookup("adam") and "one learning rate" in none.notes[0]


def test_clipping() -> None:
    """The norm is that of all gradients together: all optimizers have it."""
    found = read(mup, clip=0.5)
    assert found.optimizer.values["clip"] == 0.5
    own: Any = found.groups["hidden.weight"]["optimizer"]
    at = Entries(Fraction(-1), sides=2, norm=Fraction(1, 2))
    assert own.values["clip"] == 0.5
    sgd = read(lambda model: all_of(model, optim.SGD, lr=0.1), clip=1).optimizer
    assert sgd.first(at).size == Fraction(-3, 2)


def test_schedulers() -> None:
    """A warm-up has set the rate of the first step to 0: what it leads to is read."""

    def warm(model: Any, n: int, first: float = 0.0) -> Any:
        made = all_of(model, lr=64 / n)
        schedulers.LambdaLR(made, lambda step: first + step)
        return made

    found = read(warm)
    assert found.groups["head.weight"] == {"lr": 64, "power": -1}
    assert "starts at 0" in found.notes[0]
    found = read(lambda model, n: warm(model, n, 0.5))
    assert found.groups["head.weight"] == {"lr": 32, "power": -1}
    assert "sets the first rate" in found.notes[0]


def test_what_is_left_alone() -> None:
    """Frozen parameters in a group are left out; trained ones in none have the rate 0."""

    def frozen(n: int) -> Any:
        model = Net(n)
        model.embed.bias.requires_grad_(False)
        return model

    def make(model: Any, n: int) -> Any:
        return optim.SGD([model.embed.bias, model.embed.weight, model.head.weight], lr=1)

    found = read(make, family(frozen))
    assert "embed.bias" not in found.groups
    assert found.groups["hidden.weight"] == {"lr": 0} == found.groups["hidden.bias"]
    assert found.notes == (
        "without a group or a gradient, so not trained: hidden.weight, hidden.bias",
        "in a group, but not trained: embed.bias",
    )


def test_functions_of_the_model_with_numbers_of_their_own() -> None:
    """A second argument is the width where it has no value, or is called so."""

    def make(model: Any, lr: float = 0.5) -> Any:
        return all_of(model, optim.SGD, lr=lr)

    def wide(model: Any, width: int = 3, **own: Any) -> Any:
        return all_of(model, optim.SGD, lr=1 / width)

    assert read(make).groups["head.weight"] == {"lr": Fraction(1, 2), "power": 0}
    assert read(wide).groups["head.weight"] == {"lr": 1, "power": -1}


def test_ties() -> None:
    def tied(n: int) -> Any:
        model = nn.ModuleDict({"embed": nn.Embedding(5, n), "head": nn.Linear(n, 5, bias=False)})
        model["head"].weight = model["embed"].weight
        return model

    assert set(read(lambda model: all_of(model), family(tied)).groups) == {"embed.weight"}


def test_subclasses_are_read_from_their_groups() -> None:
    class MuAdam(optim.Adam):  # type: ignore[misc, name-defined]
        def __init__(self, parameters: Any, n: int) -> None:
            super().__init__(parameters, lr=1 / n)

    def make(model: Any, n: int) -> Any:
        return MuAdam(model.parameters(), n)

    found = read(make)
    assert found.lines["head.weight"] == f"{HERE}{make.__code__.co_firstlineno + 1}"
    assert found.optimizer.name == "adam" and found.groups["head.weight"]["power"] == -1
    assert found.group_of["head.weight"] == "MuAdam group 0"


def test_a_rule_for_a_class_of_a_script() -> None:
    """Its numbers and rates are those of its groups."""

    def make(model: Any, n: int) -> Any:
        rest = [own for name, own in model.named_parameters() if name != "hidden.weight"]
        return Lion([{"params": [model.hidden.weight], "lr": 1 / n}, {"params": rest}])

    found = read(make, rule="lion(b2=1/2)", clip=1)
    assert found.optimizer == lookup("lion(b2=99/100, decay=1/10)").with_settings(clip=1)
    assert [own["power"] for own in found.groups.values()] == [0, 0, -1, 0, 0]
    assert found.notes == ("Lion: its steps are read as lion",)
    found = read(lambda model: Stepping(model.parameters()), rule="sgd")
    assert found.optimizer == lookup("sgd")


def test_settings_that_say_nothing_of_a_step() -> None:
    def make(model: Any, n: int) -> Any:
        one = {"params": [("head", model.head.weight)], "name": "head", "of": n % 3}
        rest = [(name, own) for name, own in model.named_parameters() if name != "head.weight"]
        return optim.Adam([one, {"params": rest, "extra": object()}], lr=0.1, foreach=True)

    found = read(make)
    assert found.notes == () and found.group_of["head.weight"] == "Adam group 0 (name=head)"


def test_notes() -> None:
    def hooked(model: Any, n: int) -> Any:
        made = all_of(model, optim.SGD, lr=1, momentum=0.9, dampening=0.5)
        made.register_step_pre_hook(lambda *own: None)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        made.step()
        return made

    words = " / ".join(read(hooked, family(Net)).notes)
    assert "dampening of SGD" in words and "hooks" in words and "a state" in words


def test_groups_are_those_of_a_run() -> None:
    """Rates n^-1 of hidden weights and of the readout are right, one of the input is not."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="embed.weight", init=1)(x)
        h = t.linear(t.n, t.n, name="hidden.weight", init="n^(-1/2)")(tp.relu(h))
        return t.linear(t.outputs, t.n, name="head.weight", init="n^-1")(tp.relu(h))

    def bare(n: int) -> Any:
        made = Net(n)
        made.embed.bias = made.hidden.bias = None
        return made

    found = read(lambda model, n: all_of(model, lr=1 / n), family(bare))
    run = tp.Training(net, "own", optimizer=found.optimizer, groups=found.groups)
    rows = {row.name: (str(row.rate), row.word) for row in tp.first_order(run).rows}
    assert rows == {
        "embed.weight": ("-1", "frozen"),
        "hidden.weight": ("-1", "learns"),
        "head.weight": ("-1", "learns"),
    }


# ------------------------------------------------------------------------------ what is refused


class Stepping(optim.Adam):  # type: ignore[misc, name-defined]
    def step(self, closure: Any = None) -> None: ...


class Lion(optim.Optimizer):  # type: ignore[misc, name-defined]
    """A Lion of a script, whose step is not known."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(
            parameters, {"lr": 1, "betas": (0.9, 0.99), "weight_decay": 0.1, "more": 3}
        )


def twice(model: Any, n: int) -> Any:
    return [all_of(model, lr=1), optim.SGD([model.head.weight], lr=1)]


def by_size(model: Any, n: int) -> Any:
    return optim.SGD([p for p in model.parameters() if p.numel() < 30_000], lr=1)


def by_kind(model: Any, n: int) -> Any:
    return all_of(model, optim.Adam if n > 64 else optim.SGD, lr=1)


def broken(model: Any, n: int) -> Any:
    return optim.SGD(model.parameters(), lr=1 / (n - 64))


REFUSED: dict[str, tuple[Any, str]] = {
    "a switch": (
        lambda model, n: all_of(model, lr=1, amsgrad=n > 64),
        "amsgrad of embed.weight is False, True, True, True at n = 64, 128, 192, 320",
    ),
    "two optimizers": (twice, rf"head.weight is in two .* Adam \({HERE}.* and SGD"),
    "groups by size": (by_size, "hidden.weight is in a group at n = 64, 128 alone"),
    "two classes": (by_kind, "the optimizer of embed.weight is SGD, Adam, Adam, Adam"),
    "another model": (
        lambda model, n: all_of(Net(n), lr=1),
        r"Adam has a parameter of shape \(64, 3\) that is not of the model at n = 64",
    ),
    "an error": (broken, rf"{HERE}\d+: .* n = 64 .*ZeroDivisionError: .*optimizer.model"),
    "a scheduler": (
        lambda model, n: schedulers.StepLR(all_of(model, lr=1), 3),
        rf"{HERE}\d+: the scheduler StepLR stands where an optimizer.*Return the optimizer",
    ),
    "nothing": (lambda model, n: None, "NoneType stands where an optimizer"),
    "an empty list": (lambda model, n: [], "list stands where"),
    "groups": (lambda model, n: [{"params": []}], "dict stands where"),
    "a class": (optim.Adam, "the class Adam stands .*lambda model, n: Adam.model.par"),
    "an optimizer": (all_of(Net(64), lr=1), "Adam stands where.*Write optimizer.model, n"),
    "a number": (3, "int stands where"),
    "a closure": (
        lambda model, n: all_of(model, optim.LBFGS),
        rf"{HERE}\d+: LBFGS searches along a line with a closure",
    ),
    "a step of its own": (
        lambda model, n: Stepping(model.parameters()),
        rf"{HERE}\d+: Stepping, made of Adam, has a step of its own.*rule='optimizer mine",
    ),
    "a class of a script": (
        lambda model, n: Lion(model.parameters()),
        "it is not known what a step of the optimizer Lion is",
    ),
    "a setting": (
        lambda model, n: all_of(model, optim.Adagrad, initial_accumulator_value=0.1),
        "Adagrad has no text with initial_accumulator_value",
    ),
    "nothing that is trained": (
        lambda model, n: optim.SGD([nn.Parameter(torch.ones(1)).requires_grad_(False)], lr=1),
        "is not of the model",
    ),
}
OTHERS: dict[str, tuple[Any, type[TpcalcError], str]] = {
    "a logarithm": (
        lambda model, n: all_of(model, lr=math.log(n)),
        ScaleError,
        rf"{HERE}\d+: lr of embed.weight is .* changes with the logarithm",
    ),
    "no power": (
        lambda model, n: all_of(model, lr=1, weight_decay=[0, 1, 0, 2][WIDTHS.index(n)]),
        ScaleError,
        "weight_decay of embed.weight is 0, 1, 0, 2",
    ),
    "a text": ("adamm(lr=1)", UnknownName, "'adamm'"),
    "a setting of a text": ("adam(dekay=1)", UnknownName, "'dekay'.*'decay'"),
    "a rate": ("adam(lr=x)", StudyError, "lr of adam must be a number"),
}
ALL = {**{case: (make, UsageError, words) for case, (make, words) in REFUSED.items()}, **OTHERS}


@pytest.mark.parametrize("case", ALL)
def test_what_is_refused(case: str) -> None:
    make, kind, words = ALL[case]
    before = optim.Optimizer.__init__
    with pytest.raises(kind, match=f"(?s){words}"):
        read(make)
    assert optim.Optimizer.__init__ is before  # lines are recorded while it is read alone


# ------------------------------------------------------------------------------- in a script


def test_groups_of_a_script_are_what_is_read() -> None:
    """Rates of a suggestion, handed to torch and read again."""

    def make(model: Any, n: int) -> Any:
        rates = {"hidden.weight": 64 / n, "head.weight": 64 / n, "embed.bias": 2}
        decay = {"hidden.weight": n / 640}
        groups = param_groups(model, rates, 0.5, weight_decay=decay, betas=(0.8, 0.9))
        assert sum(len(own["params"]) for own in groups) == 5
        return optim.AdamW(groups)

    found = read(make)
    rates = {name: (own["lr"], own["power"]) for name, own in found.groups.items()}
    assert rates == {
        "embed.weight": (Fraction(1, 2), 0),
        "embed.bias": (1, 0),
        "hidden.weight": (32, -1),
        "hidden.bias": (Fraction(1, 2), 0),
        "head.weight": (32, -1),
    }
    own: Any = found.groups["hidden.weight"]["optimizer"]
    assert own.values["decay"] == "1/640 n^(1)" and own.values["b1"] == "4/5"


def test_groups_of_ties_and_of_what_is_frozen() -> None:
    model = Net(4)
    model.head.weight = nn.Parameter(torch.zeros(4, 4))
    model.hidden.weight = model.head.weight
    model.embed.weight.requires_grad_(False)
    groups = param_groups(model, {"hidden.weight": 3, "head.weight": 3}, 1)
    assert [(own["lr"], len(own["params"])) for own in groups] == [(1, 2), (3, 1)]
    with pytest.raises(UsageError, match=r"embed.weight needs no gradient"):
        param_groups(model, {"embed.weight": 2}, 1)
    with pytest.raises(UsageError, match=r"head.weight has another name too, with the factor 3"):
        param_groups(model, {"hidden.weight": 3, "head.weight": 4}, 1)
    with pytest.raises(UnknownName, match=r"no parameter of the model called 'haed.weight'.*head"):
        param_groups(model, {"haed.weight": 3}, 1)
    with pytest.raises(UsageError, match=r"the factor of the rate of head.weight is 0"):
        param_groups(model, {"head.weight": 0}, 1)


def test_inits_are_rescaled_once() -> None:
    model = Net(4)
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    with pytest.raises(UsageError, match=r"the factor of head.weight is nan"):
        init_(model, {"embed.weight": 2, "head.weight": math.nan})
    init_(model, {"head.weight": 0.5, "embed.bias": 0})
    for name, tensor in model.named_parameters():
        factor = {"head.weight": 0.5, "embed.bias": 0}.get(name, 1)
        assert torch.equal(tensor, factor * before[name]), name
    with pytest.raises(UsageError, match="rescaled before, and would be twice"):
        init_(model, {"head.weight": 0.5})
