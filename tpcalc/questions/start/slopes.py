"""Slopes of sizes at finite widths, beside powers of n: half powers are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, isfinite, log, sqrt

import numpy as np

from tpcalc.arrays import Array
from tpcalc.results import Exponent, MeasuredSize

QUARTER = Fraction(1, 4)
SURE = 2.0  # standard errors of a slope
ROUNDING = 1e-13  # of the largest of its kind: what is smaller is 0


def fitted(sizes: Mapping[int, Sequence[float] | Array]) -> tuple[float, float]:
    """The slope of the geometric mean from the narrowest to the widest, with its standard error.

    Example:
        >>> "{:.2f} {:.2f}".format(*fitted({4: [1.0, 2.0], 64: [1.0, 1.0]}))
        '-0.12 0.12'
    """
    ends = min(sizes), max(sizes)
    logs = [np.log(np.maximum(sizes[n], 1e-150)) for n in ends]
    reach = log(ends[1] / ends[0])
    error = np.sqrt(sum(np.var(own, ddof=1) / len(own) for own in logs))
    return float(np.mean(logs[1]) - np.mean(logs[0])) / reach, float(error) / reach


def as_float(power: Exponent) -> float:
    """A power as a number: -inf of what is 0, inf where none is known."""
    known = inf if power.constant is None else float(power.constant)
    return -inf if power.is_zero else known


def fits(slope: float, doubt: float, low: float, high: float) -> str:
    """Whether a slope lies between two powers, a quarter wider: agrees, differs or open.

    Example:
        >>> [fits(slope, 0.1, -0.5, 0) for slope in (-0.6, -0.7, -0.9, 0.3)]
        ['agrees', 'open', 'differs', 'open']
    """
    apart = float(QUARTER)
    if high == inf:
        return "open"
    if slope + doubt < high + apart and slope - doubt > low - apart:
        return "agrees"
    return "differs" if slope - doubt > high + apart or slope + doubt < low - apart else "open"


def measured_size(
    sizes: Mapping[int, Sequence[float]], top: float, low: float, high: float, sure: float = SURE
) -> MeasuredSize:
    """Sizes over seeds, by width, beside the powers that they are predicted to lie between."""
    widths, nothing = tuple(sizes), (0.0,) * len(sizes)
    if max(map(max, sizes.values())) <= ROUNDING * top:
        word = "agrees" if low == -inf else "differs"
        return MeasuredSize(widths, nothing, nothing, None, None, word)
    with np.errstate(all="ignore"):
        logs = [np.log(own) for own in sizes.values()]
        means = tuple(float(np.exp(np.mean(own))) for own in logs)
        errors = tuple(float(np.std(own, ddof=1) / sqrt(len(own))) for own in logs)
    if not all(map(isfinite, (*means, *errors))):
        return MeasuredSize(widths, nothing, nothing, None, None, "open")
    slope, error = fitted(sizes)
    return MeasuredSize(widths, means, errors, slope, error, fits(slope, sure * error, low, high))
