"""Exponents are a commutative ring, and their text reads back."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.programs import FRACTIONS, SYMBOLS, exponents

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, as_ex, parse_ex

POINTS = st.fixed_dictionaries({name: FRACTIONS for name in SYMBOLS})


@given(exponents(), exponents(), exponents())
def test_ring_laws(a: Ex, b: Ex, c: Ex) -> None:
    assert a + b == b + a and a * b == b * a
    assert (a + b) + c == a + (b + c) and (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == Ex() and a + 0 == a and a * 1 == a and a * 0 == Ex()
    assert -a == (-1) * a and a - b == -(b - a)
    assert hash(a + b) == hash(b + a)


@given(exponents(), exponents(), POINTS)
def test_values_at_a_point(a: Ex, b: Ex, point: dict[str, Fraction]) -> None:
    assert (a + b).at(point) == a.at(point) + b.at(point)
    assert (a * b).at(point) == a.at(point) * b.at(point)
    assert (a - 1).at(point) == a.at(point) - 1
    assert (a**3).at(point) == a.at(point) ** 3
    assert (a / 3).at(point) == a.at(point) / 3


@given(exponents())
def test_facts(a: Ex) -> None:
    assert (a.constant is None) == bool(a.symbols)
    if a.constant is not None:
        assert as_ex(a.constant) == a
    assert all(coefficient != 0 for _, coefficient in a.terms)


def test_numbers() -> None:
    assert as_ex(0.1) == Ex.number(Fraction(1, 10))
    assert as_ex(2).constant == 2
    assert 1 - as_ex(Fraction(1, 2)) == as_ex(0.5)
    assert Ex.symbol("a") ** 0 == as_ex(1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-1/2", "-1/2"),
        ("0", "0"),
        ("a", "a"),
        ("-a", "-a"),
        ("2*a - 1/2", "-1/2 + 2*a"),
        ("(a + 1)/2 - (p - 1)*a", "1/2 + 3/2*a - a*p"),
        ("a**2*b", "a**2*b"),
        ("0.25*L", "1/4*L"),
        ("(a+b)**2", "2*a*b + a**2 + b**2"),
        ("a**40", "a**40"),
        ("+1e1", "10"),
    ],
)
def test_reading(text: str, shown: str) -> None:
    assert str(parse_ex(text)) == shown
    assert parse_ex(shown) == parse_ex(text)


def test_a_symbol_has_one_spelling() -> None:
    assert Ex.symbol("µ") == Ex.symbol("μ") == parse_ex("µ")  # the micro sign and the letter


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an exponent"),
        ("a +", "is not an exponent"),
        ("1/a", "is not a polynomial"),
        ("a**b", "is not a polynomial"),
        ("a**(1/2)", "must be a whole number"),
        ("a**-1", "must be a whole number"),
        ("(a+b)**13", "whole number from 0 to 12"),
        ("2**100000", "whole number from 0 to 1000"),
        ("a/0", "divided by 0"),
        ("f(a)", "has no meaning"),
        ("True", "has no meaning"),
        ("1e999", "too large"),
        ("9**1000", "a number in it is too large"),
        ("1e300 * 1e300", "a number in it is too large"),
        ("a if b else c", "has no meaning"),
        ("lambda", "is not an exponent"),
        ("(" * 300 + "a" + ")" * 300, "is not an exponent"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ScaleError, match=message):
        parse_ex(text)


@pytest.mark.parametrize("name", ["", "a b", "1a", "lambda", "a+b"])
def test_symbols_must_be_readable(name: str) -> None:
    with pytest.raises(ScaleError, match="a symbol cannot be called"):
        Ex.symbol(name)


def test_other_refusals() -> None:
    with pytest.raises(ScaleError, match="holds the symbol 'a', which has no value"):
        (Ex.symbol("a") + 1).at({})
    with pytest.raises(ScaleError, match="must be finite"):
        as_ex(math.inf)
    with pytest.raises(ScaleError, match="is not a polynomial"):
        Ex.symbol("a") ** -1
    with pytest.raises(ScaleError, match="divided by 0"):
        Ex.symbol("a") / 0
