"""Averages of functions of Gaussians with one kink, by rules on both of its sides.

For two Gaussians s = x + y and t = x - y, with x and y > 0 independent, the plane falls into the
parts where both are above the kink, both below, and one on each side. In each of them f is
analytic in the coordinates taken, so panels with few nodes are enough.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals import rules
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.carried import Carried, Moments
from tpcalc.integrals.quadrature.decay import shortfall
from tpcalc.integrals.quadrature.shape import Shape, unit_of

POINTS = 16
REACH = 9.0  # standard deviations
WIDTH = 1.0  # of a panel beside the kink, in units of the function
LONGEST = 1.6  # of a panel, in standard deviations
GROWTH = 1.3  # a panel at a distance from the kink may be this much of it long
FINER = (1.0, 0.5)
MOST = 800_000  # nodes in one part of the plane
ENOUGH = 4e-13
ROUNDS = 8.0
LEAST = 1e-14  # of a standard deviation: shorter first panels hold nothing that counts
LAST = 0.5  # standard deviations near the end; there is more in them than beyond
NEAR = 0.02  # of the unit, or of x: a step over which slope or density are polynomials
ACROSS = 10  # nodes for such steps
WITHIN = 6  # nodes along one


class _Side(NamedTuple):
    """Nodes on a half-line that begins at 0."""

    distance: Array  # the nodes
    weights: Array
    lengths: Array | None  # of the panels; None where there is one rule for the whole half-line
    density: Array | float = 1.0  # what the weights hold beside those of the rule

    def weighted(self, density: Array) -> _Side:
        """The side with a density in its weights."""
        return self._replace(weights=self.weights * density, density=density)

    def unseen(self, row: Array) -> float:
        """The error of a sum, from the coefficients of the integrand on polynomials."""
        size = float(np.abs(row).sum())
        if size == 0.0:
            return 0.0
        if self.lengths is None:
            series = np.abs(row @ _half_rule().coefficients)
            return shortfall(size, float(series[-1]), float(series[ACROSS // 2]))
        values = (row / self.weights * self.density).reshape(-1, POINTS)
        series = np.abs(values @ rules.expanding(POINTS).coefficients)
        halved = float(series[:, -2:].max(axis=1) @ self.lengths)
        return shortfall(size, halved, float(series[:, 7:9].max(axis=1) @ self.lengths))


def _side(end: float, near: float, longest: float, growth: float = GROWTH) -> _Side:
    """Panels from 0 to the end, longer and longer."""
    if end <= 0.0:
        return _Side(np.empty(0), np.empty(0), np.empty(0))
    marks = [0.0]
    while marks[-1] < end:
        marks.append(marks[-1] + min(max(near, growth * marks[-1]), longest))
    edges = np.array(marks) * (end / marks[-1])
    lengths = np.diff(edges)
    rule = rules.expanding(POINTS)
    middle, half = 0.5 * (edges[1:] + edges[:-1])[:, None], 0.5 * lengths[:, None]
    return _Side((middle + half * rule.points).ravel(), (half * rule.weights).ravel(), lengths)


@lru_cache(maxsize=1)
def _half_rule() -> rules.Rule:
    """The Gauss rule for N(0, 1) on the positive half-line.

    Source: Gautschi, On generating orthogonal polynomials, section 2.2 (discretized Stieltjes).
    """
    fine = _side(14.0, 0.25, 0.5)
    t, chance = fine.distance, fine.weights * _density(fine.distance, 1.0)
    before, here = np.zeros_like(t), np.ones_like(t) / sqrt(chance.sum())
    diagonal, beside, norm = [], [], 0.0
    for _ in range(ACROSS):
        diagonal.append(float(chance @ (t * here * here)))
        ahead = (t - diagonal[-1]) * here - norm * before
        norm = sqrt(float(chance @ (ahead * ahead)))
        beside.append(norm)
        before, here = here, ahead / norm
    jacobi = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    points, vectors = np.linalg.eigh(jacobi)
    # Row k of the vectors is the polynomial of degree k at the nodes, times the root of the weight.
    weights = vectors[0] ** 2 * chance.sum()
    return rules.Rule(points, weights, (vectors / vectors[0]).T / 1.0)


def _half_line(step: float) -> _Side:
    rule = _half_rule()
    return _Side(step * rule.points, rule.weights, None)


def centre(function: Shape, slope: Shape) -> float | None:
    """The place of the only kink of a function and its slope, or where a smooth one varies."""
    features = [feature for part in (function, slope) for feature in part.features]
    kinks = {feature.place for feature in features if feature.kink}
    places = kinks or {feature.place for feature in features}
    return places.pop() if len(places) == 1 else None


def _density(x: Array, spread: float) -> Array:
    z = x / spread
    return np.asarray(np.exp(-0.5 * z * z)) / (sqrt(2.0 * pi) * spread)


def kink_moments(function: Shape, slope: Shape, kink: float, q: float) -> Moments | None:
    """The moments of one layer, all from the same nodes.

    Source: Davis, Rabinowitz, Methods of Numerical Integration, 2.7 (Gauss rules on panels).
    """
    spread, near = sqrt(q), WIDTH * unit_of(function, slope)
    for share in FINER:
        value, rate, error, size = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
        for sign in (1.0, -1.0):
            end = REACH * spread - sign * kink
            if end <= 0.0:
                continue
            side = _side(end, near * share, LONGEST * share * spread, GROWTH * share)
            x = kink + sign * side.distance
            f, g = function.values(x), slope.values(x)
            density = _density(x, spread)
            rows = np.stack([f, f * f, g * g]) * (side.weights * density)
            sizes = np.abs(rows)
            value += rows.sum(axis=1)
            rate += rows @ (x * x / q - 1.0) / (2.0 * q)
            size += sizes.sum(axis=1)
            error += 2.0 * sizes[:, np.abs(x) > (REACH - LAST) * spread].sum(axis=1)
            error += [side.unseen(row) for row in rows]
        error += 8.0 * EPS * size
        if (error <= ENOUGH * size).all():
            parts = zip(value.tolist(), error.tolist(), rate.tolist(), strict=True)
            return Moments(*(Carried(*part) for part in parts))
    return None


class _Steps(NamedTuple):
    """What there is to integrate."""

    function: Shape  # f
    slope: Shape | None  # its derivative where differences are integrals of it, else None
    kink: float
    spread: float  # the standard deviation of x
    step: float  # that of y
    near: float  # the length of the first panel beside the kink
    longest: float  # of a panel, in standard deviations
    growth: float  # the length of a panel at a distance from the kink, of that distance


class _Part(NamedTuple):
    """One part of the plane: squared differences and the density of x on a grid of two sides."""

    terms: Array  # the squares times the density of x
    first: _Side  # the side along the rows
    second: _Side  # the side along the columns, with the density of y in its weights
    x: tuple[float, float, float]  # x = x0 + x1 a + x2 b for the distances a and b
    y: tuple[float, float]  # y = y1 a + y2 b
    rough: float = 0.0  # the error of the integrals of the slope


def kink_gap(
    function: Shape, slope: Shape, kink: float, variances: tuple[float, float], moments: Moments
) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) for variances q and the covariance q - delta.

    Source: Davis, Rabinowitz, Methods of Numerical Integration, 2.7 (Gauss rules on panels).
    """
    q, delta = variances
    spread, step, unit = sqrt(q - 0.5 * delta), sqrt(0.5 * delta), unit_of(function, slope)
    if spread == 0.0:
        return None
    # What rounding of f does to the gap, relative to it, and of which size the gap is about.
    square, likely = moments.square.value, delta * moments.slope.value
    by_slopes = ROUNDS * EPS * sqrt(square) > 0.25 * ENOUGH * sqrt(likely)
    by_slopes = by_slopes and step <= NEAR * unit
    near = max(WIDTH * unit, LEAST * min(spread, step))
    for share in FINER:
        lengths = share * near, LONGEST * share, GROWTH * share
        steps = _Steps(function, None, kink, spread, step, *lengths)
        found = _summed(steps._replace(slope=slope) if by_slopes else steps)
        if found is None:
            return None
        if found.error <= ENOUGH * found.value:
            noise = 0.0 if by_slopes else ROUNDS * EPS * sqrt(found.value * square)
            return found._replace(error=found.error + noise)
    return None


def _summed(steps: _Steps) -> Carried | None:
    value, error, along, across = 0.0, 0.0, 0.0, 0.0
    a, h = steps.spread, steps.step
    for part in (_one_side(steps, 1.0), _one_side(steps, -1.0), _both_sides(steps)):
        if part is None:
            return None
        own, off, x_square, y_square = _squares(part)
        value += own
        error += off
        along += x_square / (a * a) - own
        across += y_square / (h * h) - own
    if not value > 0.0:
        return Carried(value, inf, 0.0)
    along, across = along / (2.0 * a * a), across / (2.0 * h * h)
    return Carried(value, error + 16.0 * EPS * value, along, 0.5 * (across - along))


def _squares(part: _Part) -> tuple[float, float, float, float]:
    """The sum over a part with its error, and the same with x^2 and y^2 as factors."""
    first, second = part.first, part.second
    rows = (part.terms @ second.weights) * first.weights
    columns = (first.weights @ part.terms) * second.weights
    a, b = first.distance, second.distance
    cross = 2.0 * float((first.weights * a) @ part.terms @ (second.weights * b))
    value, (x0, x1, x2), (y1, y2) = float(rows.sum()), part.x, part.y
    x_square = float(rows @ (x0 + x1 * a) ** 2 + columns @ (2.0 * x0 * x2 * b + (x2 * b) ** 2))
    y_square = float(rows @ (y1 * a) ** 2 + columns @ (y2 * b) ** 2)
    error = first.unseen(rows) + second.unseen(columns) + part.rough
    return value, error, x_square + x1 * x2 * cross, y_square + y1 * y2 * cross


def _one_side(steps: _Steps, sign: float) -> _Part | None:
    """Where s and t are on the same side: t at a distance p from the kink, s at p + 2 y."""
    a, h, kink = steps.spread, steps.step, steps.kink
    end = max(REACH * a - sign * kink, 0.0)
    first = _side(end, steps.near, steps.longest * a, steps.growth)
    if steps.slope is None or h > NEAR * a:
        longest = steps.longest * min(a, h)
        second = _side(min(REACH * h, end), 0.5 * steps.near, longest, steps.growth)
        second = second.weighted(_density(second.distance, h))
    else:
        second = _half_line(h)
    p, y = first.distance[:, None], second.distance
    if p.size * y.size > MOST:
        return None
    terms = _density(kink + sign * (p + y), a)
    rough = 0.0
    if steps.slope is None:
        change = steps.function.values(kink + sign * (p + 2.0 * y))
        change = change - steps.function.values(kink + sign * p)
    else:
        change, doubt = _by_slope(steps.slope, kink + sign * p, sign * y)
        rough = 2.0 * float(first.weights @ (terms * np.abs(change) * doubt) @ second.weights)
    terms *= change
    terms *= change
    return _Part(terms, first, second, (kink, sign, sign), (0.0, 1.0), rough)


def _by_slope(slope: Shape, t: Array, y: Array) -> tuple[Array, Array]:
    """f(t + 2 y) - f(t) as an integral of f', and the error of the rule."""
    rule = rules.expanding(WITHIN)
    values = slope.values(t[..., None] + y[:, None] * (1.0 + rule.points))
    change = (values @ rule.weights) * y
    last = (values @ rule.coefficients[:, -1]) * (2.0 * y)
    size = np.abs(np.where(change == 0.0, 1.0, change))
    return change, last * last / size


def _both_sides(steps: _Steps) -> _Part | None:
    """Where s is above the kink and t below: both at distances from it."""
    a, h, kink = steps.spread, steps.step, steps.kink
    near, longest = steps.near, 2.0 * steps.longest * a * h / sqrt(a * a + h * h)
    ends = (min(2.0 * REACH * h, REACH * (a + h) - sign * kink) for sign in (1.0, -1.0))
    first, second = (_side(max(end, 0.0), near, longest, steps.growth) for end in ends)
    above, below = first.distance[:, None], second.distance
    if above.size * below.size > MOST:
        return None
    change = steps.function.values(kink + above) - steps.function.values(kink - below)
    z, w = (kink + 0.5 * (above - below)) / a, (above + below) * (0.5 / h)
    terms = np.exp(-0.5 * (z * z + w * w)) / (4.0 * pi * a * h)
    terms *= change
    terms *= change
    return _Part(terms, first, second, (kink, 0.5, -0.5), (0.5, 0.5))
