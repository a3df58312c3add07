"""Numbers keep the digits that their error allows, and a sampled zero is never a bare 0."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.results import Estimate, Method, Status
from tpcalc.views.numbers import (
    Measure,
    duration,
    measured,
    over_seeds,
    plain,
    score,
    spread,
    typeset,
)

ANY = st.floats(allow_nan=False, allow_infinity=False)
ERROR = st.floats(min_value=1e-12, max_value=1e12)


def read(text: str) -> tuple[float, float]:
    """Value and error of a printed number."""
    found = re.fullmatch(r"\((-?[\d.]+) ± ([\d.]+)\)e(-?\d+)", text)
    if found:
        scale = float("1e" + found[3])
        return float(found[1]) * scale, float(found[2]) * scale
    value, error = re.split(r" ± | \(standard error ", text.removesuffix(")"))
    return float(value), float(error)


@given(st.floats(min_value=-1e9, max_value=1e9), ERROR)
def test_printed_number_is_the_number_within_its_error(value: float, stderr: float) -> None:
    shown, error = read(measured(Measure(value, stderr, "particles")))
    assert error == pytest.approx(stderr, rel=0.051)
    assert abs(shown - value) <= 0.06 * stderr + 1e-8 * abs(value)


@given(ANY, st.floats(min_value=0, allow_infinity=True), st.sampled_from(["particles", "finite"]))
def test_a_sampled_number_is_never_a_bare_zero(value: float, stderr: float, method: str) -> None:
    text = measured(Measure(value, stderr, method))
    assert text not in ("0", "-0", "0.0")
    assert not re.match(r"-0(\.0*)?( |$)", text)


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (0.318412, 0.00124, "0.3184 ± 0.0012"),
        (-12.345, 0.0996, "-12.35 ± 0.10"),
        (0.0, 1e-4, "0 ± 1e-4"),
        (0.0, 1.26e-4, "0 ± 1.3e-4"),
        (-1e-5, 0.01, "0.000 ± 0.010"),
        (1.2345e-7, 3.4e-9, "(1.235 ± 0.034)e-7"),
        (3.2e7, 1.1e5, "(3.200 ± 0.011)e7"),
        (123456.7, 240.0, "123460 ± 240"),
        (0.3184123456789, 1e-12, "0.318412346 (standard error 1e-12)"),
        (0.287785693, 3.9e-8, "0.287785693 ± 3.9e-8"),
        (0.5, math.nan, "0.5 ± ?"),
        (math.nan, math.nan, "not a number"),
        (-math.inf, math.nan, "-∞"),
        (2e-17, 1e-17, "< 1e-13"),
        (2.0**-1000, 2.0**-1010, "9.33263619e-302 ± 9.1e-305"),
    ],
)
def test_digits(value: float, stderr: float, text: str) -> None:
    assert measured(Measure(value, stderr, "particles")) == text


@pytest.mark.parametrize(
    ("value", "stderr", "method", "text"),
    [
        (0.287785755123, 8.5e-15, "quadrature", "0.287785755 (error < 1e-14)"),
        (0.5, 9e-10, "quadrature", "0.5 ± 9e-10"),
        (0.2877857, 1e-3, "quadrature", "0.2878 ± 0.0010"),
        (0.544875123, 2e-16, "exact", "0.544875"),
        (0.544875123, 2e-3, "exact", "0.5449 ± 0.0020"),
        (4e-13, 1e-13, "quadrature", "(4.0 ± 1.0)e-13"),
    ],
)
def test_no_error_contradicts_the_digits(
    value: float, stderr: float, method: str, text: str
) -> None:
    assert measured(Measure(value, stderr, method)) == text


@given(st.floats(min_value=-1e9, max_value=1e9), st.floats(min_value=1e-300, max_value=1e3))
def test_bounds_hold_as_printed(value: float, stderr: float) -> None:
    text = measured(Measure(value, stderr, "quadrature"))
    if found := re.fullmatch(r"(\S+) \(error < (\S+)\)", text):
        assert stderr < float(found[2])
        assert abs(float(found[1]) - value) <= 1e-8 * abs(value)
    elif text.startswith("<"):
        assert abs(value) + stderr <= 1e-13
    else:
        assert "±" in text


def test_what_is_random_has_a_mean_and_no_size() -> None:
    zero = Measure(0.0, 0.0, "quadrature", sd=0.4378)
    assert measured(zero, "f") == "random in the limit, sd = 0.4378, mean 0"
    rounded = Measure(3e-15, 1e-15, "quadrature", sd=0.4378)
    assert measured(rounded, "f") == "random in the limit, sd = 0.4378, mean 0 ± 1e-13"


def test_a_small_number_far_from_zero_is_not_taken_for_rounding() -> None:
    assert measured(Measure(1e-20, 1e-23, "particles")) == "(1.0000 ± 0.0010)e-20"


def test_exact_numbers_show_their_formula_and_no_error() -> None:
    assert measured(Measure(0.445703125, 0.0, "exact", formula="1141/2560")) == (
        "1141/2560 = 0.445703"
    )
    assert measured(Measure(0.25, 0.0, "exact", formula="0.25")) == "0.25"
    assert measured(Measure(0.0, 0.0, "exact")) == "0"


def test_zero_of_known_sign_and_of_none() -> None:
    zero = Measure(0.0, 0.0, "particles")
    assert measured(zero, "f") == "|f| < 1e-13"
    assert measured(zero) == "< 1e-13"


def test_random_scalars_and_missed_targets_say_so() -> None:
    estimate = Estimate(
        0.01, 0.02, Method.PARTICLES, status=Status.TOLERANCE_NOT_REACHED, std=1.41421
    )
    assert measured(Measure.of(estimate)) == (
        "random in the limit, sd = 1.414, mean 0.010 ± 0.020 †"
    )


def test_spread_carries_its_sampling_error() -> None:
    assert spread(2.0, 0.2) == over_seeds(2.0, 51) == "2.00 ± 0.20"
    assert spread(math.nan, 0.1) == over_seeds(1.0, 1) == "?"
    assert spread(2.0, None) == spread(2.0, 1e-12) == "2"


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("n^-1 × (-0.5 ± 0.1)", "n<sup>−1</sup> × (−0.5 ± 0.1)"),
        ("n^(-1/2) × 0.5", "n<sup>−1/2</sup> × 0.5"),
        ("(1.2 ± 0.3)e-7", "(1.2 ± 0.3)×10<sup>−7</sup>"),
        ("1e+05", "1×10<sup>5</sup>"),
        ("-0.58 to -0.43", "−0.58 to −0.43"),
        ("Hajjar-type 3-4", "Hajjar-type 3-4"),
        ("error ~ n^s", "error ~ n<sup>s</sup>"),
    ],
)
def test_typeset(text: str, page: str) -> None:
    assert typeset(text) == page


def test_scores_and_times() -> None:
    assert [score(z) for z in (-3.14159, 0.0, 1e7, math.nan)] == [
        "-3.1",
        "0.0",
        "1e7",
        "not a number",
    ]
    assert [duration(s) for s in (0.0, 59.0, 3725.0)] == ["0 s", "59 s", "1 h 2 min"]
    assert plain(-0.0) == "0"


def test_errors_at_the_end_of_the_range() -> None:
    assert measured(Measure(1.0, 1.75e308, "particles")).startswith("1 ± 1.")
