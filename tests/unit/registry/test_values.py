"""Parameters as exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError


@pytest.mark.parametrize(
    ("given_value", "wanted"),
    [
        (2, Fraction(2)),
        (0.2, Fraction(1, 5)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (" 1/5 ", Fraction(1, 5)),
        ("-3/2", Fraction(-3, 2)),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_decimals_are_what_they_say(given_value: object, wanted: Fraction) -> None:
    assert exact(given_value, what="p") == wanted


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_fraction_that_reads_as_it(value: float) -> None:
    assert float(exact(value, what="p")) == value
    assert float(exact(repr(value), what="p")) == value


@pytest.mark.parametrize(
    "bad",
    [
        *("", "x", "1/0", "1/2/3", "nan", "inf", "1e999999999", "1e-999999999"),
        *(None, True, 1j, [1], float("nan"), float("inf")),
    ],
)
def test_what_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(
        StudyError, match=r"p of relu_pow (must be a number|is .* it must be finite)"
    ):
        exact(bad, what="p of relu_pow")


@pytest.mark.parametrize("huge", [10**400, Fraction(-(10**400)), "1e320"])
def test_what_no_float_can_hold_is_refused(huge: object) -> None:
    with pytest.raises(StudyError, match=r"p is .* it must be finite, in the range of a float"):
        exact(huge, what="p")
