"""One-sided verdicts: what bounds decide and what needs a leading term."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tpcalc.analyses.verdicts import Answer, explodes, judgement, moves
from tpcalc.limit.scales import Scale
from tpcalc.orders import Ex
from tpcalc.orders.chamber import Chamber

ONE, UP, DOWN = Fraction(0), Fraction(1, 2), Fraction(-1, 2)
SIGN = Chamber().sign


@pytest.mark.parametrize(
    ("size", "grows", "stays"),
    [
        (Scale(UP, node=3), True, True),
        (Scale(ONE, node=3), False, True),
        (Scale(DOWN, node=3), False, False),
        (Scale(UP, bound=True), None, None),
        (Scale(ONE, bound=True), False, None),
        (Scale(ONE, bound=True, strict=True), False, False),
        (Scale(DOWN, bound=True), False, False),
        (Scale(None, certain=True), False, False),
        (Scale(None, bound=True), None, None),
        (Scale(UP, node=3, noise=True), None, None),
        (Scale(ONE, node=3, noise=True), False, None),
        (Scale(ONE, node=3, noise=True, certain=True), False, True),
    ],
)
def test_one_size(size: Scale, grows: bool | None, stays: bool | None) -> None:
    assert explodes({"q": size}, SIGN).holds is grows
    assert moves({"q": size}, SIGN).holds is stays


def test_one_that_holds_beats_others_that_are_open() -> None:
    found = explodes({"h": Scale(UP, bound=True), "f": Scale(UP, node=7)}, SIGN)
    assert found == Answer(True, "f is of size n^(1/2)", 7)


def test_a_certain_coefficient_needs_no_test() -> None:
    assert moves({"f": Scale(ONE, node=7, certain=True)}, SIGN).node is None


def test_one_that_is_open_keeps_a_no_away() -> None:
    found = moves({"f": Scale(ONE, bound=True), "g": Scale(DOWN, node=1)}, SIGN)
    assert found == Answer(None, "f is O(1), and no lower bound is known")


def test_only_what_is_needed_is_compared() -> None:
    """What comes after a yes is not looked at, so it bounds no region."""
    chamber = Chamber({"a": Fraction(1), "b": Fraction(1)})
    sizes = {"f": Scale(Ex.symbol("a"), node=1), "g": Scale(Ex.symbol("b"), node=2)}
    assert explodes(sizes, chamber.sign).holds
    assert chamber.region.lines == ("a > 0",)


YES, NO, OPEN = Answer(True, "yes"), Answer(False, "no"), Answer(None, "open")


@pytest.mark.parametrize(
    ("answers", "verdict", "fact"),
    [
        ((YES, None, None), "unstable", "yes"),
        ((OPEN, None, None), "undecided", "open"),
        ((NO, OPEN, None), "undecided", "open"),
        ((NO, NO, None), "trivial", "no"),
        ((NO, YES, OPEN), "undecided", "open"),
        ((NO, YES, NO), "kernel", "yes, no"),
        ((NO, YES, YES), "feature-learning", "yes, yes"),
    ],
)
def test_verdicts(
    answers: tuple[Answer, Answer | None, Answer | None], verdict: str, fact: str
) -> None:
    found = judgement(*answers)
    assert (found.verdict, found.fact) == (verdict, fact)
