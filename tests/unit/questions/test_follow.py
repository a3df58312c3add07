"""Depths with symbols: the same answers as depths that are numbers, with fewer conditions."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.exponents import Ex
from tpcalc.limit.scales import scales

GAP = Ex.symbol("e")


@tp.program
def moved(t: tp.Tracer) -> None:
    """A small update of a preactivation, and what it does to an average that was 0."""
    h, u = t.gaussian("h"), t.gaussian("u")
    x = tp.tanh(h + tp.n ** -tp.symbol("e") * u)
    t.output("change", x - tp.tanh(h))
    t.output("average", t.inner(u, x))


@pytest.mark.parametrize("gap", [Fraction(1, 3), Fraction(1, 50), Fraction(2, 5)])
def test_the_size_of_an_update_is_seen_at_its_own_depth(gap: Fraction) -> None:
    found = scales(moved.build(), at={"e": gap}, depth=GAP)
    for name in ("change", "average"):
        size = found.scale(name)
        assert str(size.power) == "-e"
        assert not size.bound
    assert len(found.region.lines) <= 3


def test_numbers_give_the_same_with_more_conditions() -> None:
    at = {"e": Fraction(1, 12)}
    symbols, numbers = (
        scales(moved.build(), at=at, depth=GAP),
        scales(moved.build(), at=at, depth=Fraction(1, 2)),
    )
    assert symbols.scale("average").power == numbers.scale("average").power
    assert len(symbols.region.lines) < len(numbers.region.lines)


def test_values_are_put_in() -> None:
    found = scales(moved.build(), values={"e": Fraction(1, 4)}, depth=Fraction(1, 4))
    assert found.scale("change").power == Fraction(-1, 4)
    assert found.region.lines == ()
