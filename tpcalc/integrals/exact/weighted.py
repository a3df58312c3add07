"""exp(weight) P(X < h, Y < k) by the way with the lowest bound of the error.

Means of exponentials on half-lines are products of a huge exponential and a tiny probability. Up to
a moderate weight the product is taken as it stands; else the wedge is integrated with the weight in
the exponent, or, where one of both bounds says it all, a half-line is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from tpcalc.integrals.exact.ball import Ball, better, root
from tpcalc.integrals.exact.halflines import exponential, standard, tail
from tpcalc.integrals.exact.quadrants import Pair, beyond, steps
from tpcalc.integrals.exact.wedge import wedge

# Up to this weight its exponential times the error of Owen's function is small enough.
LARGEST_WEIGHT = 4.0
# Phi(-9) is 1e-19.
CERTAIN = 9.0


@dataclass(frozen=True, slots=True)
class Corner:
    """Weights, with the exponent of the density, at the edges of a wedge."""

    weight: Ball  # where both Gaussians are at their means
    first: Ball  # where the first is at its edge
    second: Ball  # where the second is
    corner: Ball  # where both are
    # the mean of the second given that the first is 0, times the variance of the first; then
    # standardised
    above: Ball
    beside: Ball  # the other way round

    def scaled(self, variance: Ball, other: Ball, minor: Ball) -> Corner:
        """The same with the drifts over the deviations of what they are the means of."""
        deviation = root(minor)
        above = standard(self.above, root(variance) * deviation)
        return replace(self, above=above, beside=standard(self.beside, root(other) * deviation))


def weighted(pair: Pair, at: Corner) -> Ball:
    """exp(weight) P(X < h, Y < k)."""
    import numpy as np

    found = exponential(at.weight) * steps(pair)
    if not np.any(at.weight.value > LARGEST_WEIGHT):
        return found
    shape = np.shape(found.value + at.corner.value)
    value = np.array(np.broadcast_to(found.value, shape))
    error = np.array(np.broadcast_to(found.error(), shape))
    large = np.broadcast_to(at.weight.value > LARGEST_WEIGHT, shape)

    def cut(x: Any) -> Any:
        if not isinstance(x, Ball):
            return type(x)(*(cut(getattr(x, part.name)) for part in fields(x)))
        absolute = x.absolute if x.clean else np.broadcast_to(x.absolute, shape)[large]
        return Ball(np.broadcast_to(x.value, shape)[large], x.relative, absolute)

    pair, at = cut(pair), cut(at)
    best = Ball(value[large], 0.0, error[large])
    for other, limit in (
        wedge((pair.first, at.above), pair.correlation, pair.sine, at.corner),
        _thin(pair, at),
    ):
        best = better(best, Ball(other, 0.0, limit))
    value[large], error[large] = best.value, best.error()
    return Ball(value, 0.0, error, True)


def _thin(pair: Pair, at: Corner) -> tuple[Any, Any]:
    """The value where one of both bounds says it all; else an infinite bound.

    For rho > 0, if (k - rho h) / s is at least 9, then X < h leaves Y > k a share of less than
    1e-18. For rho < 0 the same holds of -Y, and what is left lies between -k and h.
    """
    import numpy as np

    h, k, rho, s = (part.value for part in (pair.first, pair.second, pair.correlation, pair.sine))
    up, across = beyond(h, k, rho, s), beyond(k, h, rho, s)
    unsure = pair.first.error() + pair.second.error()
    slack = np.where(unsure > 0, unsure / np.where(s > 0, s, 1.0), 0.0)
    clear = np.where(rho > 0, np.abs(k - h), np.abs(k + h)) > 4 * unsure
    slack = np.where((s == 0) & ~clear, np.inf, slack)
    same = (up == 0) & (across == 0) & (unsure == 0)
    first, second = tail(at.weight, pair.first, at.first), tail(at.weight, pair.second, at.second)
    back = tail(at.weight, -1 * pair.first, at.first), tail(at.weight, -1 * pair.second, at.second)
    wide = np.where(rho > 0, np.maximum(up, across), np.abs(up)) - slack
    # Between -k and h: whichever difference is one of small numbers.
    right = (h > 0) & (k < 0)
    between = np.where(right, second.value - back[0].value, first.value - back[1].value)
    value = np.where(up >= across, first.value, second.value)
    value = np.where(rho > 0, value, np.where(up > 0, between, 0.0))
    error = np.where(up >= across, first.error(), second.error())
    apart = np.where(right, second.error() + back[0].error(), first.error() + back[1].error())
    error = np.where(rho > 0, error, np.where(up > 0, apart, 0.0))
    fall = 0.5 * np.minimum(wide * wide, 1e300)
    lost = tail(Ball(at.weight.value - fall), pair.first, Ball(at.first.value - fall))
    return value, np.where((wide > CERTAIN) | same, error + lost.value, np.inf)
