"""Chambers record every comparison; regions say where the answers hold."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.programs import FRACTIONS, SYMBOLS, exponents

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber, Region, minus, plus, times

POINTS = st.fixed_dictionaries({name: FRACTIONS for name in SYMBOLS})
a, b = Ex.symbol("a"), Ex.symbol("b_1")


def sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


@given(st.lists(exponents(), max_size=6), POINTS, POINTS)
def test_the_record_is_where_all_answers_are_the_same(
    asked: list[Ex], point: dict[str, Fraction], other: dict[str, Fraction]
) -> None:
    chamber = Chamber(point)
    answers = [chamber.sign(value) for value in asked]
    assert answers == [sign(value.at(point)) for value in asked]
    region = chamber.region
    assert region.contains(point)
    same = [sign(value.at(other)) for value in asked] == answers
    assert region.contains(other) == same


@given(exponents(), POINTS, st.fractions(min_value=Fraction(1, 6), max_value=4))
def test_multiples_are_one_condition(
    value: Ex, point: dict[str, Fraction], factor: Fraction
) -> None:
    chamber = Chamber(point)
    first = chamber.sign(value)
    assert chamber.sign(value * factor) == first == -chamber.sign(-value * factor)
    assert len(chamber.region.lines) <= 1


@given(exponents(), exponents())
def test_arithmetic_keeps_numbers_plain(x: Ex, y: Ex) -> None:
    for found, value in ((plus(x, y), x + y), (minus(x, y), x - y), (times(x, y), x * y)):
        assert found == value or found == value.constant
        assert isinstance(found, Fraction) == (value.constant is not None)


def test_numbers_are_not_recorded() -> None:
    chamber = Chamber()
    assert [chamber.sign(Fraction(k)) for k in (-2, 0, 3)] == [-1, 0, 1]
    assert chamber.region == Region()
    assert chamber.region.contains({})


def test_a_symbol_without_a_value_is_named() -> None:
    with pytest.raises(ScaleError, match="b_1"):
        Chamber({"a": Fraction(1)}).sign(a + b)


def test_walls_are_recorded_as_equations() -> None:
    chamber = Chamber({"a": Fraction(1, 2), "b_1": Fraction(1)})
    assert chamber.sign(2 * a - b) == 0
    assert chamber.sign(a * b - 1) == -1
    region = chamber.region
    assert region.symbols == {"a", "b_1"}
    assert region.contains({"a": Fraction(1, 3), "b_1": Fraction(2, 3)})
    assert not region.contains({"a": Fraction(1, 3), "b_1": Fraction(1)})
    assert not region.contains({"a": Fraction(2), "b_1": Fraction(4)})
