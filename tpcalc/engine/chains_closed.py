"""Chains whose activation has a closed dual: what the loop of all their layers reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_duals import CLOSED
from tpcalc.engine.chains_layers import lengths, run_closed
from tpcalc.engine.chains_tables import EPS, NUMBERS, Chain, Gram, forms_of, pair_of
from tpcalc.engine.chains_tiles import COLUMNS, ROWS, Pair, whole


@dataclass(frozen=True)
class Closed:
    """Arguments of the loop for closed duals, which follows errors on its way."""

    row: int  # of ``chains_duals``
    shape: Array  # numbers of it
    pair: Pair
    factors: tuple[Array, Array]
    tables: tuple[Array, Array]  # numbers of single inputs, layer by layer
    ends: tuple[Array, Array]  # and before the first and after the last
    first: Array  # weight, bias and relative rounding of the map of the inputs
    forms: Array
    readout: float
    worst: Array  # the largest errors of each tile: of K and w, away from coincidence and near it
    finite: bool  # whether kernels stay within float64

    def run(self, tiles: Index, nngp: Array, ntk: Array) -> None:
        """Fill tiles of the results."""
        run_closed(
            self.row, self.shape, self.pair, self.factors, self.tables, self.ends, self.first,
            self.forms, self.readout, (tiles, nngp, ntk), self.worst,
        )  # fmt: skip


def closed_table(gram: Gram, chain: Chain) -> Closed:
    """Of a f(b z): K is counted in units of 1 / b^2, so that the activation is f(z)."""
    pair, unit, row = pair_of(gram), chain.b**2, CLOSED.index(chain.family)
    shape = np.array(chain.shape)
    forms = forms_of(chain, unit)
    rounding = EPS * (4 + pair[0].shape[1] / 8)  # of inner products, which are summed by eights
    first = np.array([unit * gram.factor * chain.first_weight, unit * chain.first_bias, rounding])
    tables, ends, (x, y), finite = [], [], (len(pair[0]), whole(len(pair[1]))), True
    for squares in (pair[4], pair[5][:y]) if gram.others is not None else (pair[5][:y],):
        table = np.empty((NUMBERS * chain.depth, squares.size))
        end = np.empty((5, squares.size))
        q = first[0] * squares + first[1]
        finite &= lengths(row, shape, q, rounding, forms, table, end)
        if chain.residual is not None:
            end[1] += end[0]
            end[3] += end[2]
        tables.append(table)
        ends.append(end)
    scale = 1.0 if chain.residual is None else 1 / unit
    return Closed(
        row,
        shape,
        pair,
        (np.full(x, scale), np.ones(y)),
        (tables[0], tables[-1]),
        (ends[0], ends[-1]),
        first,
        forms,
        0.0 if chain.residual is None else 1.0,
        np.zeros((-(-x // ROWS), -(-y // COLUMNS), 4)),
        finite,
    )
