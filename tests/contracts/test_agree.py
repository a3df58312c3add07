"""The comparison that other tests rely on can say no."""

from __future__ import annotations

import math

import pytest
from agree import agree

from tpcalc.results import Estimate, Method


def particles(value: float, stderr: float) -> Estimate:
    return Estimate(value, stderr, Method.PARTICLES)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (particles(1.0, 0.1), particles(1.6, 0.1)),
        (particles(1.0, 0.1), 1.5),
        (1, particles(1.49, 0.1)),
        (0.1 + 0.2, 0.3),
        (particles(2.0, 0.0), 2),
    ],
)
def test_agree_accepts_what_lies_within_five_standard_errors(a: object, b: object) -> None:
    agree(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (particles(1.0, 0.1), particles(1.8, 0.1)),
        (particles(1.0, 0.1), 1.51),
        (0.3, 0.3 + 1e-9),
        (particles(math.nan, 0.1), 1.0),
        (particles(1.0, math.nan), 1.0),
        (particles(1.0, math.inf), 5.0),
        (math.inf, math.inf),
    ],
)
def test_agree_refuses_what_does_not(a: object, b: object) -> None:
    with pytest.raises(AssertionError, match="differ by"):
        agree(a, b)


def test_agree_takes_another_bound_and_prints_both_numbers() -> None:
    agree(particles(1.0, 0.1), 1.55, z=6)
    with pytest.raises(AssertionError, match=r"1 ± 1.0e-01 \(particles\) and 1.25 .* 2.5 standard"):
        agree(particles(1.0, 0.1), 1.25, z=2)


def test_agree_allows_for_the_rounding_of_a_published_number() -> None:
    agree(0.1234, 0.123, rounding=5e-4)
    with pytest.raises(AssertionError, match="differ by"):
        agree(0.1240, 0.123, rounding=5e-4)
