"""Fixed points of a length map: all of them, on a logarithmic grid that is refined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.maps.roots import log_root

SMALLEST, HIGHEST = 1e-12, (1e12, 1e6, 1e3, 30.0)
BY_TENFOLD = 12  # points of the grid
EDGE = 1e-9  # |slope - 1| that counts as none
ROUNDS = 5
NEAR = 0.1  # |log(L / lambda)| of a turning point beside which two crossings may hide
FINEST = 1e-8  # log-distance of neighbours that is not refined
STRETCH = 1.3  # the identity over such a factor is no point
_SHARES = np.array([1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85])

Kind = Literal["stable", "unstable", "stable from below", "stable from above"]
_WORDS: dict[tuple[float, float], Kind] = {
    (1.0, -1.0): "stable",
    (-1.0, 1.0): "unstable",
    (1.0, 1.0): "stable from below",
    (-1.0, -1.0): "stable from above",
}


class Changes(NamedTuple):
    """log(L(lambda) / lambda) at lengths in order.

    Args:
        at: The lambdas.
        value: The logarithms.
        doubt: Up to where their signs are in doubt.
    """

    at: Array
    value: Array
    doubt: Array

    @property
    def sign(self) -> Array:
        """Whether lengths grow; 0 where that is in doubt."""
        return np.where(np.abs(self.value) <= self.doubt, 0.0, np.sign(self.value))

    @classmethod
    def of(cls, at: Array, computed: Bounded, same: float = 0.0) -> Changes:
        """Those of a map; logarithms up to ``same`` count as none."""
        with np.errstate(all="ignore"):
            value, error = np.log(computed.value / at), 8 * computed.error / computed.value
        return cls(at, value, np.where(computed.known, np.maximum(error, same), np.inf))

    def merged(self, other: Changes) -> Changes:
        """Both, in order."""
        at, first = np.unique(np.concatenate([self.at, other.at]), return_index=True)
        pairs = zip(self[1:], other[1:], strict=True)
        value, doubt = (np.concatenate(pair)[first] for pair in pairs)
        return Changes(at, value, doubt)


@dataclass(frozen=True, slots=True)
class FixedLength:
    """A fixed point.

    Args:
        square: Where it is.
        slope: The slope of the map there.
        kind: What becomes of lengths near it, by the slope or where that is 1 by the two sides.
        note: What cannot be told of it.
    """

    square: Bounded
    slope: Bounded
    kind: Kind
    note: str = ""


@dataclass(frozen=True)
class Lengths:
    """What a length map does.

    Args:
        points: Its fixed points above 0, the smallest first.
        known: How lengths of a first grid change.
    """

    points: tuple[FixedLength, ...]
    known: Changes

    @cached_property
    def signs(self) -> Array:
        """Whether lengths grow, where that is beyond doubt."""
        sign = self.known.sign
        found: Array = sign[sign != 0]
        return found

    @property
    def every(self) -> bool:
        """Whether every length is a fixed point."""
        return not self.signs.size

    @property
    def grow(self) -> bool:
        """Whether the largest lengths that were looked at grow."""
        return bool(self.signs.size and self.signs[-1] > 0)

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
    known: Changes | None = None,
    same: float = 0.0,
    exact: float = 0.0,
) -> Lengths:
    """All fixed points above 0, beside which logarithms up to ``same`` are no change.

    Example:
        >>> found = fixed_lengths(
        ...     lambda q: Bounded(np.sqrt(q), 1e-15 * q), lambda q: Bounded(q**0.5),
        ...     lambda q: Bounded(0.5 / q.value**0.5),
        ... )
        >>> [(round(p.square.value, 9), p.kind) for p in found.points], found.every
        ([(1.0, 'stable')], False)
    """
    known = Changes.of(*gridded(many, SMALLEST, HIGHEST)) if known is None else known
    found = crossings(lambda at: Changes.of(at, many(at), same), known)
    return Lengths(tuple(_point(each, one, slope, exact) for each in found), known)


def gridded(
    many: Callable[[Array], Bounded], smallest: float, ends: tuple[float, ...]
) -> tuple[Array, Bounded]:
    """A grid by tenfolds to the farthest end that has an answer, as far as that is finite."""
    for end in ends:
        grid = np.geomspace(smallest, end, round(BY_TENFOLD * np.log10(end / smallest)) + 1)
        try:
            with np.errstate(all="ignore"):
                found = many(grid)
        except EvaluationError:
            if end == ends[-1]:
                raise
            continue
        last = len(grid) if found.known.all() else int(np.argmin(found.known))
        if last > 1:
            error = np.broadcast_to(found.error, grid.shape)
            return grid[:last], Bounded(found.value[:last], error[:last], found.method)
    raise EvaluationError("lengths leave the floating-point range in one layer.")


def _point(
    crossing: Crossing,
    one: Callable[[float], Bounded],
    slope: Callable[[Bounded], Bounded],
    exact: float,
) -> FixedLength:
    if crossing.low < exact < crossing.high and crossing.place is not None:
        root = Bounded(exact)
    elif crossing.below == crossing.above:
        root = replace(crossing.touch, method=one(crossing.touch.value).method)
    else:
        root = log_root(lambda q: one(q) * (1 / q) - 1.0, crossing.low, crossing.high)
    tangent = slope(root)
    sides, told = _WORDS[crossing.below, crossing.above], crossed(tangent)
    kind = sides if told == "marginal" else told
    note = "" if kind == sides else f"another fixed point is within rounding of {root.value:.6g}"
    return FixedLength(root, tangent, kind, note)


def crossed(slope: Bounded) -> Literal["stable", "unstable", "marginal"]:
    """What becomes of lengths near a fixed point at which the map has a slope."""
    size = abs(slope.value)
    if abs(size - 1) <= max(EDGE, slope.error):
        return "marginal"
    return "stable" if size < 1 else "unstable"


@dataclass(frozen=True, slots=True)
class Crossing:
    """A place where lengths stay as they are.

    Args:
        low: Below it.
        high: Above it.
        below: Whether lengths grow (1) or shrink (-1) just below it.
        above: The same just above it.
        place: Where it is, if the sign is in doubt there; else it is a root between the two.
    """

    low: float
    high: float
    below: float
    above: float
    place: float | None = None

    @property
    def touch(self) -> Bounded:
        """Where it is if lengths grow, or shrink, on both sides, within its neighbours."""
        place = self.place or (self.low * self.high) ** 0.5
        return Bounded(place, max(place - self.low, self.high - place))


def crossings(change: Callable[[Array], Changes], known: Changes) -> list[Crossing]:
    """All places where a map of lengths is the identity, the smallest first.

    Averages over Gaussians of all widths are smooth in the logarithm of the width, so that two
    crossings between neighbours of a grid show as a turn towards 0 beside them.

    Example:
        >>> def change(at):
        ...     u = np.log(at)
        ...     return Changes(at, (u - 0.5) ** 2 - 1e-6, 1e-15 + 0 * u)
        >>> found = crossings(change, change(np.geomspace(1e-3, 1e3, 121)))
        >>> [(each.below, each.above) for each in found]
        [(1.0, -1.0), (-1.0, 1.0)]
        >>> [bool(each.low < np.exp(u) < each.high) for each, u in zip(found, (0.499, 0.501))]
        [True, True]
    """
    for _ in range(ROUNDS):
        places = _places(known)
        if not places.size:
            break
        known = known.merged(change(places))
    sign = known.sign
    return [
        _crossing(known, int(left), int(right))
        for left, right in pairwise(np.flatnonzero(sign))
        if right > left + 1 or sign[left] != sign[right]
    ]


def _crossing(known: Changes, left: int, right: int) -> Crossing:
    at, sign = known.at, known.sign
    place = None
    if right > left + 1:
        middle = left + 1 + int(np.argmin(np.abs(known.value[left + 1 : right])))
        first, last = at[left + 1], at[right - 1]
        place = float(np.sqrt(first * last) if last > STRETCH * first else at[middle])
    return Crossing(float(at[left]), float(at[right]), float(sign[left]), float(sign[right]), place)


def _places(known: Changes) -> Array:
    """Where to look closer: beside points in doubt, and where the change turns towards 0."""
    u, sign, size = np.log(known.at), known.sign, np.abs(known.value)
    found: list[Array] = []
    for k in range(1, len(u) - 1):
        low, high = u[k] - u[k - 1], u[k + 1] - u[k]
        if max(low, high) < FINEST or sign[k - 1] == 0 or sign[k + 1] == 0:
            continue
        centre = 0.0 if sign[k] == 0 else _turn(known, k, low, high)
        if centre is None or size[k] >= NEAR:
            continue
        middle = u[k] + centre
        found += [middle - _SHARES * (centre + low), middle + _SHARES * (high - centre)]
        if sign[k]:
            found.append(np.array([middle]))
    return np.exp(np.concatenate(found)) if found else np.array([])


def _turn(known: Changes, k: int, low: float, high: float) -> float | None:
    """Where a parabola through three neighbours turns, if it may reach 0 there."""
    before, here, after = known.value[k - 1 : k + 2] * known.sign[k]
    if min(before, after) < here or min(before, here, after) < 0:
        return None
    left, right = (here - before) / low, (after - here) / high
    bend = (right - left) / (low + high)
    if bend <= 0:
        return None
    centre = -(left * high + right * low) / (low + high) / (2 * bend)
    centre = float(np.clip(centre, -0.9 * low, 0.9 * high))
    least = here + centre * ((left * high + right * low) / (low + high) + bend * centre)
    return centre if least <= here / 2 else None
