"""Tables of functions for the stages of ``planes``, at the variances of all positions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_angles import angle_tables
from tpcalc.engine.chains_series import (
    RATIO,
    NotSettled,
    Smooth,
    Terms,
    layer_of,
    lost_of,
    rounds_of,
    tabled,
)
from tpcalc.engine.chains_tables import EPS, NUMBERS, ROUNDINGS
from tpcalc.engine.planes_bends import KINKED, LOST, TABLED, THIRD


@dataclass(frozen=True, eq=False)
class Tables:
    """Values and slopes of a function, and what is known of single inputs."""

    bend: int
    numbers: Array  # as loops read them, (NUMBERS, inputs)
    terms: tuple[Terms, Terms]
    steep: float  # how much slopes turn with angles
    rounds: float  # what values and slopes may miss

    def flat(self, places: int, begins: int) -> tuple[Index, Array]:
        """Heads of both tables and the starts of their degrees, from a place on; terms."""
        heads: list[int] = []
        stops: list[Index] = []
        rows: list[Array] = []
        for left, right, degrees in self.terms:
            at = begins + 8 + sum(map(len, stops))
            heads += [places + sum(row.size for row in rows), len(left), at, len(degrees)]
            stops.append(degrees)
            rows += [left.ravel(), right.ravel()]
        return np.concatenate([np.array(heads, dtype=np.int64), *stops]), np.concatenate(rows)


def tables_of(function: Smooth, q: Array) -> Tables:
    """Of a function at variances q.

    Raises:
        NotSettled: It has no tables to the tolerance.
    """
    known = q > 0
    if not known.all() and float(function.value(np.zeros(1))[0]) != 0.0:
        raise NotSettled("it is not 0 at 0, where some positions are")
    if not known.any():
        raise NotSettled("all inputs are 0")
    least = q[known].min()
    if q.max() > RATIO * least:
        raise NotSettled("positions are of very different sizes")
    found = _tables(function, np.where(known, q, least))
    found.numbers[:, ~known] = 0.0
    for left, right, _ in found.terms:  # what is 0 has kernels that are 0
        left[:, ~known], right[:, ~known] = 0.0, 0.0
    return found


def _tables(function: Smooth, q: Array) -> Tables:
    if not function.kinked:
        with suppress(NotSettled):
            return _by_correlation(function, q)
    moments, values, slopes, steep = angle_tables(function, q)
    rounds = EPS * ROUNDINGS + function.tolerance
    return _table(KINKED, moments, (values, slopes), steep, rounds)


def _by_correlation(function: Smooth, q: Array) -> Tables:
    layer = layer_of(Smooth(function.value, function.slope), q, 1.0)
    short = tabled(layer, -1.0, 1.0)
    if short is None:
        raise NotSettled("its table in the correlation does not end")
    rounds = rounds_of(function, len(short[0][0]) + len(short[1][0]))
    found = _table(TABLED, layer.moments, (short[0], short[1]), 0.0, rounds)
    found.numbers[LOST] += lost_of(layer, q, rounds)
    return found


def _table(
    bend: int, moments: Array, terms: tuple[Terms, Terms], steep: float, rounds: float
) -> Tables:
    numbers = np.zeros((NUMBERS, moments.shape[1]))
    numbers[[3, 5, 7, THIRD]] = np.sqrt(np.maximum(moments, 0.0))
    numbers[LOST] = rounds * numbers[5]
    return Tables(bend, numbers, terms, steep, rounds)
