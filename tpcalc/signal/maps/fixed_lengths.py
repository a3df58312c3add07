"""Fixed points of a length map: all of them, by bracketing on a logarithmic grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate.bounded import Bounded
from tpcalc.evaluate.computed import Computed
from tpcalc.signal.maps.roots import log_root

__all__ = ["FixedLength", "Lengths", "fixed_lengths"]

Array = Any
SMALLEST, HIGHEST = 1e-12, (1e12, 1e6, 1e3, 30.0)
BY_TENFOLD = 12  # points of the grid
FINER, NEAR = 48, 0.1  # a second grid where the map comes so near to the identity and turns away


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
    kind: Literal["stable", "unstable", "marginal"]


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
        """The stable one to which lengths from ``start`` tend, or else the nearest stable one.

        Args:
            start: The length.
        """
        stable = [point for point in self.points if point.kind != "unstable"]
        if not stable:
            return None
        between = [p.square.value for p in self.points if p.kind == "unstable"]
        free = [
            p
            for p in stable
            if not any(min(start, p.square.value) < b < max(start, p.square.value) for b in between)
        ]
        return min(free or stable, key=lambda p: abs(np.log(p.square.value / start)))


def fixed_lengths(
    many: Callable[[Array], Computed],
    one: Callable[[float], Bounded],
    slope: Callable[[Bounded], Bounded],
) -> Lengths:
    """All fixed points above 0.

    Args:
        many: The map at an array of lengths.
        one: The map at a length.
        slope: Its slope at a length.

    Returns:
        They, and where other lengths go.

    Raises:
        EvaluationError: The map is infinite already for small lengths.

    Example:
        >>> found = fixed_lengths(
        ...     lambda q: Computed(np.sqrt(q), 1e-15 * q), lambda q: Bounded(q**0.5),
        ...     lambda q: Bounded(0.5 / q.value**0.5),
        ... )
        >>> [(round(p.square.value, 9), p.kind) for p in found.points], found.every
        ([(1.0, 'stable')], False)
    """
    grid, value, error = _mapped(many)
    change = value - grid
    grow = bool(change[-1] > 0)
    sign = np.where(np.abs(change) <= error, 0, np.sign(change))
    if not sign.any():
        return Lengths((), True, False)
    points = []
    for start, end in _brackets(many, grid, change / grid, sign):
        root = log_root(lambda q: one(q) * (1 / q) - 1.0, start, end)
        tangent = slope(root)
        points.append(FixedLength(root, tangent, _kind(tangent)))
    return Lengths(tuple(points), False, grow)


def _mapped(many: Callable[[Array], Computed]) -> tuple[Array, Array, Array]:
    """The map on the longest grid on which it is finite."""
    for highest in HIGHEST:
        count = round(BY_TENFOLD * np.log10(highest / SMALLEST)) + 1
        grid = np.geomspace(SMALLEST, highest, count)
        try:
            with np.errstate(all="ignore"):
                found = many(grid)
        except EvaluationError:
            if highest == HIGHEST[-1]:
                raise
            continue
        error = np.broadcast_to(found.error, grid.shape)
        good = np.isfinite(found.value) & np.isfinite(error)
        last = len(grid) if good.all() else int(np.argmin(good))
        if last > 1:
            return grid[:last], found.value[:last], error[:last]
    raise EvaluationError("lengths leave the floating-point range in one layer.")


def _brackets(
    many: Callable[[Array], Computed], grid: Array, ratio: Array, sign: Array
) -> list[tuple[float, float]]:
    """Neighbours between which the map crosses the identity."""
    kept = np.flatnonzero(sign)
    found = [(grid[i], grid[j]) for i, j in pairwise(kept) if sign[i] != sign[j]]
    size = np.abs(ratio)
    turns = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & (size[1:-1] < NEAR)
    for k in np.flatnonzero(turns) + 1:
        if not sign[k - 1] == sign[k] == sign[k + 1] != 0:
            continue
        finer = np.geomspace(grid[k - 1], grid[k + 1], FINER)
        signs = np.sign(many(finer).value - finer)
        found += [(finer[i], finer[i + 1]) for i in range(FINER - 1) if signs[i] != signs[i + 1]]
    return sorted((float(low), float(high)) for low, high in found)


def _kind(slope: Bounded) -> Literal["stable", "unstable", "marginal"]:
    size = abs(slope.value)
    if abs(size - 1) <= slope.error:
        return "marginal"
    return "stable" if size < 1 else "unstable"
