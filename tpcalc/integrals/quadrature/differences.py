"""1/2 E[f(a s + h t) - f(a s - h t)]^2 with every digit, however small h is."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals import rules
from tpcalc.integrals.quadrature.adaptive import (
    EPS,
    Effort,
    Integrals,
    Sampled,
    integrate,
    integrate_twice,
)
from tpcalc.integrals.quadrature.families import Index
from tpcalc.integrals.quadrature.nodes import gauss_legendre
from tpcalc.integrals.quadrature.one_dimension import FIRST, PEAK
from tpcalc.integrals.quadrature.panels import Bends, Panels, panels
from tpcalc.integrals.quadrature.shape import Shape, unit_of

NARROW = 0.5  # of the smallest unit: a difference over less is an integral of the slope
PIECES = (10, 7)  # nodes of that integral on each side of a kink, and of the rule that judges it
BLOCK = 2**19
PANELS = 8
WORK = 10**5  # panels for each pair of scales
OUTER = Effort(tolerance=4e-13, rounds=30, most=512)


class Difference(NamedTuple):
    """Squares of differences of one function, for n pairs of scales."""

    function: Shape  # f
    slope: Shape | None  # its derivative where that is a function, else None
    spread: Array  # the a, of shape (n,)
    step: Array  # the h

    def at(self, index: Any) -> Difference:
        """Some of the pairs."""
        return Difference(self.function, self.slope, self.spread[index], self.step[index])


def difference_integrals(whole: Difference, reach: float) -> Integrals:
    """The integrals for every pair of scales."""
    count = len(whole.spread)

    def within(cover: Panels, effort: Effort) -> tuple[Array, Integrals]:
        offsets = cover.offsets
        s = cover.anchor[:, None] + offsets
        problem = np.repeat(cover.problem, s.shape[1])
        anchor = np.repeat(cover.base[0], s.shape[1])
        shift = whole.spread[problem] * offsets.ravel()
        here = _Centres(whole.at(problem), anchor, shift)
        limits = panels(_inner_bends(here), np.zeros((1, len(shift))), reach)
        limits = limits.at(~((limits.anchor == 0.0) & (limits.upper <= 0.0)))  # even in t
        found = integrate(partial(_inner_values, here), limits, np.zeros(len(shift)), None, effort)
        return PEAK * np.exp(-0.5 * s * s), found

    cover = panels(_outer_bends(whole), np.zeros((1, count)), reach)
    size = max(1, BLOCK // (gauss_legendre().points.size ** 2 * PANELS * PIECES[0]))
    return integrate_twice(within, cover, np.zeros(count), None, OUTER, (WORK, size))


def _outer_bends(whole: Difference) -> Bends:
    """The bends of f on the axis of s, washed out over h / a."""
    count, features = len(whole.spread), whole.function.features
    place, first = np.full((count, len(features)), np.inf), np.full((count, len(features)), np.inf)
    base = np.zeros((1, count, len(features)))
    for column, feature in enumerate(features):
        z = np.where(whole.spread == 0.0, np.inf, feature.place / whole.spread)
        scale = whole.step if feature.kink else np.maximum(whole.step, feature.unit)
        place[:, column], first[:, column] = z, FIRST * scale / whole.spread
        base[0, :, column] = feature.place
    return Bends(place, first, np.zeros_like(place), base)


class _Centres(NamedTuple):
    """Points x = anchor + shift, with h: the differences around them are squared."""

    whole: Difference
    anchor: Array
    shift: Array

    def distances(self) -> Array:
        """From each point to each place where f bends, of shape (places, points)."""
        places = np.array([feature.place for feature in self.whole.function.features])
        return (places.reshape(-1, 1) - self.anchor) - self.shift


def _inner_bends(here: _Centres) -> Bends:
    """At t > 0 where x + h t or x - h t meets a bend of f; and t = 0, where the axis ends."""
    step, features = here.whole.step, here.whole.function.features
    distance = np.abs(here.distances())
    units = np.array([feature.unit for feature in features]).reshape(-1, 1)
    place = np.concatenate([distance / step, np.zeros((1, len(step)))]).T
    first = np.concatenate([FIRST * units / step, np.full((1, len(step)), np.inf)]).T
    base = np.concatenate([distance, np.zeros((1, len(step)))]).T
    return Bends(place, first, np.zeros_like(place), base[None])


def _inner_values(here: _Centres, part: Panels) -> Sampled:
    offsets = part.offsets
    t = part.anchor[:, None] + offsets
    centre = part.problem
    y = part.base[0][:, None] + here.whole.step[centre][:, None] * offsets
    anchor, shift = here.anchor[centre][:, None], here.shift[centre][:, None]
    weight = PEAK * np.exp(-0.5 * t * t)  # the half for the square is that for t < 0
    change, doubt = _far(here.whole.function, anchor, shift, y)
    slope = here.whole.slope
    if slope is not None:
        near = np.flatnonzero(y.max(axis=1) <= NARROW * unit_of(slope))
        if near.size:
            _take_better(slope, (anchor[near], shift[near], y[near]), near, change, doubt)
    return Sampled(weight * change * change, weight * doubt * (2.0 * np.abs(change) + doubt))


def _far(function: Shape, anchor: Array, shift: Array, y: Array) -> tuple[Array, Array]:
    """f(x + y) - f(x - y), and what rounding does to it."""
    right = function.values(anchor + (shift + y))
    left = function.values(anchor + (shift - y))
    change = right - left
    moved = (np.abs(anchor) + np.abs(shift) + y) / y
    doubt = EPS * (2.0 * (np.abs(right) + np.abs(left)) + moved * np.abs(change))
    return np.array(change), doubt


def _take_better(
    slope: Shape, where: tuple[Array, Array, Array], rows: Index, change: Array, doubt: Array
) -> None:
    """Integrate the slope instead, wherever that is surer than the difference."""
    fine, coarse = (_near(slope, *where, points) for points in PIECES)
    unsure = np.abs(fine - coarse) + 8.0 * EPS * np.abs(fine)
    better = unsure < doubt[rows]
    change[rows] = np.where(better, fine, change[rows])
    doubt[rows] = np.where(better, unsure, doubt[rows])


def _near(slope: Shape, anchor: Array, shift: Array, y: Array, points: int) -> Array:
    """The difference as the integral of f' from x - y to x + y, in pieces between kinks."""
    nodes, weights = rules.legendre(points)
    kinks = [feature.place for feature in slope.features if feature.kink]
    total = np.zeros_like(y)
    low = -y
    for high in [*(np.clip((k - anchor) - shift, -y, y) for k in kinks), y]:
        width = high - low
        rows = np.flatnonzero((width > 0).any(axis=1))
        if rows.size:
            middle, half = 0.5 * (high + low)[rows], 0.5 * width[rows]
            base, moved = anchor[rows], shift[rows]
            for node, weight in zip(nodes, weights, strict=True):
                # A node on a kink itself stands for a piece of no length.
                values = slope.values(base + (moved + (middle + node * half)))
                total[rows] += np.where(half > 0, half * weight * values, 0.0)
        low = high
    return total
