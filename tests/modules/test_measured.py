"""Coordinate checks of modules whose powers are known: words, facts, seeds, bad input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

from modules.case import Case, Power
from modules.cases import CASES
from modules.mlp_cases import MATRICES
from modules.parametrized import MLP
from tpcalc.errors import UsageError
from tpcalc.questions.coordinate_check import coordinates
from tpcalc.results import Exponent, ModuleCheck
from tpcalc.results.exponent import ZERO
from tpcalc.torch.runs import Spot, Trial

pytestmark = pytest.mark.torch
Hull = tuple[Exponent, Exponent]
OUTPUT, INP = Spot("start", "", 0), Spot("term", "inp.weight", 1)


def exponent(power: float) -> Exponent:
    return ZERO if power == -inf else Exponent.number(Fraction(power))


def hull(power: Power) -> Hull:
    """A power, or the two between which it lies; -oo below: a bound."""
    low, high = power if isinstance(power, tuple) else (power, power)
    return exponent(low), exponent(high)


def terms(case: Case) -> dict[Spot, Hull]:
    """What the first step of each parameter adds, and the second where it is another; scores."""
    first = {Spot("term", name, 1): hull(power) for name, power in case.output.items()}
    scores = {"score": Spot("start", ":scores", 0), "score change": Spot("change", ":scores", 1)}
    first |= {spot: hull(case.also[name]) for name, spot in scores.items() if name in case.also}
    return first | {Spot("term", name, 2): hull(power) for name, power in case.later.items()}


def checked(case: Case, predicted: Mapping[Spot, Hull] | None = None, **how: Any) -> ModuleCheck:
    known = terms(case) if predicted is None else predicted
    steps = max((1, *(spot.step for spot in known)))
    trial = Trial(case.make, case.optimizer, case.reads, steps=steps, before_step=case.before_step)
    return coordinates(trial, known, **how)


FEW = ("3", "10", "17")
# By a later step the sums of zero starts have moved, and not the scores: n^(-1/2)/rate steps.
LATE = {name for name, case in CASES.items() if case.later} - {"44 adam", "44 sgd"}


@pytest.mark.parametrize(
    "name",
    [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in FEW)],
)
def test_code_does_what_its_recipe_says(name: str) -> None:
    case = replace(CASES[name], later={}) if name in LATE else CASES[name]
    # Of a second step of gradient descent terms are of the fourth order in what is random.
    wide = {"widths": (128, 256, 512, 1024)} if name == "44 sgd" else {}
    found = checked(case, recipe=case.verdict, **wide)
    assert found.code == "agrees", found.facts
    number = len(terms(case))
    assert found.facts == (f"{number} of {number} sizes have the powers that are derived",)
    assert found.recipe == case.verdict


MUP = CASES["10"]


def test_a_rate_that_is_not_scaled_names_its_parameters() -> None:
    found = checked(replace(MUP, optimizer=CASES["13"].optimizer))
    assert found.code == "differs"
    words = {name: found["term", name, 1].word for name in MATRICES}
    assert [name for name, word in words.items() if word == "differs"] == ["h1.weight", "h2.weight"]
    assert words["inp.weight"] == words["out.weight"] == "agrees"
    first, second = found.facts
    assert first.startswith("what step 1 of h1.weight adds to the output has slope ")
    assert first.endswith(", where n^0 is derived")
    assert "h2.weight" in second


def test_a_factor_that_is_forgotten_shows_at_the_start() -> None:
    """The recipe divides by n what a readout of order one gives."""
    known = terms(CASES["11"]) | {OUTPUT: hull(-0.5)}
    case = replace(CASES["11"], make=lambda n: MLP(n, b=(0, 0.5, 0.5, 0)))
    found = checked(case, known, lines={"out.weight": "net.py:7", "": "net.py:9"})
    assert found.code == "differs"
    assert found.facts[0].startswith(
        "the output of the module at the start (net.py:9) has slope 0."
    )
    row = found["term", "out.weight", 1]
    assert (row.word, row.module, row.line) == ("differs", "Linear", "net.py:7")
    assert found["start", "", 0].module == "MLP"


def test_a_readout_that_starts_at_0_moves_alone_first() -> None:
    case = CASES["44 adam"]
    found = checked(case)
    assert found.code == "agrees", found.facts
    for name in MATRICES[:-1]:
        row = found["term", name, 1]
        assert (row.is_zero, set(row.measured.sizes), row.powers) == (True, {0.0}, "0")
        assert not found["term", name, 2].is_zero
    assert found["start", "", 0].is_zero
    wrong = checked(case, {INP: hull(0)}, widths=(16, 32), seeds=2)
    assert wrong.code == "differs"
    assert wrong.facts[0].endswith(" is 0, where n^0 is derived")


def test_of_a_bound_what_lies_below_it_agrees() -> None:
    narrow: Any = {"widths": (64, 256)}
    assert checked(MUP, {INP: hull((-inf, 1)), OUTPUT: hull((-1, 0))}, **narrow).code == "agrees"
    found = checked(MUP, {INP: hull((-inf, -1))}, **narrow)
    assert found.code == "differs"
    assert found.facts[0].endswith("at most n^-1 is derived")


def test_what_nothing_is_derived_of_is_measured_alone() -> None:
    found = checked(MUP, {}, widths=(64, 256))
    assert (found.code, found.facts) == (
        "open",
        ("no powers are derived of what was measured",),
    )
    assert {row.word for row in found.rows} == {""}
    slope = found["term", "out.weight", 1].measured.slope
    assert slope == pytest.approx(0, abs=0.1)


def test_what_is_open_has_more_seeds() -> None:
    """A slope beside the edge of what agrees."""
    few: Any = {"widths": (16, 64), "seeds": 3}
    edge = {INP: hull(0.25)}
    found = checked(MUP, edge, **few)
    assert (found.code, found.seeds) == ("open", 12)
    assert found.rows != checked(MUP, edge, **few, seed=1).rows
    flat = {Spot("step", "inp.weight", 1): hull(0)}
    told = checked(MUP, flat, **few)
    assert (told.code, told.seeds) == ("agrees", 3)
    assert told == checked(MUP, flat, **few)


class Bent(nn.Module):
    """n^(-2) + 1/100 is n^0 from n = 10 on."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.size, self.one = 1 / n**2 + 0.01, nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.size * self.one * x


def test_a_curve_that_bends_to_what_is_derived_is_open() -> None:
    case = Case("", Bent, (torch.ones(1, 2),), optimizer=lambda m, n: SGD(m.parameters()))
    found = checked(case, {OUTPUT: hull(0)}, widths=(2, 16, 128), seeds=2)
    row = found["start", "", 0]
    assert row.last is not None and row.measured.slope is not None
    assert row.measured.slope < -0.5 < row.last
    assert (found.code, found.seeds) == ("open", 2)
    assert "between the two widest" in found.facts[0]
    assert checked(case, {OUTPUT: hull(1)}, widths=(2, 16, 128), seeds=2).code == "differs"


def test_numbers_that_leave_their_range_are_open() -> None:
    case = Case("", MLP, MUP.reads, optimizer=lambda m, n: SGD(m.parameters(), lr=1e200))
    found = checked(case, {Spot("term", "inp.weight", 2): hull(0)}, widths=(8, 16), seeds=2, rate=1)
    assert found.code == "open"
    assert found.facts[0].endswith("leaves the range of numbers")


@pytest.mark.parametrize(
    ("predicted", "settings", "what"),
    [
        ({}, {"widths": (64,)}, "two widths or more"),
        ({}, {"seeds": 1}, "seeds"),
        (
            {Spot("term", "W1", 1): hull(0)},
            {"widths": (8, 16)},
            "what step 1 of W1 adds to the output is not measured",
        ),
    ],
)
def test_bad_input(predicted: dict[Spot, Hull], settings: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        checked(MUP, predicted, **settings)
