"""Statistics over seeds: means with standard errors, and log-log slopes in the width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.doors.numbers import count
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.results import Estimate, Method, spread_error

Size = Literal["rms", "mean"]

# A slope through fewer widths, or through widths that lie closer together, says nothing.
_WIDTHS = 3
_RANGE = 4
# Relative errors below this are rounding of numbers that are equal.
_ROUNDING = 1e-12
_LARGE = 1e70


@dataclass(frozen=True, slots=True)
class Slope:
    """A log-log slope with its interval; all None where it cannot be fitted."""

    value: float | None = None  # the slope
    low: float | None = None  # lower end of the interval
    high: float | None = None  # upper end
    reason: str = ""  # why there is none, or what to bear in mind


def summary(values: Sequence[float], *, random: bool = False) -> Estimate:
    """The mean over seeds with its standard error.

    Example:
        >>> print(summary([1.0, 2.0, 3.0, 2.0]))
        2 ± 4.1e-01 (finite)
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        raise EvaluationError(
            f"{count(len(array), 'seed')} cannot show a standard error.",
            hint="Run at least two seeds; ten or more give an error to rely on.",
        )
    broken = int(np.sum(~np.isfinite(array)))
    if broken:
        raise EvaluationError(
            f"{broken} of {len(array)} seeds have no finite value.",
            hint="They exploded: lower the learning rate or the width's power in front of it.",
        )
    scale = _scale(array)
    center = float(np.mean(array / scale)) * scale
    # Equal numbers may differ from their mean in the last bit; they have no spread.
    std = 0.0 if np.ptp(array) == 0 else float(np.std(array / scale, ddof=1)) * scale
    return Estimate(
        value=float(array[0]) if std == 0 else center,
        stderr=std / math.sqrt(len(array)),
        method=Method.FINITE,
        samples=len(array),
        replicates=len(array),
        std=std if random else None,
        draws=tuple(array.tolist()),
        std_error=spread_error(array.tolist()) if random else None,
    )


def slope(
    widths: Sequence[int],
    values_by_width: Sequence[Sequence[float]],
    *,
    of: Size = "rms",
    level: float = 0.95,
) -> Slope:
    """The power of n in the size of a quantity, by weighted least squares of logarithms.

    The logarithm of the size at each width gets the standard error of the delta method. The
    interval uses Student's t with the degrees of freedom of those errors; where the points lie
    further from a line than their errors explain, it is widened by that ratio.

    Source:
        R. T. Birge, The calculation of errors by the method of least squares, Phys. Rev. 40 (1932)
        (widening by the ratio of external to internal consistency).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> widths = [64, 256, 1024]
        >>> fit = slope(widths, [rng.normal(size=400) / n**0.5 for n in widths])
        >>> fit.low < -0.5 < fit.high
        True
    """
    checks.one_of("size of a quantity", of, ("rms", "mean"))
    if len(widths) != len(values_by_width):
        raise UsageError(
            f"{len(widths)} widths and {len(values_by_width)} lists of values.",
            hint="Give one list for each width.",
        )
    arrays = [np.asarray(values, dtype=np.float64) for values in values_by_width]
    reason = _refusal(widths, arrays)
    if reason:
        return Slope(reason=reason)
    logs, errors = _logarithms(arrays, of)
    if not np.all(np.isfinite(logs)):
        at = widths[int(np.argmax(~np.isfinite(logs)))]
        return Slope(reason=f"it is 0 at width {at}, and 0 has no logarithm")
    if np.any(errors <= _ROUNDING):
        at = widths[int(np.argmax(errors <= _ROUNDING))]
        return Slope(reason=f"it does not vary over seeds at width {at}")
    freedom = sum(len(array) - 1 for array in arrays)
    return _fit(np.log(np.asarray(widths, dtype=np.float64)), logs, errors, freedom, level)


def _refusal(widths: Sequence[int], arrays: Sequence[Array]) -> str:
    distinct = sorted(set(widths))
    if len(distinct) < _WIDTHS:
        return f"{len(distinct)} widths; a slope needs at least {_WIDTHS}"
    if distinct[-1] < _RANGE * distinct[0]:
        return (
            f"widths {distinct[0]} to {distinct[-1]}; a slope needs a range of at least a factor "
            f"{_RANGE}"
        )
    for width, array in zip(widths, arrays, strict=True):
        if len(array) < 2:
            return f"{len(array)} seeds at width {width}; a slope needs at least 2"
        if not np.all(np.isfinite(array)):
            return f"not every seed is finite at width {width}"
    return ""


def _logarithms(arrays: Sequence[Array], of: Size) -> tuple[Array, Array]:
    """Logarithms of the sizes and their standard errors."""
    counts = np.array([len(array) for array in arrays])
    scales = np.array([_scale(array) for array in arrays])
    arrays = [array / scale for array, scale in zip(arrays, scales, strict=True)]
    if of == "mean":
        means = np.array([abs(np.mean(array)) for array in arrays])
        stds = np.array([np.std(array, ddof=1) for array in arrays])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(means) + np.log(scales), stds / np.sqrt(counts) / means
    squares = np.array([np.mean(array**2) for array in arrays])
    with np.errstate(divide="ignore", invalid="ignore"):
        # The variance of a mean square from few seeds is itself so noisy that a width could get
        # all the weight by luck. Relative to the mean square it is the same at all widths where
        # the law only changes scale, so it is pooled over them.
        relative = np.array([np.var(array**2, ddof=1) for array in arrays]) / squares**2
        pooled = np.sum(relative * (counts - 1)) / np.sum(counts - 1)
        return np.log(squares) / 2 + np.log(scales), np.sqrt(pooled / counts) / 2


def _scale(array: Array) -> float:
    """What numbers are divided by so that their fourth powers are in the floating-point range."""
    largest = float(np.max(np.abs(array)))
    return largest if largest > _LARGE else 1.0


def _fit(
    x: Array,
    y: Array,
    errors: Array,
    freedom: int,
    level: float,
) -> Slope:
    from scipy.special import stdtrit

    weights = errors**-2
    center = float(np.sum(weights * x) / np.sum(weights))
    spread = float(np.sum(weights * (x - center) ** 2))
    value = float(np.sum(weights * (x - center) * y) / spread)
    height = float(np.sum(weights * y) / np.sum(weights))
    residuals = y - height - value * (x - center)
    birge = math.sqrt(float(np.sum(weights * residuals**2)) / (len(x) - 2))
    half = float(stdtrit(freedom, (1 + level) / 2)) * max(1.0, birge) / math.sqrt(spread)
    return Slope(value, value - half, value + half)
