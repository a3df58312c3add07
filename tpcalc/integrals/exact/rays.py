"""Means of real powers of the positive part of centred Gaussians."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import gamma, lgamma, log, pi
from typing import Any

from tpcalc.integrals.exact.ball import UNIT, Ball, root, ulps

STEP = 1 / 16
REACH = 6.5
BLOCK = 2**14  # values held at a time


def single(exponent: Fraction, variance: Ball) -> Ball:
    """E max(x, 0)^p = (2 q)^(p / 2) Gamma((p + 1) / 2) / (2 sqrt pi)."""
    p = float(exponent)
    half = Ball(0.5 / pi**0.5, 4 * UNIT, 0.0, True)
    return _scale(variance, p, 2) * Ball(gamma((p + 1) / 2), 32 * UNIT, 0.0, True) * half


def _relative(x: Ball, exponent: float) -> Any:
    import numpy as np

    off = np.abs(x.absolute / x.value)
    return np.where(off < 0.5, abs(exponent) * off * (1 + 2 * (abs(exponent) + 1) * off), np.inf)


@lru_cache(maxsize=4)
def _nodes(halvings: int) -> Any:
    """Tanh-sinh nodes on [0, 1], in rows: distances from the left and right end, weights."""
    from math import cosh, exp, sinh

    import numpy as np

    step = STEP / 2**halvings
    out = []
    count = int(REACH / step)
    for i in range(-count, count + 1):
        if halvings and i % 2 == 0:
            continue  # those of the coarser rule
        u = i * step
        inner = pi / 2 * sinh(u)
        if abs(inner) > 350:
            continue
        left, right = 1 / (1 + exp(-2 * inner)), 1 / (1 + exp(2 * inner))
        weight = step * pi / 2 * cosh(u) * 2 * left * right
        out.append((left, right, weight))
    return np.array(out).T


def _angular(p: float, q: float, opening: Any, away: Any) -> tuple[Any, Any]:
    """int_0^w sin(t)^p sin(w - t)^q dt by two rules, the first with half the step of the second."""
    import numpy as np

    shape = np.shape(opening)
    opening, away = np.ravel(opening), np.ravel(away)
    totals: list[Any] = []
    for halvings in (0, 1):
        found: Any = 0.0
        nodes = _nodes(halvings)[..., None]
        together = max(1, BLOCK // max(opening.size, 1))
        for first in range(0, nodes.shape[1], together):
            left, right, weight = nodes[:, first : first + together]
            t, rest = left * opening, right * opening
            one = np.where(t < 1.6, np.sin(t), np.sin(rest + away))
            other = np.where(rest < 1.6, np.sin(rest), np.sin(t + away))
            found = found + (weight * np.power(one, p) * np.power(other, q)).sum(axis=0)
        totals.append(np.reshape(found * opening, shape)[()])
    coarse, between = totals
    return 0.5 * coarse + between, coarse


def double(
    exponents: tuple[Fraction, Fraction], variance: Ball, other: Ball, cov: Ball, minor: Ball
) -> Ball:
    """E max(x, 0)^p max(y, 0)^q for a centred pair.

    In polar coordinates the radial integral is a Gamma function; the angular one,
    int_0^w sin(t)^p sin(w - t)^q dt over the opening w = pi - acos(rho), is taken by the tanh-sinh
    rule, which does not mind the roots at its ends. Halving the step squares the error of that
    rule, so the difference from the coarser one bounds it.
    """
    import numpy as np

    p, q = (float(exponent) for exponent in exponents)
    deviation = root(minor)
    opening = np.arctan2(deviation.value, -cov.value)
    away = np.arctan2(deviation.value, cov.value)
    fine, coarse = _angular(p, q, opening, away)
    angular = Ball(
        fine,
        ulps(8) * (4 + abs(p) + abs(q))
        + 2 * (abs(p) + abs(q) + 1) * (ulps(4) + cov.relative + deviation.relative),
        np.abs(fine - coarse),
        True,
    )
    total = (p + q) / 2
    height = lgamma(total + 1) + total * log(2.0) - log(2 * pi)
    front = Ball(np.exp(height), ulps(8) * (1 + abs(height)), 0.0, True)
    scale = _scale(variance, p) * _scale(other, q)
    return front * scale * angular


def _scale(variance: Ball, p: float, times: int = 1) -> Ball:
    """(times variance)^(p / 2)."""
    import numpy as np

    value = np.power(times * variance.value, p / 2)
    absolute: Any = 0.0
    if not variance.clean:
        absolute = abs(value) * _relative(variance, p / 2)
    spread = abs(p) / 2 * variance.relative * (1 + abs(p) * variance.relative) + ulps(4)
    return Ball(value, spread, absolute, True)
