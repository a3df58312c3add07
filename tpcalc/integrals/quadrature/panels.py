"""Panels of many integrals over z at once, graded around the points where an integrand varies.

A panel is kept as an offset from such a point, and the values of the integrand's variables at that
point are kept exactly: next to a kink no digits are lost, however fine the panel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.nodes import gauss_legendre

GROWTH = 2.0  # a panel next to one of distance t from a bend may be this many t long
SLIVER = 0.3
GRADED = np.array([0.0, 1 / 64, 1 / 16, 1 / 4, 1.0])
HALVES = np.array([0.0, 0.5, 1.0])


class Bends(NamedTuple):
    """Points where the integrands of n problems vary: arrays of shape (n, number of points)."""

    place: Array  # the point on the axis of z; infinite where there is none
    first: Array  # the length of the first panel beside it
    finest: Array  # the shortest panel that the rounding of the variable allows
    base: Array  # for each variable its value there, of shape (variables, n, points)


class Panels(NamedTuple):
    """Panels [anchor + lower, anchor + upper]: arrays over panels."""

    problem: NDArray[np.intp]  # the integral it belongs to
    anchor: Array  # a point near it
    lower: Array  # offset of its lower end
    upper: Array  # offset of its upper end
    finest: Array  # no panel shorter than this is worth it
    base: Array  # the values of the variables at the anchor, of shape (variables, panels)

    @property
    def offsets(self) -> Array:
        """The Gauss points of each panel, from its anchor."""
        half = 0.5 * (self.upper - self.lower)
        return (0.5 * (self.upper + self.lower))[:, None] + half[:, None] * gauss_legendre().points

    def at(self, index: Any) -> Panels:
        """Some of the panels."""
        return Panels(
            self.problem[index],
            self.anchor[index],
            self.lower[index],
            self.upper[index],
            self.finest[index],
            self.base[:, index],
        )


def panels(bends: Bends, origin: Array, reach: float) -> Panels:
    """Cover [-reach, reach] for every problem."""
    place, first, finest, base = _sorted(bends, origin, reach)
    count = len(place)
    middle = 0.5 * (place[:, :-1] + place[:, 1:])
    edge = np.full((count, 1), reach)
    below = np.concatenate([-edge, middle], axis=1)
    above = np.minimum(np.concatenate([middle, edge], axis=1), reach)
    inside = np.isfinite(place)
    rows, columns = np.nonzero(inside)
    rows, columns = np.tile(rows, 2), np.tile(columns, 2)
    half = len(rows) // 2
    sign = np.ones(len(rows))
    sign[:half] = -1.0
    anchor = place[rows, columns]
    limit = np.where(sign < 0, anchor - below[rows, columns], above[rows, columns] - anchor)
    return _march(
        Panels(rows, anchor, sign, limit, finest[rows, columns], base[:, rows, columns]),
        first[rows, columns],
    )


def _sorted(bends: Bends, origin: Array, reach: float) -> Bends:
    """The bends in reach by place; the origin where there are none."""
    place = np.where(np.abs(bends.place) < reach, bends.place, np.inf)
    count = place.shape[0]
    lonely = np.where(np.isfinite(place).any(axis=1), np.inf, 0.0)[:, None]
    place = np.concatenate([place, lonely], axis=1)
    first = np.concatenate([bends.first, np.full((count, 1), np.inf)], axis=1)
    finest = np.concatenate([bends.finest, np.zeros((count, 1))], axis=1)
    base = np.concatenate([bends.base, origin[:, :, None]], axis=2)
    if place.shape[1] > 1:
        order = np.argsort(place, axis=1, kind="stable")
        place = np.take_along_axis(place, order, axis=1)
        first = np.take_along_axis(first, order, axis=1)
        finest = np.take_along_axis(finest, order, axis=1)
        base = np.take_along_axis(base, order[None], axis=2)
        for k in range(place.shape[1] - 1):  # of two bends in one place the finer one rules
            same = place[:, k] == place[:, k + 1]
            finer = np.minimum(first[:, k], first[:, k + 1])
            first[:, k] = np.where(same, finer, first[:, k])
            first[:, k + 1] = np.where(same, finer, first[:, k + 1])
    return Bends(place, first, finest, base)


def _march(sides: Panels, first: Array) -> Panels:
    """Panels from each anchor outwards; in ``sides`` lower is the sign, upper the distance."""
    found: list[Panels] = []
    sign, limit = sides.lower, sides.upper
    reached = np.zeros(len(limit))
    while True:
        live = reached < limit
        if not live.all():
            sides, first = sides.at(live), first[live]
            sign, limit, reached = sides.lower, sides.upper, reached[live]
        if not len(limit):
            break
        z = sides.anchor + sign * reached
        step = np.minimum(np.where(reached == 0.0, first, GROWTH * reached), 1.6 + 0.05 * z * z)
        end = np.minimum(reached + step, limit)
        end = np.where(limit - end < SLIVER * step, limit, end)
        lower, upper = np.where(sign > 0, reached, -end), np.where(sign > 0, end, -reached)
        found.append(sides._replace(lower=lower, upper=upper))
        reached = end
    return Panels(*(np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)))


def split(whole: Panels) -> Panels:
    """Cut panels in two; one that begins at its anchor in four, geometrically."""
    touching = (whole.lower == 0.0) | (whole.upper == 0.0)
    pieces = [_cut(whole.at(touching), GRADED), _cut(whole.at(~touching), HALVES)]
    return Panels(*(np.concatenate(parts, axis=-1) for parts in zip(*pieces, strict=True)))


def _cut(whole: Panels, shares: Array) -> Panels:
    count = len(shares) - 1
    # Shares count from the end at the anchor, which is 0, so that products are exact there.
    backwards = whole.upper == 0.0
    near = np.where(backwards, whole.upper, whole.lower)
    far = np.where(backwards, whole.lower, whole.upper)
    ends = near[:, None] + shares * (far - near)[:, None]
    ends[:, -1] = far
    low, high = ends[:, :-1], ends[:, 1:]
    flip = backwards[:, None]
    repeated = whole.at(np.repeat(np.arange(len(near)), count))
    return repeated._replace(
        lower=np.where(flip, high, low).ravel(), upper=np.where(flip, low, high).ravel()
    )
