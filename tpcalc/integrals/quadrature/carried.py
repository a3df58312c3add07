"""Gaussian averages with their derivatives, by which errors of the variances are carried."""

from __future__ import annotations

from typing import NamedTuple


class Carried(NamedTuple):
    """An average of one Gaussian, or of two."""

    value: float  # the average
    error: float  # a bound on its error, for numbers that are exactly the floats given
    by_variance: float  # its derivative in the variance, where the gap stays as it is
    by_gap: float = 0.0  # its derivative in the gap, variance less covariance


class Moments(NamedTuple):
    """What one layer needs of an activation at one Gaussian."""

    mean: Carried  # E f(s)
    square: Carried  # E f(s)^2
    slope: Carried  # E f'(s)^2
