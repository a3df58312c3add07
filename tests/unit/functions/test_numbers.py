"""Numbers that print, read back, and are rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.errors import ProgramError
from tpcalc.functions.numbers import (
    as_number,
    is_finite,
    number_text,
    rational,
    rounded,
    whole_power,
)
from tpcalc.functions.parse import parse_number


@given(st.one_of(st.fractions(), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_read_back(value: Fraction | float) -> None:
    back = parse_number(number_text(value))
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    "text", ["", "1/0", "inf", "nan", "1e999", "1_000", "0x10", "1/2/3", "½", "1" * 5000]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(ProgramError, match="is not a number"):
        parse_number(text)


def test_kinds_of_numbers() -> None:
    assert as_number(np.int32(2)) == Fraction(2)
    assert isinstance(as_number(np.int32(2)), Fraction)
    assert isinstance(as_number(np.float32(0.5)), float)
    assert number_text(3) == "3"
    assert not is_finite("1") and not is_finite(math.nan) and not is_finite(Fraction(10**400))
    assert is_finite(np.float64(1.0))


@given(st.fractions(max_denominator=1000))
def test_a_float_means_its_simple_fraction(value: Fraction) -> None:
    if abs(value) < 100:
        assert rational(float(value)) == value


def test_rounding() -> None:
    assert rounded(Fraction(1, 3), True) == Fraction(1, 3)
    assert rounded(Fraction(1, 3), False) == 1 / 3
    assert rounded(Fraction(10**400), False) == math.inf
    assert whole_power(Fraction(2), -3) == Fraction(1, 8)
    assert whole_power(0.5, 1000) == 0.5**1000
