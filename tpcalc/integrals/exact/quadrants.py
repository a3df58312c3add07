"""The mean of two steps or two signs of a pair of Gaussians.

With means 0 it is an angle (Sheppard; Cho and Saul). With means it is Owen's T function, or where
the product of two signs is small, the integral of the bivariate density over the correlation
(Plackett), which has no cancellation. A weight that would blow up the error goes into the exponent:
then the wedge is integrated in polar coordinates (``wedge``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

from tpcalc.integrals import rules
from tpcalc.integrals.exact.ball import UNIT, Ball, quotient, root, total, ulps
from tpcalc.integrals.exact.halflines import half, shift_error, standard

# Up to this correlation Plackett's integral is taken with so many nodes.
LARGEST_CORRELATION = 0.5
NODES = 12


def _opening(kind: str, covariance: Ball, deviation: Ball) -> Ball:
    """The angle whose share of a turn is the probability: pi - acos(rho), or asin(rho)."""
    import numpy as np

    if kind == "step":
        value = np.arctan2(deviation.value, -covariance.value)
    else:
        value = np.arctan2(covariance.value, deviation.value)
    relative = ulps(4) + 1.1 * (covariance.relative + deviation.relative)
    absolute: Any = 0.0
    if not (covariance.clean and deviation.clean):
        c, s = np.abs(covariance.value), np.abs(deviation.value)
        size = np.hypot(c, s) - covariance.absolute - deviation.absolute
        move = (covariance.absolute + deviation.absolute) / size
        absolute = np.where(size > 0, np.minimum(1.1 * move, pi), pi)
    return Ball(value, relative, absolute, kind == "step")


def angle(kind: str, covariance: Ball, minor: Ball) -> Ball:
    """The mean of two steps or of two signs, both means 0."""
    share = Ball(1 / (2 * pi) if kind == "step" else 2 / pi, 2 * UNIT, 0.0, True)
    return _opening(kind, covariance, root(minor)) * share


def ramps(covariance: Ball, minor: Ball) -> Ball:
    """E relu(x) relu(y) = (s + c (pi - acos rho)) / (2 pi), s the root of the determinant.

    Near rho = -1 the two terms cancel; there the series of tan(t) - t is taken.
    """
    import numpy as np

    deviation = root(minor)
    s, c = deviation.value, covariance.value
    opening = np.arctan2(s, -c)
    turned = c * opening
    value = s + turned
    relative = max(deviation.relative, covariance.relative)
    error = (ulps(5) + 1.1 * relative) * (s + np.abs(turned))
    if not (deviation.clean and covariance.clean):
        error = error + deviation.absolute + covariance.absolute * opening
    elif covariance.relative == 0.0:
        value, error = _narrow(s, c, value, error)
    tau = Ball(1 / (2 * pi), 2 * UNIT, 0.0, True)
    return tau * Ball(value, 0.0, error, True)


def _narrow(s: Any, c: Any, value: Any, error: Any) -> tuple[Any, Any]:
    """The same where s is much less than -c, by t - atan(t) = t^3/3 - t^5/5 + ..."""
    import numpy as np

    narrow = np.less(s, -0.25 * c)
    if not narrow.any():
        return value, error
    s, c, narrow, value, error = np.broadcast_arrays(s, c, narrow, value, error)
    size = -c[narrow]
    t = s[narrow] / size
    square = t * t
    series = np.zeros_like(t)
    for k in range(14, 0, -1):
        series = 1 / (2 * k + 1) - square * series
    out, bound = np.array(value), np.array(error)
    out[narrow] = size * t * square * series
    bound[narrow] = ulps(16) * out[narrow]
    return out, bound


@dataclass(frozen=True, slots=True)
class Pair:
    """Two Gaussians with means, standardised."""

    first: Ball  # h, mean over deviation of the first
    second: Ball  # k, of the second
    correlation: Ball  # rho
    sine: Ball  # s = sqrt(1 - rho^2)

    @classmethod
    def of(
        cls, mean: Ball, other: Ball, variance: Ball, other_variance: Ball, cov: Ball, minor: Ball
    ) -> Pair:
        """From means, variances, covariance and determinant."""
        deviations = root(variance), root(other_variance)
        product = deviations[0] * deviations[1]
        return cls(
            standard(mean, deviations[0]),
            standard(other, deviations[1]),
            quotient(cov, product),
            quotient(root(minor), product),
        )


def beyond(h: Any, k: Any, rho: Any, s: Any) -> Any:
    """(k - rho h) / s, exact for these floats where they nearly cancel; 0 for 0 / 0.

    The probability is a tame function of h and k, so errors of theirs do not matter as long as
    every part of a formula takes the same floats.
    """
    import numpy as np

    away = s * s / (1 + np.abs(rho))  # 1 - |rho|
    off = np.where(rho >= 0, (k - h) + h * away, (k + h) - h * away)
    off = np.where(np.isfinite(h), off, 0.0)
    ratio = off / np.where(s == 0, 1.0, s)
    return np.where((s == 0) & (off != 0), np.copysign(np.inf, off), ratio)


def steps(pair: Pair) -> Ball:
    """P(X < h, Y < k) by Owen's T function."""
    import numpy as np
    from scipy import special

    h, k, rho, s = pair.first.value, pair.second.value, pair.correlation.value, pair.sine.value
    first = special.owens_t(h, _slope(beyond(h, k, rho, s), h))
    second = special.owens_t(k, _slope(beyond(k, h, rho, s), k))
    apart = ((h > 0) & (k < 0)) | ((h < 0) & (k > 0))
    apart = apart | ((h == 0) & (k < 0)) | ((k == 0) & (h < 0))
    value = 0.5 * (special.ndtr(h) + special.ndtr(k)) - first - second - 0.5 * apart
    centred = (h == 0) & (k == 0)
    if np.any(centred):
        value = np.where(centred, np.arctan2(s, -rho) / (2 * pi), value)
    error = 16 * UNIT + 0.4 * (shift_error(pair.first) + shift_error(pair.second))
    error = error + 0.17 * (pair.correlation.relative + pair.sine.relative)
    if not (pair.correlation.clean and pair.sine.clean):
        error = error + np.minimum(1.0, pair.correlation.absolute + pair.sine.absolute)
    return Ball(np.maximum(value, 0.0), 0.0, error, True)


def _slope(beyond: Any, height: Any) -> Any:
    """The quotient beyond / height, infinite of the sign of the first where the height is 0."""
    import numpy as np

    ratio = beyond / np.where(height == 0, 1.0, height)
    at_zero = np.where(beyond == 0, 0.0, np.copysign(np.inf, beyond))
    return np.where(height == 0, at_zero, np.where(np.isnan(ratio), 0.0, ratio))


def signs(pair: Pair) -> Ball:
    """E sign sign = E sign E sign + 4 (P(X < h, Y < k) - P(X < h) P(Y < k))."""
    import numpy as np

    one, other = half("sign", pair.first), half("sign", pair.second)
    near = np.abs(pair.correlation.value) <= LARGEST_CORRELATION
    if np.all(near):
        return total((one * other, _plackett(pair)))
    both = steps(pair)
    lone = [half("step", side) for side in (pair.first, pair.second)]
    wide = total((4 * both, -2 * lone[0], -2 * lone[1], Ball(1.0)))
    if not np.any(near):
        return wide
    small = total((one * other, _plackett(pair)))
    error = np.where(near, small.error(), wide.error())
    return Ball(np.where(near, small.value, wide.value), 0.0, error)


def _plackett(pair: Pair) -> Ball:
    """4 (P(X < h, Y < k) - P(X < h) P(Y < k)), the integral of the density over the correlation.

    The integrand exp(-((h + k)^2 / (1 + sin t) + (h - k)^2 / (1 - sin t)) / 4) is at most 1 in
    modulus wherever |Re sin t| < 1, so on the ellipse with half-axes summing to 5 (half lengths of
    the interval) around an interval within [0, asin(1/2)].
    """
    import numpy as np

    h, k = pair.first.value, pair.second.value
    top = np.arctan2(pair.correlation.value, pair.sine.value)
    top = np.clip(top, -0.53, 0.53)
    up, down = 0.25 * (h + k) ** 2, 0.25 * (h - k) ** 2
    found: Any = 0.0
    for node, weight in zip(*rules.legendre(NODES), strict=True):
        sine = np.sin((node + 1) / 2 * top)
        found = found + weight / 2 * np.exp(-up / (1 + sine) - down / (1 - sine))
    value = (2 / pi) * top * found
    heights = pair.first.relative + pair.second.relative + 4 * UNIT
    size = np.where(np.isfinite(h * k), h * h + k * k, 0.0)
    error = np.abs(value) * (
        ulps(NODES) + 4 * heights * size + 2 * (pair.correlation.relative + pair.sine.relative)
    )
    error = error + 2.5e-17 * np.abs(top)
    for part in (pair.first, pair.second, pair.correlation, pair.sine):
        if not part.clean:
            error = error + 2 * np.minimum(1.0, part.absolute)
    return Ball(value, UNIT, error)
