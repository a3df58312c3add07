"""Where a map of lengths crosses the identity or touches it, on a grid that is refined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.bounded import Bounded

ROUNDS = 5
NEAR = 0.1  # |log(L / lambda)| of a turning point beside which two crossings may hide
FINEST = 1e-8  # log-distance of neighbours that is not refined
STRETCH = 1.3  # the identity over such a factor is no point
_SHARES = np.array([1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85])


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

    def merged(self, other: Changes) -> Changes:
        """Both, in order."""
        at, first = np.unique(np.concatenate([self.at, other.at]), return_index=True)
        pairs = zip(self[1:], other[1:], strict=True)
        value, doubt = (np.concatenate(pair)[first] for pair in pairs)
        return Changes(at, value, doubt)


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
