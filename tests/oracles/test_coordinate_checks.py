"""Real modules of the cases do what is derived of them, and one that is wired wrongly does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules.case import Case, clip
from modules.cases import CASES
from torch import nn

import tpcalc as tp
from tpcalc.errors import UsageError

pytestmark = pytest.mark.torch
SOME = ("10", "17")
MANY = ("1", "3", "7", "8", "13", "14", "16", "19", "21", "22", "44 adam", "44 sgd", "50", "54",
        "24", "25", "28", "35", "38", "42 adam", "O8", "O34")  # fmt: skip

# Slopes of outputs at the start, and of one late term, whose intervals are wider than a power
# allows with as many seeds as there are: said to be open, and no row of these differs.
OPEN = ("44 sgd", "O8", "O34")


def check(case: str, **how: Any) -> None:
    own: Case = CASES[case]
    given: dict[str, Any] = {"rule": own.text} if own.text else {}
    if own.before_step is clip:
        given["clip"] = 0.05
    found = tp.coordinate_check(
        own.make, inputs=own.inputs, optimizer=own.optimizer, **given, **how
    )
    assert found.code == ("open" if case in OPEN else "agrees"), found.facts
    assert sum(row.word == "agrees" for row in found.rows) >= 10


@pytest.mark.parametrize("case", SOME)
def test_modules_do_what_is_derived(case: str) -> None:
    check(case, widths=(64, 128, 256), steps=2)


@pytest.mark.slow
@pytest.mark.parametrize("case", MANY)
def test_modules_of_many_cases_do_what_is_derived(case: str) -> None:
    check(case)


def test_what_runs_is_compared_with_what_is_read() -> None:
    """A hook that a graph does not show multiplies a gradient by the width."""

    def make(n: int) -> nn.Module:
        module = nn.Sequential(nn.Linear(4, n), nn.Tanh(), nn.Linear(n, 1, bias=False))
        nn.init.normal_(module[2].weight, std=1 / n)
        module[0].weight.register_hook(lambda gradient: gradient * n)
        return module

    def sgd(module: nn.Module, n: int) -> Any:
        first, last = [*module[0].parameters()], [*module[2].parameters()]
        return torch.optim.SGD([{"params": first, "lr": 0.1 * n}, {"params": last, "lr": 0.1 / n}])

    x = torch.ones(2, 4) / 2
    found = tp.coordinate_check(make, inputs=x, optimizer=sgd, widths=(32, 64, 128), steps=1)
    assert (found.code, found.recipe) == ("differs", "feature learning")
    assert {row.name for row in found.rows if row.word == "differs"} >= {"0.weight"}


def test_texts_train_no_modules() -> None:
    with pytest.raises(UsageError, match="an optimizer of torch"):
        tp.coordinate_check(lambda n: nn.Linear(4, n), inputs=torch.ones(2, 4), optimizer="sgd")


def test_what_makes_modules_needs_inputs() -> None:
    with pytest.raises(UsageError, match="inputs="):
        tp.first_order(lambda n: nn.Linear(4, n))
    with pytest.raises(UsageError, match="has its own"):
        tp.check(tp.MLP(2), "mup", inputs=torch.ones(2, 4))
