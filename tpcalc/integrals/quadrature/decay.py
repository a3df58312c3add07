"""How far sums of analytic functions are off, from how fast what they lack becomes small."""

from __future__ import annotations

from math import sqrt

from tpcalc.integrals.quadrature.adaptive import EPS

SAFETY = 4.0


def shortfall(size: float, halved: float, quartered: float) -> float:
    """The error of a rule, from what rules of a half and a quarter of its order are off.

    Errors of analytic functions fall exponentially in the order: with the decay from a quarter to a
    half seen again twice, or with a factor of the square root of the relative error at half the
    order, whichever is slower.

    Example:
        >>> shortfall(1.0, 1e-8, 1e-4) < 1e-11
        True
    """
    if halved <= 4.0 * EPS * size:
        return halved
    seen = halved * (halved / max(quartered, halved)) ** 2
    return min(halved, SAFETY * max(halved * sqrt(halved / size), seen))
