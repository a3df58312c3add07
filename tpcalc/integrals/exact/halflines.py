"""The mean of a step or a sign of one Gaussian, with a weight in the exponent."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from tpcalc.integrals.exact.ball import UNIT, Ball, quotient, ulps

PEAK = 1 / sqrt(2 * pi)


def exponential(weight: Ball) -> Ball:
    """exp(weight)."""
    import numpy as np

    value = np.exp(weight.value)
    error = weight.error()
    if type(error) is float and error == 0.0:
        return Ball(value, ulps(4), 0.0, True)
    return Ball(value, ulps(4), _spread(value, weight.value, error), True)


def _spread(value: Any, exponent: Any, error: Any) -> Any:
    """How far exp(exponent), computed as ``value``, is off for an error of the exponent."""
    import numpy as np

    near = 1.001 * value * np.expm1(np.minimum(error, 1.0))
    return near if np.all(error <= 1.0) else np.where(error <= 1.0, near, np.exp(exponent + error))


def side(kind: str, mean: Ball) -> Ball:
    """A step or sign of a number; in the middle where it is 0."""
    import numpy as np

    sign = np.sign(mean.value)
    unsure = np.where(np.abs(mean.value) > mean.error(), 0.0, 1.0)
    unsure = np.where((mean.value == 0) & (mean.error() == 0), 0.0, unsure)
    if kind == "sign":
        return Ball(sign, 0.0, 2 * unsure)
    return Ball((1 + sign) / 2, 0.0, unsure, True)


def standard(mean: Ball, deviation: Ball) -> Ball:
    """The mean over the deviation; without deviation infinite, or 0 where the mean is 0."""
    import numpy as np

    if np.all(deviation.value):
        return quotient(mean, deviation)
    ratio = quotient(mean, deviation)
    flat = deviation.value == 0
    unsure = np.where(np.abs(mean.value) > mean.error(), 0.0, np.inf)
    unsure = np.where((mean.value == 0) & (mean.error() == 0), 0.0, unsure)
    value = np.where(flat & (mean.value != 0), np.copysign(np.inf, mean.value), ratio.value)
    absolute = np.where(flat, unsure, ratio.absolute)
    return Ball(value, ratio.relative, absolute)


def shift_error(height: Ball) -> Any:
    """How far a probability moves with the error of a standardised bound.

    In units of the peak of the density.
    """
    import numpy as np

    size = np.abs(height.value)
    off = height.relative * np.where(np.isfinite(size), size, 0.0)
    if not height.clean:
        off = off + height.absolute
    nearest = np.where(np.isfinite(size), np.maximum(size - off, 0.0), 1e150)
    return off * np.exp(-0.5 * nearest * nearest)


def half(kind: str, height: Ball) -> Ball:
    """P(N < height), or 2 P(N < height) - 1 for a sign."""
    from scipy import special

    error = PEAK * shift_error(height)
    if kind == "sign":
        return Ball(special.erf(sqrt(0.5) * height.value), ulps(6), 2 * error)
    value = special.ndtr(height.value)
    return Ball(value, ulps(6), error + _tail_rounding(height.value), True)


def heavy(weight: Ball) -> bool:
    """Whether a weight magnifies rounding errors somewhere."""
    import numpy as np

    return bool(np.any(weight.value > 1.0))


def _tail_rounding(height: Any) -> Any:
    """Error of ndtr far to the left, where the rounding of its argument is magnified."""
    import numpy as np

    far = np.maximum(np.minimum(height, 0.0), -40.0)  # beyond, it underflows
    return 4 * UNIT * np.abs(far) * np.exp(-0.5 * far * far)


def tail(weight: Ball, height: Ball, edge: Ball) -> Ball:
    """exp(weight) P(N < height), where the first may be huge and the second tiny."""
    import numpy as np
    from scipy import special

    h = height.value
    size = np.abs(h)
    ray = np.where(np.isfinite(size), np.exp(edge.value), 0.0)
    low = 0.5 * special.erfcx(sqrt(0.5) * size) * ray
    whole = np.exp(weight.value)
    value = np.where(h < 0, low, whole - low)
    # |d ln erfcx(x)| is at most |dx| 2 / sqrt(pi), and at most |dx / x|.
    loss = ulps(8) + 1.1 * height.relative
    if not height.clean:
        loss = loss + 0.9 * height.absolute * np.exp(np.minimum(height.absolute * size, 700))
    error = np.where(low > 0, low * loss + _spread(low, edge.value, edge.error()), 0.0)
    of_whole = whole * ulps(4) + _spread(whole, weight.value, weight.error())
    error = error + np.where(h < 0, 0.0, of_whole)
    error = np.where(np.isnan(error), np.inf, error)
    return Ball(value, UNIT, error, True)
