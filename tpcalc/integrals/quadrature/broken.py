"""Averages of broken lines: functions of constant slope between kinks, few or many.

The slope f' of a broken line changes by J_i at its kinks k_i, so f'' is a sum of deltas, and for u
and v of variance q and covariance q cos(t)

    E f'(u) f'(v) = E f'(u)^2 - int_0^t sum_ij J_i J_j exp(-Q_ij(w)) dw / (2 pi),

Q the exponent of the density of the pair at the two kinks. Once more integrated, the gap is the
integral of a known function of one angle.
"""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.carried import Carried, Moments
from tpcalc.integrals.quadrature.nodes import gauss_legendre
from tpcalc.integrals.quadrature.shape import Shape

REACH = 9.0  # standard deviations
MOVE = 1e-6  # of the variance, for a derivative
FEW = np.array([0.0, 1 / 16, 1 / 4, 1.0])  # ends of panels for one kink, of the angle
MANY = np.concatenate([[0.0], 2.0 ** np.arange(-6, 1)])
FLAT = 40.0  # an exponential of minus this is nothing
SAMPLES = 2.0 ** np.arange(-6, 7)


class BrokenLine(NamedTuple):
    """A function of constant slope between kinks."""

    kinks: Array  # the kinks, in order
    slopes: Array  # the slope left of the first, between each two, and right of the last
    values: Array  # the function at the kinks
    reach: float  # how far from 0 that is so


def broken_line(function: Shape, slope: Shape) -> BrokenLine | None:
    """A function as a broken line; None where its slope is not constant between kinks."""
    found = {f.place for part in (function, slope) for f in part.features if f.kink}
    if not found:
        return None
    kinks = np.array(sorted(found))
    gaps = np.diff(kinks)[:, None]
    inner = kinks[:-1, None] + gaps * (0.5 + 0.49 * np.tanh(np.linspace(-4.0, 4.0, 17)))
    outer = [kinks[0] - SAMPLES[::-1], kinks[-1] + SAMPLES]
    with np.errstate(all="ignore"):
        sampled = [slope.values(outer[0]), *slope.values(inner), slope.values(outer[1])]
        values = function.values(kinks)
    flat = [bool((row == row[0]).all()) for row in sampled]
    if not all(flat[1:-1]) or not np.isfinite(values).all():
        return None
    slopes = np.array([row[0] for row in sampled])
    slopes[0] = sampled[0][-1]
    if flat[0] and flat[-1]:
        return BrokenLine(kinks, slopes, values, inf)
    reach = float(min(-kinks[0], kinks[-1]))
    return BrokenLine(kinks, slopes, values, reach) if reach > 0.0 else None


def broken_moments(line: BrokenLine, q: float) -> Moments | None:
    """The moments of one layer."""
    from scipy.special import ndtr

    spread = sqrt(q)
    if line.reach < REACH * spread:
        return None
    ends = np.concatenate([[-inf], line.kinks, [inf]]) / spread
    inside = np.where(np.isfinite(ends), ends, 0.0)
    density = np.exp(-0.5 * ends * ends) / sqrt(2.0 * pi)
    chance = np.where(ends[:-1] > 0.0, ndtr(-ends[:-1]) - ndtr(-ends[1:]), np.diff(ndtr(ends)))
    first = spread * -np.diff(density)
    second = q * (chance - np.diff(inside * density))
    slopes = line.slopes
    height = np.concatenate([line.values[:1], line.values]) - slopes * np.concatenate(
        [line.kinks[:1], line.kinks]
    )
    at_kinks, jumps = density[1:-1] / spread, np.diff(slopes)
    terms = [
        [height * chance, slopes * first],
        [height**2 * chance, 2.0 * height * slopes * first, slopes**2 * second],
        [slopes**2 * chance],
    ]
    value = [float(sum(part.sum() for part in row)) for row in terms]
    error = [16.0 * EPS * float(sum(np.abs(part).sum() for part in row)) for row in terms]
    rates = [
        0.5 * float(jumps @ at_kinks),
        value[2] + float((jumps * line.values) @ at_kinks),
        0.5 * float((np.diff(slopes**2) * line.kinks / q) @ at_kinks),
    ]
    return Moments(*(Carried(*part) for part in zip(value, error, rates, strict=True)))


def broken_gap(line: BrokenLine, q: float, delta: float) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) for variances q and the covariance q - delta.

    Source: Price, A useful theorem for nonlinear devices having Gaussian inputs.
    """
    moments = broken_moments(line, q)
    if moments is None:
        return None
    near = np.abs(line.kinks) < REACH * sqrt(q)
    kinks, jumps = line.kinks[near], np.diff(line.slopes)[near]
    variances = np.array([q, q * (1.0 + MOVE)])
    # E f'^2 at both: the second by its derivative.
    slope = moments.slope
    slopes = slope.value + slope.by_variance * (variances - q)
    ends = 2.0 * np.arcsin(np.sqrt(0.5 * delta / variances))
    lost, corner, unseen = _corners(kinks, jumps, variances, ends)
    value = delta * slopes - lost * variances
    rounding = EPS * (8.0 * delta * slope.value + 16.0 * abs(lost[0]) * q)
    error = delta * slope.error + rounding + unseen * q
    change = (value[1] - value[0]) / (variances[1] - q)
    return Carried(float(value[0]), float(error), float(change), slope.value - corner)


def _corners(
    kinks: Array, jumps: Array, variances: Array, ends: Array
) -> tuple[Array, float, float]:
    """What kinks take off: of the gap over q, of E f'(u) f'(v), and the error of the first."""
    rule = gauss_legendre()
    edges = ends[:, None] * (FEW if len(kinks) < 2 else MANY)
    half = 0.5 * np.diff(edges)[..., None]
    angle = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None] + half * rule.points
    one, other = np.triu_indices(len(kinks))
    apart, together = kinks[one] - kinks[other], kinks[one] + kinks[other]
    weights = jumps[one] * jumps[other] * np.where(one == other, 1.0, 2.0)
    least = apart * apart / np.sin(0.5 * ends[0]) ** 2 + together * together
    close = least <= 8.0 * variances[1] * FLAT
    apart, together, weights = apart[close], together[close], weights[close]
    scale = variances[:, None, None, None]
    near, far = np.sin(0.5 * angle)[..., None] ** 2, np.cos(0.5 * angle)[..., None] ** 2
    exponent = (apart * apart / near + together * together / far) / (8.0 * scale)
    found = np.exp(-exponent) @ weights / (2.0 * pi)
    top = ends[:, None, None]
    drop = 2.0 * np.sin(0.5 * (top + angle)) * np.sin(0.5 * (top - angle))
    weighted = found * drop * half
    lost = (weighted @ rule.weights).sum(axis=1)
    unseen = np.abs(weighted[0] @ rule.judges).max(axis=1).sum()
    corner = ((found * half)[0] @ rule.weights).sum()
    return lost, float(corner), float(unseen)
