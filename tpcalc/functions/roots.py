"""Powers of numbers, exact where they are rational."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite, isqrt, sqrt

# Denominators up to which a power of a number is looked for among the fractions.
_DENOMINATOR = 64


def root(base: Fraction | int, power: Fraction = Fraction(1, 2)) -> Fraction | float:
    """A power of a positive number: exact where it is rational, else a float.

    Example:
        >>> root(Fraction(9, 4)), root(4, Fraction(-1, 2)), round(root(2), 6)
        (Fraction(3, 2), Fraction(1, 2), 1.414214)
    """
    base = Fraction(base)
    found: Fraction | float | None = None
    if power.denominator <= _DENOMINATOR and abs(power.numerator) <= _DENOMINATOR**2:
        # In lowest terms, so that the root of the base itself is rational or the power is not.
        over = _whole_root(base.numerator, power.denominator)
        under = _whole_root(base.denominator, power.denominator)
        if over is not None and under is not None:
            found = Fraction(over, under) ** power.numerator
    if found is None:
        found = sqrt(base) if power == Fraction(1, 2) else float(base) ** float(power)
    size = float(found)  # raises where an exact number is too large
    if not isfinite(size) or size == 0:
        raise OverflowError
    return found


def _whole_root(number: int, degree: int) -> int | None:
    """The whole number whose power is this one; None if there is none."""
    if degree == 1:
        return number
    if degree == 2:
        found = isqrt(number)
    else:
        low, high = 0, 1 << (number.bit_length() // degree + 1)
        while low < high:  # the largest one whose power is not above
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        found = low
    return found if found**degree == number else None
