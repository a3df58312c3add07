"""Fixed points of a length map: all of them, by bracketing on a logarithmic grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.crossings import Changes, Crossing, crossings
from tpcalc.meanfield.maps.roots import log_root

SMALLEST, HIGHEST = 1e-12, (1e12, 1e6, 1e3, 30.0)
BY_TENFOLD = 12  # points of the grid

Crossed = Literal["stable", "unstable", "marginal"]
Kind = Crossed | Literal["stable from below", "stable from above"]


@dataclass(frozen=True, slots=True)
class FixedLength:
    """A fixed point q with the slope of the map there.

    Args:
        square: q.
        slope: The slope.
        kind: What becomes of lengths near it.
    """

    square: Bounded
    slope: Bounded
    kind: Kind


@dataclass(frozen=True, slots=True)
class Lengths:
    """What a length map does.

    Args:
        points: Its fixed points above 0, the smallest first.
        every: Whether every length is one.
        grow: Whether the largest lengths that were looked at grow.
    """

    points: tuple[FixedLength, ...]
    every: bool
    grow: bool

    def reached(self, start: float = 1.0) -> FixedLength | None:
        """The stable one to which lengths from ``start`` tend, or else the nearest stable one."""
        stable = [point for point in self.points if point.kind != "unstable"]
        free = [point for point in stable if self._free(start, point)]
        near = free or stable
        return min(near, key=lambda p: abs(np.log(p.square.value / start)), default=None)

    def _free(self, start: float, point: FixedLength) -> bool:
        """Whether nothing keeps lengths from getting there."""
        end = point.square.value
        if point.kind == ("stable from above" if start < end else "stable from below"):
            return bool(start == end)
        low, high = min(start, end), max(start, end)
        return not any(low < each.square.value < high for each in self.points)


def fixed_lengths(
    many: Callable[[Array], Bounded],
    one: Callable[[float], Bounded],
    slope: Callable[[Bounded], Bounded],
) -> Lengths:
    """All fixed points above 0.

    Example:
        >>> found = fixed_lengths(
        ...     lambda q: Bounded(np.sqrt(q), 1e-15 * q), lambda q: Bounded(q**0.5),
        ...     lambda q: Bounded(0.5 / q.value**0.5),
        ... )
        >>> [(round(p.square.value, 9), p.kind) for p in found.points], found.every
        ([(1.0, 'stable')], False)
    """
    known = _changes(many)
    sign = known.sign
    if not sign.any():
        return Lengths((), True, False)

    def change(at: Array) -> Changes:
        return _change(at, many(at))

    points = (_point(found, one, slope) for found in crossings(change, known))
    return Lengths(tuple(points), False, bool(sign[np.flatnonzero(sign)[-1]] > 0))


def _changes(many: Callable[[Array], Bounded]) -> Changes:
    """The map on the longest grid on which it is finite."""
    for highest in HIGHEST:
        try:
            grid, found = gridded(many, SMALLEST, highest)
        except EvaluationError:
            if highest == HIGHEST[-1]:
                raise
            continue
        if len(grid) > 1:
            return _change(grid, found)
    raise EvaluationError("lengths leave the floating-point range in one layer.")


def gridded(
    many: Callable[[Array], Bounded], smallest: float, largest: float
) -> tuple[Array, Bounded]:
    """A grid by tenfolds, with a function of it, as far as that is finite."""
    grid = np.geomspace(smallest, largest, round(BY_TENFOLD * np.log10(largest / smallest)) + 1)
    with np.errstate(all="ignore"):
        found = many(grid)
    error = np.broadcast_to(found.error, grid.shape)
    good = np.isfinite(found.value) & np.isfinite(error)
    last = len(grid) if good.all() else int(np.argmin(good))
    return grid[:last], Bounded(found.value[:last], error[:last], found.method)


def _change(at: Array, computed: Bounded) -> Changes:
    with np.errstate(all="ignore"):
        return Changes(at, np.log(computed.value / at), computed.error / computed.value)


def _point(
    crossing: Crossing, one: Callable[[float], Bounded], slope: Callable[[Bounded], Bounded]
) -> FixedLength:
    if crossing.below == crossing.above:
        root = replace(crossing.touch, method=one(crossing.touch.value).method)
        kind: Kind = "stable from below" if crossing.below > 0 else "stable from above"
        return FixedLength(root, slope(root), kind)
    root = log_root(lambda q: one(q) * (1 / q) - 1.0, crossing.low, crossing.high)
    tangent = slope(root)
    return FixedLength(root, tangent, crossed(tangent))


def crossed(slope: Bounded) -> Crossed:
    """What becomes of lengths near a fixed point at which the map has a slope."""
    size = abs(slope.value)
    if abs(size - 1) <= slope.error:
        return "marginal"
    return "stable" if size < 1 else "unstable"
