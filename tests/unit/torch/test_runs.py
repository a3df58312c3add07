"""First steps of real modules: closed forms, what is measured where, and nothing left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tpcalc.errors import UsageError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tpcalc.torch.runs import Spot, Trial  # noqa: E402

pytestmark = pytest.mark.torch
X = torch.arange(8.0).reshape(2, 4) / 8


def plain(n: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, n), nn.Tanh(), nn.Linear(n, 3))


def sgd(module: nn.Module, n: int) -> Any:
    return torch.optim.SGD(module.parameters(), lr=0.1)


def adamw(module: nn.Module, n: int) -> Any:
    return torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.5)


def measured(
    make: Any, optimizer: Any = sgd, inputs: Any = X, steps: int = 3, rate: float = 1.0
) -> dict[Spot, dict[int, tuple[float, ...]]]:
    found = Trial(make, optimizer, inputs, steps).runs((8, 16), (0, 1), rate, None)
    return {
        spot: {n: tuple(one.sizes[spot] for one in ran) for n, ran in found.items()}
        for spot in found[8][0].sizes
    }


def test_terms_of_gradient_descent_are_squares_of_gradients() -> None:
    found = measured(plain, steps=2)
    for step in (1, 2):
        for name, count in (("0.weight", 4), ("2.weight", 3)):
            for n in (8, 16):
                for term, gradient, moved in zip(
                    *(found[Spot(what, name, step)][n] for what in ("term", "gradient", "step")),
                    strict=True,
                ):
                    assert moved == pytest.approx(0.1 * gradient, rel=1e-9)
                    assert term == pytest.approx(0.1 * count * n * gradient**2, rel=1e-9)


def test_terms_are_what_a_step_adds_to_the_probe() -> None:
    """Of a bias of the output alone, in front of which are the numbers of the probe."""

    class Bias(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(3))

        def forward(self, x: Any) -> Any:
            return x + self.bias

    found = measured(lambda n: Bias(), inputs=torch.zeros(1, 3), steps=1)
    (change,) = set(found[Spot("change", "", 1)][8])
    (gradient,) = set(found[Spot("gradient", "bias", 1)][8])
    assert found[Spot("start", "", 0)] == {8: (0.0, 0.0), 16: (0.0, 0.0)}
    assert change == pytest.approx(0.1 * gradient)
    assert found[Spot("term", "bias", 1)][16][0] == pytest.approx(0.1 * 3 * gradient**2)


def test_decoupled_decay_is_in_what_moves_and_not_in_the_term() -> None:
    decayed = measured(plain, adamw, steps=1)
    free = measured(plain, lambda m, n: torch.optim.Adam(m.parameters(), lr=0.01), steps=1)
    same = [spot for spot in free if spot.what != "change"]
    assert [decayed[spot] for spot in same] == [free[spot] for spot in same]
    assert decayed[Spot("change", "0", 1)] != free[Spot("change", "0", 1)]


def test_every_call_of_a_module_is_measured_and_a_tie_once() -> None:
    class Twice(nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.inp, self.out = nn.Linear(4, n), nn.Linear(n, 4)
            self.act = nn.ReLU(inplace=True)
            self.out.weight = nn.Parameter(self.inp.weight.T.clone())
            self.again = self.out

        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = self.out(self.act(self.inp(x)))
            return x

    found = measured(Twice, steps=1)
    names = {spot.name for spot in found}
    calls = {"inp", "act", "out"}
    assert names == {"", "inp.weight", "inp.bias", "out.weight", "out.bias"} | calls | {
        f"{name}@1" for name in calls
    }
    # The activation works in place, on what was returned to it.
    assert found[Spot("start", "inp", 0)] != found[Spot("start", "act", 0)]
    assert found[Spot("start", "out@1", 0)] == found[Spot("start", "", 0)]


@dataclass
class Told:
    ids: Any
    logits: Any


class Wrapped(nn.Module):
    """Inputs by keyword, an output in a record."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(5, n), nn.Linear(n, 2)
        self.drop = nn.Dropout(0.5)
        self.frozen = nn.Parameter(torch.ones(n), requires_grad=False)

    def forward(self, ids: Any, scale: float) -> Told:
        h = self.drop(self.table(ids)) * self.frozen
        return Told(ids, {"all": (self.head(scale * h), None)})


def test_inputs_have_names_and_outputs_are_records() -> None:
    ids = torch.tensor([[0, 1], [3, 3]])
    by_name = measured(Wrapped, inputs={"ids": ids, "scale": 2.0})
    assert by_name == measured(Wrapped, inputs=lambda n: (ids.numpy(), 2.0))
    assert Spot("term", "frozen", 1) not in by_name
    # Masks are the same at every step: outputs change by what steps are, and not by half.
    slow = measured(Wrapped, inputs=(ids, 2.0), rate=1e-6)
    assert max(slow[Spot("change", "drop", 3)][8]) < 1e-5


class Attention(nn.Module):
    """Two heads of size 4, with scores of numbers that are known."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.out = way, nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        q = x.reshape(2, 2, 4)
        if self.way == "whole":
            return self.out(
                nn.functional.scaled_dot_product_attention(q, q[:1], q[:1], enable_gqa=True)
            )
        scores = q @ q[:1].mT / 2
        if self.way == "masked":
            scores = scores + torch.tensor([[0.0, -1e9], [0.0, 0.0]])
        return self.out(torch.softmax(scores, -1) @ q[:1])


def test_what_softmaxes_read_is_measured() -> None:
    """Products of queries and keys over the root of the size of a head, but for masked ones."""
    x = torch.arange(16.0) / 8
    q = x.double().reshape(2, 2, 4)
    scores = q @ q[:1].mT / 2
    rms = {}
    for way in ("whole", "written", "masked"):
        found = Trial(lambda n, way=way: Attention(way), sgd, x, 1).run(8, 0, 1.0).sizes
        rms[way] = found[Spot("start", ":scores", 0)]
        assert found[Spot("change", ":scores", 1)] == 0
    assert (
        rms["whole"]
        == pytest.approx(rms["written"])
        == pytest.approx(scores.square().mean() ** 0.5)
    )
    scores[:, 0, 1] = 0
    assert rms["masked"] == pytest.approx(scores.square().mean() ** 0.5)


def test_several_optimizers_step_and_what_is_in_none_does_not() -> None:
    found = measured(
        plain,
        lambda m, n: [torch.optim.SGD(m[0].parameters(), lr=0.1), torch.optim.Adam([m[2].bias])],
    )
    still = found[Spot("step", "2.weight", 1)]
    assert still == found[Spot("term", "2.weight", 1)] == {8: (0.0, 0.0), 16: (0.0, 0.0)}
    assert min(found[Spot("step", "2.bias", 1)][8] + found[Spot("step", "0.bias", 1)][8]) > 0


def test_rates_are_such_that_steps_are_nearly_linear() -> None:
    """From rates that explode and from rates that do nothing."""
    rates = []
    for lr in (1e6, 1e-6):
        trial = Trial(plain, lambda m, n, lr=lr: torch.optim.SGD(m.parameters(), lr=lr), X)
        rate = trial.small_rate(8, 0)
        rates.append(lr * rate)
        sizes = trial.run(8, 0, rate).sizes
        changes = [(own.name, size) for own, size in sizes.items() if own.what == "change"]
        largest = max(size / sizes[Spot("start", name, 0)] for name, size in changes)
        assert 0.02 < largest < 0.2
    assert rates[0] == pytest.approx(rates[1], rel=2)


def test_what_is_done_before_a_step_is_not_done_to_gradients_of_terms() -> None:
    """Halved gradients make half steps; terms are products with those of the loss."""
    half: list[int] = []

    def clip(module: nn.Module, n: int) -> None:
        half.append(n)
        for own in module.parameters():
            own.grad /= 2

    free = Trial(plain, sgd, X, 1).run(8, 0, 1.0).sizes
    clipped = Trial(plain, sgd, X, 1, before_step=clip).run(8, 0, 1.0).sizes
    assert half == [8]
    for what, factor in (("gradient", 1), ("step", 2), ("term", 2)):
        spot = Spot(what, "0.weight", 1)
        assert factor * clipped[spot] == pytest.approx(free[spot], rel=1e-12)


def test_nothing_is_left_behind() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    told: list[float] = []
    Trial(plain, adamw, X).runs((8, 16), (0, 1), 1.0, lambda done, _: told.append(done))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_default_dtype() == torch.float32
    assert measured(plain, adamw) == measured(plain, adamw)
    assert told == pytest.approx([1 / 4, 1 / 2, 3 / 4, 1])


class Cast(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp = nn.Linear(4, n)

    def forward(self, x: Any) -> Any:
        return self.inp(x.float())


class Routed(nn.Module):
    """Rows above 0 go through a map, which is pushed there by the first step."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.gate, self.map = nn.Parameter(torch.zeros(1)), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        rows = x[(x[:, 0] * self.gate).abs() > 1e-12]
        return self.map(rows).sum() + self.gate


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda n: nn.Linear(4, n), r"widths 8 and 16, differ: outputs \(2, 8\), \(2, 16\)"),
        (
            lambda n: nn.Sequential(nn.Linear(4, 4), *(nn.Tanh() for _ in range(n // 8))),
            "differ: one has '2'",
        ),
        (lambda n: nn.Linear(4, 2).requires_grad_(False), "no numbers that its parameters"),
        (Cast, "does not run in float64"),
        (Routed, "calls of 'map' depend on data: after step 1"),
    ],
)
def test_what_cannot_be_measured(make: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        measured(make)


@pytest.mark.gpu
def test_sizes_on_a_device_are_those_without() -> None:
    both = [Trial(plain, adamw, X, 2, device).run(8, 0, 1.0).sizes for device in ("cpu", "cuda")]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
