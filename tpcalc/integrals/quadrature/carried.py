"""Gaussian averages with their derivatives, by which errors of the variances are carried."""

from __future__ import annotations

from typing import NamedTuple


class Carried(NamedTuple):
    """An average of one Gaussian, or of two.

    Args:
        value: The average.
        error: A bound on its error, for numbers that are exactly the floats given.
        by_variance: Its derivative in the variance, where the gap stays as it is.
        by_gap: Its derivative in the gap, variance less covariance.
    """

    value: float
    error: float
    by_variance: float
    by_gap: float = 0.0


class Moments(NamedTuple):
    """What one layer needs of an activation at one Gaussian.

    Args:
        mean: E f(s).
        square: E f(s)^2.
        slope: E f'(s)^2.
    """

    mean: Carried
    square: Carried
    slope: Carried
