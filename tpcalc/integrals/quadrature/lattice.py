"""Averages of smooth functions of Gaussians by the trapezoidal rule.

For a function that is analytic in a strip around the real axis the error of the rule falls as
exp(-2 pi r / step), r the width of the strip: with half the step it is squared. Sums over every
second and every fourth node show how fast it falls.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, inf, log2, pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.integrals import rules
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.carried import Carried, Moments
from tpcalc.integrals.quadrature.decay import shortfall
from tpcalc.integrals.quadrature.shape import Shape, unit_of

REACH = 9.0  # standard deviations; what is beyond is judged by what is near the end
COARSEST = 0.42  # step, of the smallest standard deviation
SHARE = 0.2  # step, of the smallest unit of the function
STEEP = 0.15  # the same for squares of slopes
FINER = (1.0, 0.5, 0.25)
MOST = 700_000  # nodes in the plane
LONGEST = 8192  # nodes on a line
ENOUGH = 4e-13  # relative error at which a finer step is not tried
SAFETY = 4.0
ROUNDS = 8.0
ROWS = 2**15  # entries of a block that stays in the cache
LAST = 0.5  # standard deviations near the end; there is more in them than beyond
TINY, NEAR = 3e-3, 0.1  # of the smallest unit: steps over which the slope is a polynomial
RULES = ((TINY, 4, 4), (0.02, 6, 5), (NEAR, 8, 8))  # up to a step: nodes across, nodes along it


class Line(NamedTuple):
    """The rule for one standard Gaussian."""

    step: float  # the distance of nodes
    z: Array  # the nodes
    weights: Array
    rates: Array  # z^2 - 1: weights of a derivative in the variance
    signs: Array  # in columns, what picks the sums over every second and every fourth node
    ends: Array  # which nodes are near the ends


@lru_cache(maxsize=256)
def _line(step: float) -> Line:
    count = ceil(REACH / step)
    spend(f"an integral over {count:.0e} nodes", memory=64 * count, hint="Take smaller moments.")
    index = np.arange(-count, count + 1, dtype=np.float64)
    z = step * index
    weights = step / sqrt(2.0 * pi) * np.exp(-0.5 * z * z)
    ends = np.where(np.abs(z) > REACH - LAST, 1.0, 0.0)
    return Line(step, z, weights, z * z - 1.0, _signs(index), ends)


def _signs(index: Array) -> Array:
    every_second = np.where(index % 2 == 0, 1.0, -1.0)
    return np.stack([every_second, np.where(index % 4 == 0, 3.0, -1.0)], axis=1)


def _on_ladder(step: float) -> float:
    """The next smaller of some steps, so that tables are used again."""
    return float(2.0 ** (floor(4.0 * log2(step)) / 4.0))


def line_of(step: float) -> Line | None:
    """A rule with at most this step; None where it takes too many nodes."""
    step = _on_ladder(step)
    return _line(step) if 2 * ceil(REACH / step) < LONGEST else None


def lattice_moments(function: Shape, slope: Shape, q: float) -> Moments | None:
    """The moments of one layer, all from the same nodes.

    Source: Trefethen, Weideman, The exponentially convergent trapezoidal rule, theorem 5.1.
    """
    spread = sqrt(q)
    start = min(COARSEST, STEEP * unit_of(function, slope) / spread)
    for share in FINER:
        line = line_of(start * share)
        if line is None:
            return None
        x = spread * line.z
        f, g = function.values(x), slope.values(x)
        rows = np.stack([f, f * f, g * g]) * line.weights
        sizes = np.abs(rows)
        size, off = sizes.sum(axis=1), np.abs(rows @ line.signs)
        beyond, rates = sizes @ line.ends, rows @ line.rates / (2.0 * q)
        errors = [
            shortfall(size[k], off[k, 0], off[k, 1]) + 8.0 * EPS * size[k] + 2.0 * beyond[k]
            for k in range(3)
        ]
        if all(error <= ENOUGH * own for error, own in zip(errors, size, strict=True)):
            values = rows.sum(axis=1)
            return Moments(
                *(Carried(float(values[k]), float(errors[k]), float(rates[k])) for k in range(3))
            )
    return None


def lattice_gap(function: Shape, slope: Shape, q: float, delta: float) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) for variances q and the covariance q - delta.

    Source: Trefethen, Weideman, The exponentially convergent trapezoidal rule, theorem 5.1.
    """
    spread, step = sqrt(q - 0.5 * delta), sqrt(0.5 * delta)
    unit = unit_of(function, slope)
    short = step <= NEAR * unit
    found = None
    if not (short and step <= TINY * max(unit, spread)):
        found = _by_values(function, spread, step, unit)
    if short and (found is None or found.error > ENOUGH * found.value):
        found = _by_slopes(slope, spread, step, unit) or found
    return found


class _Plane(NamedTuple):
    """Sums over the nodes of a plane: x along a line, y > 0 across it."""

    along: Array  # for each x the sum over y
    t: Array  # the nodes y, standardised
    profile: Array  # for each y the sum over x, with the weight of y
    unseen: float  # the error of the sums over y


def _by_values(function: Shape, spread: float, step: float, unit: float) -> Carried | None:
    """Squares of differences of values on one lattice, in both directions."""
    start = min(COARSEST * min(spread, step), SHARE * unit)
    for share in FINER[:2]:
        if spread == 0.0 or 2.0 * REACH**2 * spread * step > MOST * (start * share) ** 2:
            return None
        line = _line(_on_ladder(start * share / spread))
        mesh, half = line.step * spread, len(line.z) // 2
        wide = ceil(REACH * step / mesh)
        x = mesh * np.arange(-half - wide, half + wide + 1, dtype=np.float64)
        values = function.values(x)
        found = _joined(_squares(values, line, wide, mesh / step), line, spread, step)
        if found.error <= ENOUGH * found.value:
            q = spread * spread + step * step
            square = mesh / sqrt(2.0 * pi * q) * float(values**2 @ np.exp(-0.5 / q * x * x))
            # Each difference is rounded as its two values are.
            noise = ROUNDS * EPS * sqrt(found.value * square)
            return found._replace(error=found.error + noise)
    return None


def _squares(values: Array, line: Line, wide: int, mesh: float) -> _Plane:
    """[f(x + y) - f(x - y)]^2 at the nodes."""
    index = np.arange(1, wide + 1, dtype=np.float64)
    t = mesh * index
    weights = mesh / sqrt(2.0 * pi) * np.exp(-0.5 * t * t)
    windows = np.lib.stride_tricks.sliding_window_view(values, len(line.z))
    right, left = windows[wide + 1 :], windows[wide - 1 :: -1]
    along, profile = np.zeros(len(line.z)), np.empty(wide)
    rows = max(1, ROWS // len(line.z))
    for start in range(0, wide, rows):
        some = slice(start, start + rows)
        change = right[some] - left[some]
        change *= change
        profile[some] = change @ line.weights
        along += weights[some] @ change
    profile *= weights
    off = np.abs(profile @ _signs(index))
    unseen = shortfall(float(profile.sum()), float(off[0]), float(off[1]))
    return _Plane(along, t, profile, unseen + 2.0 * float(profile[t > REACH - LAST].sum()))


def _joined(plane: _Plane, line: Line, spread: float, step: float) -> Carried:
    row = plane.along * line.weights
    value = float(row.sum())
    if not value > 0.0:
        return Carried(value, inf, 0.0)
    off = np.abs(row @ line.signs)
    error = shortfall(value, float(off[0]), float(off[1])) + plane.unseen
    error += 2.0 * float(row @ line.ends) + 16.0 * EPS * value
    along = float(row @ line.rates) / (2.0 * spread * spread)
    across = float(plane.profile @ (plane.t * plane.t - 1.0)) / (2.0 * step * step)
    return Carried(value, error, along, 0.5 * (across - along))


def _by_slopes(slope: Shape, spread: float, step: float, unit: float) -> Carried | None:
    """Squares of integrals of the slope over short steps, by rules of few nodes."""
    known = [(nodes, within) for most, nodes, within in RULES if step <= most * unit]
    for share, (nodes, within) in [*((1.0, rule) for rule in known), (0.5, known[-1])]:
        line = line_of(min(COARSEST, STEEP * share * unit / spread))
        if line is None:
            return None
        plane = _short_steps(slope, line, spread, step, nodes, within)
        found = _joined(plane, line, spread, step)
        if found.error <= ENOUGH * found.value:
            return found
    return None


def _short_steps(
    slope: Shape, line: Line, spread: float, step: float, nodes: int, within: int
) -> _Plane:
    across, inside = rules.normal(2 * nodes), rules.expanding(within)
    points, weights = (part[nodes:] for part in across)  # of even functions, over the positive half
    shift = step * (points[:, None] * inside.points)
    values = slope.values((spread * line.z)[:, None, None] + shift)
    change = (values @ inside.weights) * (step * points)
    last = (values @ inside.coefficients[:, -1]) * (2.0 * step * points)
    squares = change * change
    profile = (line.weights @ squares) * weights
    # Each rule is twice as good as the last polynomial that it sees is small.
    first = float(line.weights @ (last * last) @ weights)
    second, total = 2.0 * float(profile @ _last(nodes)), float(profile.sum())
    unseen = SAFETY * (first + second * second / total) if total > 0.0 else inf
    return _Plane(squares @ weights, points, profile, unseen)


@lru_cache(maxsize=8)
def _last(nodes: int) -> Array:
    """The last orthonormal polynomial that a rule for even functions sees, at its nodes."""
    points = rules.normal(2 * nodes)[0][nodes:]
    return np.asarray(rules.hermite(points, 2 * nodes - 2)[-1])
