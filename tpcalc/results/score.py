"""Differences in standard errors that are estimated themselves, as those of a Gaussian."""

from __future__ import annotations

import math

# Degrees of freedom from which on Student's t is a Gaussian to the digits that are printed.
MANY = 1e4
TINY = 1e-280  # chances below leave the floats


def normal_score(gap: float, *errors: tuple[float, float]) -> float:
    """The z at which a Gaussian is as rarely beyond as a difference of these errors is.

    A difference over a standard error from few seeds follows Student's t, which is far from 0 much
    more often: of two seeds one in 61 is beyond 39, as of a Gaussian beyond 2.4.

    Source: Welch, The generalization of Student's problem (1947); Satterthwaite (1946), for the
        degrees of freedom of a sum.

    Example:
        >>> round(normal_score(39.1, (1.0, 1)), 2), round(normal_score(2.0, (1.0, math.inf)), 2)
        (2.4, 2.0)
    """
    scale = math.hypot(*(error for error, _ in errors))
    if scale == 0 or not math.isfinite(gap / scale):
        return 0.0 if gap == 0 else math.inf
    t = gap / scale
    parts = [(error / scale) ** 4 / freedom for error, freedom in errors]
    freedom = 1 / sum(parts) if sum(parts) > 1 / MANY else math.inf
    if t == 0 or freedom == math.inf:
        return t
    from scipy.special import ndtri, ndtri_exp, stdtr

    chance = float(stdtr(freedom, -t))
    if chance > TINY:
        return float(-ndtri(chance))
    return float(-ndtri_exp(_log_tail(t, freedom)))


def _log_tail(t: float, freedom: float) -> float:
    """The logarithm of the chance that Student's t is above a large t."""
    from scipy.special import betaln, hyp2f1

    # Half the incomplete beta function, as a series that stays finite where the chance is not a
    # positive number in floats.
    a, b = freedom / 2, 0.5
    x = -2 * math.log(math.hypot(1.0, t / math.sqrt(freedom)))
    series = float(hyp2f1(a, 1 - b, a + 1, math.exp(x)))
    return float(a * x - math.log(2 * a) - betaln(a, b) + math.log(series))
