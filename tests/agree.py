"""``agree``: the one way in which tests compare numbers that carry an error."""

from __future__ import annotations

import math
from fractions import Fraction

from tpcalc.results import Estimate

__all__ = ["agree"]

Number = Estimate | Fraction | float | int


def agree(a: Number, b: Number, z: float = 5, *, rounding: float = 0.0) -> None:
    """Assert that two numbers are within ``z`` combined standard errors of each other.

    A plain number has no error. Two numbers without error must be equal up to rounding (1e-12 of
    the larger one, or of 1). What is not a finite number agrees with nothing. ``rounding`` is half
    a unit in the last printed digit of a published number.

    Raises:
        AssertionError: With both numbers and their distance.

    Example:
        >>> agree(Fraction(1, 4), 0.25)
        >>> agree(1.0, 1.1)
        Traceback (most recent call last):
        ...
        AssertionError: 1.0 and 1.1 differ by 0.1, inf standard errors (at most 5 allowed)
    """
    left, left_error = _parts(a)
    right, right_error = _parts(b)
    gap = max(abs(left - right) - rounding, 0.0)
    spread = math.hypot(left_error, right_error)
    if gap <= 1e-12 * max(abs(left), abs(right), 1.0):
        distance = 0.0
    else:
        distance = gap / spread if spread > 0 else math.inf
    if not (math.isfinite(left + right + spread) and distance <= z):
        raise AssertionError(
            f"{a} and {b} differ by {gap:.3g}, {distance:.3g} standard errors "
            f"(at most {z:g} allowed)"
        )


def _parts(number: Number) -> tuple[float, float]:
    if isinstance(number, Estimate):
        return number.value, number.stderr
    return float(number), 0.0
