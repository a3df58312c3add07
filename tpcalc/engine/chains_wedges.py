"""Loops of ``chains_angles``: pairs by their angle, values and slopes of layers by tables.

A pair has its half versine v = (1 - rho) / 2, or -(1 + rho) / 2 where that is smaller, as ReLU has,
its tangent kernel w, and bounds e, f on the errors of 1 - rho and of w. With sizes s, s' before and
S, S' after a layer, u = 1 - rho, the slope g = E phi' phi' and its average a over [rho, 1], a layer
makes of them::

    u' = (gap + (keep + m a) s s' u) / (S S'),    w' = (keep + m g) w + K' - keep K
    e' = ((keep + m |g|) s s' e + m u s s' (n1 p1' + p1 n1') + [that of gap]) / (S S') + 4 eps u'
    f' = (keep + m |g|) f + m |w| (bend n1 n1' angle(e) + n1 p1' + p1 n1') + [that of K']

No digit of u is lost: all its terms are positive. The gap is what inputs of the same direction lose
by their different sizes; it is b (log s - log s')^2 with a table for b.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_layers import Ends, Table, Whole, both, every, strip
from tpcalc.engine.chains_rows import FOUR, clenshaw
from tpcalc.engine.chains_tables import EPS
from tpcalc.engine.chains_tiles import (
    COLUMNS,
    PANEL,
    PITCH,
    ROWS,
    TINY,
    Pair,
    angle,
    copy,
    versines,
)
from tpcalc.engine.chains_tiles import NEAR as DIFFERENCE
from tpcalc.engine.kernels_compile import exact, inlined, inner

NEAR = 0.99  # correlation of inputs that nearly coincide
ROUNDINGS = 16.0  # of a gap


@inlined
def turned(off: float, square: float) -> Any:
    """How much an angle turns with its cosine, which may be off; ``square``: of its sine."""
    over = 1.0 / math.sqrt(max(square, off, TINY))
    return over * (1.0 + off * over * over)


@exact
def run_versines(
    pair: Pair, sizes: Ends, rounding: float, tiles: Index, state: Whole, span: Array
) -> None:
    """The pairs of different inputs before the first layer; ``span``: the largest 1 - rho."""
    same, x = pair[3], pair[0]
    products, panel = np.empty((ROWS, PITCH)), np.empty((PANEL, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        columns, high = min(COLUMNS, len(pair[1]) - j0), 0.0
        versines(pair, i0, j0, panel, products)
        for r in range(min(ROWS, len(x) - i0)):
            i = i0 + r
            first = max(0, i + 1 - j0) if same else 0
            if first >= columns:
                continue
            a, b = j0 + first, j0 + columns
            (k, w, e, f, near), others = strip(state, i, a, b), sizes[1][a:b]
            copy(products[r][first:columns], k)
            for t in range(k.size):
                part, unit = abs(k[t]), sizes[0][i] * others[t]
                rho = 1.0 - 2.0 * part if k[t] >= 0.0 else 2.0 * part - 1.0
                e[t] = rounding * (1.0 if part > DIFFERENCE else 4.0 * math.sqrt(part))
                w[t] = unit * rho
                f[t] = 2.0 * unit * rounding
                near[t] = rho - NEAR
                high = max(high, 1.0 - rho)
        span[i0 // ROWS, j0 // COLUMNS, 1] = high


@inner
def _advance(
    pairs: Whole, mean: Array, g: Array, bend: Array, own: Array, table: Array, start: int,
    form: Array, last: bool,
) -> float:  # fmt: skip
    """One layer, from averages and values of slopes; the largest 1 - rho after it.

    ``form``: keep, m, s, how much slopes bend by the angle, the size of a gap.
    """
    k, w, e, f = pairs[0], pairs[1], pairs[2], pairs[3]
    keep, m, steep, rough = form[0], form[1], form[3], ROUNDINGS * EPS * form[4]
    stop, high = start + k.size, 0.0
    length, inverse, log, begin = own[0], own[1], own[2], own[7]
    rounding, n, p = own[3], own[5], own[6]
    sizes, overs, logs = table[0][start:stop], table[1][start:stop], table[2][start:stop]
    ends, n1, p1 = table[3][start:stop], table[5][start:stop], table[6][start:stop]
    begins = table[7][start:stop]
    for t in range(k.size):
        v, part, off, before = k[t], abs(k[t]), e[t], w[t]
        u = 2.0 * part if v >= 0.0 else 2.0 - 2.0 * part
        rho = 1.0 - 2.0 * part if v >= 0.0 else 2.0 * part - 1.0
        both, over = length * sizes[t], inverse * overs[t]
        delta, loose = abs(log - logs[t]), begin + begins[t]
        pair = m * (n * p1[t] + p * n1[t])
        slope = m * g[t]
        size, wide = abs(slope), max(bend[t], 0.0)
        after = min(max((wide * delta * delta + (keep + m * mean[t]) * both * u) * over, 0.0), 2.0)
        missed = rough * delta + wide * loose * (2.0 * delta + loose)
        error = ((keep + size) * both * off + both * u * pair + missed) * over
        error += after * (4.0 * EPS + rounding + ends[t])
        covariance = (1.0 - after) / over
        added = error / over + abs(covariance) * (EPS + rounding + ends[t])
        turn = off * turned(off, 4.0 * part * (1.0 - part))
        wrong = m * steep * (n * n1[t]) * turn + pair
        w[t] = (keep + slope) * before + (covariance - keep * both * rho)
        f[t] = (keep + size) * f[t] + abs(before) * wrong + added + EPS * abs(w[t])
        f[t] += keep * both * (off + EPS)
        high = max(high, after)
        half = 0.5 * after
        k[t] = covariance if last else (half if half <= 0.5 else min(half - 1.0, -TINY))
        e[t] = added if last else error
    return high


@exact
def run_angles(
    pair: Pair, scale: float, means: Table, slopes: Table, bends: Table, tables: Ends,
    form: Array, last: bool, tiles: Index, state: Whole, span: Array,
) -> None:  # fmt: skip
    """One layer by its tables in x = scale angle - 1; behind the last one covariances are left."""
    same, tables, state = pair[3], both(tables), every(state)
    x, mean = np.empty((FOUR, COLUMNS)), np.empty((FOUR, COLUMNS))
    g, bend = np.empty((FOUR, COLUMNS)), np.empty((FOUR, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        stop, top, high = min(j0 + COLUMNS, len(pair[1])), min(i0 + ROWS, len(pair[0])), 0.0
        for i in range(i0, top, FOUR):
            a, rows = max(j0, i + 1) if same else j0, min(FOUR, top - i)
            if a >= stop:
                continue
            for r in range(rows):
                k, at = state[0][i + r][a:stop], x[r]
                for t in range(stop - a):
                    part = min(abs(k[t]), 0.5)
                    turn = math.sqrt(part) * angle(part)
                    at[t] = scale * (turn if k[t] >= 0.0 else math.pi - turn) - 1.0
            some = x[:rows, : stop - a]
            for table, to in ((means, mean), (slopes, g), (bends, bend)):
                clenshaw(some, table[0][i : i + rows], table[1], table[2], a, to)
            for r in range(rows):
                b = max(a, i + r + 1) if same else a
                begin, end = b - a, stop - a
                found = _advance(
                    strip(state, i + r, b, stop), mean[r][begin:end], g[r][begin:end],
                    bend[r][begin:end], tables[0][:, i + r], tables[1], b, form, last,
                )  # fmt: skip
                high = max(high, found)
        span[i0 // ROWS, j0 // COLUMNS, 1] = high
