"""``agree``: the one way in which tests compare numbers that carry an error."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tpcalc.results import Estimate, Method
from tpcalc.results.estimate import normal_score

__all__ = ["agree"]

Number = Estimate | Fraction | float | int


def agree(a: Number, b: Number, z: float = 5, *, rounding: float = 0.0) -> None:
    """Assert that two numbers are within ``z`` combined standard errors of each other.

    Of few replicates they are reduced to those of a Gaussian, as ``Estimate.z``.
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
    left, right = (x if isinstance(x, Estimate) else _plain(x) for x in (a, b))
    gap = max(abs(left.value - right.value) - rounding, 0.0)
    known = math.isfinite(left.value + right.value + left.stderr + right.stderr)
    close = gap <= 1e-12 * max(abs(left.value), abs(right.value), 1.0)
    distance = 0.0 if close else normal_score(gap, left.error, right.error)
    if not (known and distance <= z):
        raise AssertionError(
            f"{a} and {b} differ by {gap:.3g}, {distance:.3g} standard errors "
            f"(at most {z:g} allowed)"
        )


def _plain(number: Any) -> Estimate:
    return Estimate(float(number), 0.0, Method.EXACT)
