"""All steps of modules are followed, and their learning rates solved for, as those of networks."""

from __future__ import annotations

from typing import Any

import pytest

import tpcalc as tp
from tpcalc.results import Verdict

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def make(n: int) -> nn.Module:
    model = nn.Sequential(
        nn.Linear(4, n, bias=False), nn.Tanh(), nn.Linear(n, n, bias=False), nn.Tanh(),
        nn.Linear(n, 2, bias=False),
    )  # fmt: skip
    nn.init.normal_(model[4].weight, std=3 / n)
    return model


def sgd(model: nn.Module, n: int) -> Any:
    return torch.optim.SGD(tp.torch.param_groups(model, {"0.weight": n, "4.weight": 1 / n}, lr=0.1))


def test_all_steps_are_followed_as_those_of_the_network() -> None:
    @tp.network
    def same(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", init="1/2", rates=("n", 1), name="u")(x))
        h = tp.tanh(t.linear(t.n, t.n, init="n^(-1/2)", name="w")(h))
        return t.linear(t.outputs, t.n, init="3 n^(-1)", rates=("n^(-1)", 1), name="v")(h)

    wanted = tp.check(same, "own", steps=2)
    found = tp.check(make, inputs=torch.ones(3, 4), optimizer=sgd, steps=2)
    assert isinstance(found, Verdict) and isinstance(wanted, Verdict)
    assert found.verdict == wanted.verdict == "feature-learning"
    assert found.valid_for == wanted.valid_for
    assert not [note for note in found.notes if note.startswith("all steps")]


@pytest.mark.parametrize(
    ("optimizer", "powers"), [("sgd(lr=0.1)", ("-1", "0", "1")), ("adam(lr=0.1)", ("0", "1", "1"))]
)
def test_rates_are_solved_for(optimizer: str, powers: tuple[str, ...]) -> None:
    found = tp.solve(make, inputs=torch.ones(3, 4), optimizer=optimizer, steps=1, verify=False)
    assert tuple(map(str, found.steps[0].c)) == powers
