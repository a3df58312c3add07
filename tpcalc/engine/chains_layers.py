"""The numba side of ``chains`` for smooth activations: covariances and their errors.

A pair of inputs has its covariance K, its tangent kernel w, and bounds e, f on their errors. With
v = E phi phi', g = E phi' phi' of the pair and n_k^2 = E (phi^(k))^2 of an input a layer maps them
to::

    K' = keep K + m v + s,  w' = (keep + m g) w + m v + s
    e' = keep e + m (|g| (e + eps |K|) + p0 n0' + n0 p0') + eps |K'|
    f' = keep f + m (|g| f + |w| (n2 n2' (e + eps |K|) + p1 n1' + n1 p1')) + [that of v] + eps |w'|

The moments p carry what is not known of the variances, and the rounding of v and g. Values and
slopes come from closed forms (``chains_duals``), with all layers of a strip in the first cache, or
from a series of their layer (``chains_series``), layer by layer over all strips.
"""

from __future__ import annotations

import math

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_duals import closed, moments
from tpcalc.engine.chains_rows import FOUR, clenshaw, horner
from tpcalc.engine.chains_tables import EPS, NUMBERS, ROUNDINGS
from tpcalc.engine.chains_tiles import (
    COLUMNS,
    PANEL,
    PITCH,
    ROWS,
    Job,
    Pair,
    copy,
    gram,
    keep,
    starts,
    whole,
)
from tpcalc.engine.kernels_compile import exact, inner, uncounted

NEAR = 0.99  # correlation of inputs that nearly coincide
STEP = 1e-4  # relative, of derivatives by variances
BEND = 0.02  # of a variance, of the second difference of slopes

Ends = tuple[Array, Array]
"""Of rows and of columns: K, w, and their errors, of an input with itself after the last layer;
its K before the first."""


Whole = tuple[Array, Array, Array, Array, Array]
"""Of all pairs K, w, their errors, and how far the first correlation is beyond ``NEAR``."""


@inner
def both(given: Ends) -> Ends:
    """Numbers of rows and of columns, parts of which are not counted."""
    return uncounted(given[0]), uncounted(given[1])


@inner
def every(given: Whole) -> Whole:
    """Planes of pairs, likewise."""
    k, w, e, f, near = given
    return uncounted(k), uncounted(w), uncounted(e), uncounted(f), uncounted(near)


@exact
def lengths(
    row: int, shape: Array, q0: Array, rounding: float, forms: Array, table: Array, ends: Array
) -> bool:
    """The numbers of single inputs in all layers; whether all of them are finite."""
    pair, two = np.zeros(2), np.zeros(2)
    b0, b1, b2, covariance = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    total = 0.0
    for i in range(q0.size):
        q = q0[i]
        w, dq = q, rounding * q
        dt = dq
        ends[4, i] = q
        for layer in range(forms.shape[0]):
            keep, m, s = forms[layer, 0], forms[layer, 1], forms[layer, 2]
            a0, a1, a2, v, g, bend = moments(row, shape, q)
            up, down = moments(row, shape, q * (1.0 + STEP)), moments(row, shape, q * (1.0 - STEP))
            step = BEND * max(q, 0.1)
            b0[:], b1[:], b2[:] = a0, a1, a2
            covariance[0], covariance[1] = q - step, q - 2.0 * step
            closed(row, shape, covariance, two, pair, (a0, a1, a2), b0, b1, b2)
            third = max(g - 2.0 * pair[0] + pair[1], 0.0) / (step * step)
            off = dq + EPS * q
            at, n0, n1, n2 = NUMBERS * layer, math.sqrt(v), math.sqrt(g), math.sqrt(bend)
            table[at, i], table[at + 1, i], table[at + 2, i] = a0, a1, a2
            table[at + 3, i], table[at + 5, i], table[at + 7, i] = n0, n1, n2
            table[at + 4, i] = 0.5 * (n2 * off + ROUNDINGS * EPS * n0)
            table[at + 6, i] = 0.6 * math.sqrt(third) * off + 0.5 * ROUNDINGS * EPS * n1
            width = max(2.0 * STEP * q, 1e-300)
            after = keep * q + m * v + s
            error = m * (abs(up[3] - down[3]) / width * off + ROUNDINGS * EPS * v)
            turned = m * (abs(up[4] - down[4]) / width * off + ROUNDINGS * EPS * g)
            dt = keep * dt + m * g * dt + w * turned + error
            dq = keep * dq + error + EPS * after
            w = (keep + m * g) * w + m * v + s
            dt += EPS * w
            q = after
            for number in range(NUMBERS):
                total += 0.0 * table[at + number, i]
        ends[0, i], ends[1, i], ends[2, i], ends[3, i] = q, w, dq, dt
        total += 0.0 * (q + w + dq + dt)
    return total == 0.0


@inner
def _first(k: Array, w: Array, e: Array, f: Array, form: Array, own: float, others: Array) -> None:
    """The linear map of the inputs, from their inner products; form: weight, bias, rounding."""
    weight, bias, size = form[0], form[1], form[2] * math.sqrt(own)
    for t in range(k.size):
        k[t] = weight * k[t] + bias
        w[t] = k[t]
        e[t] = size * math.sqrt(others[t])
        f[t] = e[t]


@inner
def advance(
    k: Array, w: Array, e: Array, f: Array, v: Array, g: Array,
    own: Array, n0: Array, p0: Array, n1: Array, p1: Array, n2: Array, form: Array,
) -> None:  # fmt: skip
    """One layer, from its values and slopes; form: keep, m, s."""
    keep, m, s = form[0], form[1], form[2]
    a0, c0, a1, c1, a2 = own[3], own[4], own[5], own[6], own[7]
    for t in range(k.size):
        value, slope, before = m * v[t] + s, m * g[t], w[t]
        size, off = abs(slope), e[t] + EPS * abs(k[t])
        added = size * off + m * (a0 * p0[t] + c0 * n0[t])
        turned = m * (a2 * n2[t] * off + (a1 * p1[t] + c1 * n1[t]))
        k[t] = keep * k[t] + value
        w[t] = (keep + slope) * before + value
        f[t] = (keep + size) * f[t] + abs(before) * turned + added + EPS * abs(w[t])
        e[t] = keep * e[t] + added + EPS * abs(k[t])


@inner
def _read(table: Array, layer: int, start: int, stop: int, number: int) -> Array:
    """A number of columns in a layer."""
    found: Array = table[NUMBERS * layer + number][start:stop]
    return found


@inner
def _end(
    strip: Whole, ends: Ends, i: int, start: int, at: int, readout: float, most: Array
) -> None:
    """The readout of a strip, and its errors; an input with itself is ``at`` a place, or nowhere.

    ``most``: of each column the largest errors, of K and w away from coincidence and near it, in
    units of the kernels of inputs with themselves.
    """
    k, w, e, f, near = strip
    for t in range(k.size):
        w[t] += readout * k[t]
        f[t] += readout * e[t]
    if at >= 0:
        k[at], w[at], e[at], f[at] = ends[0][0, i], ends[0][1, i], ends[0][2, i], ends[0][3, i]
        near[at] = 0.0
    for kind in range(2):
        mine, others = ends[0][kind, i], ends[1][kind][start : start + k.size]
        error, away, close = strip[2 + kind], most[2 * kind], most[2 * kind + 1]
        for t in range(k.size):
            unit = mine * others[t]
            found = error[t] / math.sqrt(unit) if unit > 0.0 else 0.0
            away[t] = max(away[t], 0.0 if near[t] > 0.0 else found)
            close[t] = max(close[t], found if near[t] > 0.0 else 0.0)


@inner
def _keep_most(most: Array, worst: Array) -> None:
    for kind in range(4):
        for t in range(most.shape[1]):
            worst[kind] = max(worst[kind], most[kind, t])
    most[:] = 0.0


@inner
def _closed_strip(
    row: int, shape: Array, k: Array, w: Array, e: Array, f: Array, v: Array, g: Array,
    own: Array, others: Array, start: int, forms: Array,
) -> None:  # fmt: skip
    """Pairs of one input through all layers."""
    stop = start + k.size
    for layer in range(forms.shape[0]):
        at = NUMBERS * layer
        b0, b1 = _read(others, layer, start, stop, 0), _read(others, layer, start, stop, 1)
        b2 = _read(others, layer, start, stop, 2)
        closed(row, shape, k, v, g, (own[at], own[at + 1], own[at + 2]), b0, b1, b2)
        n0, p0 = _read(others, layer, start, stop, 3), _read(others, layer, start, stop, 4)
        n1, p1 = _read(others, layer, start, stop, 5), _read(others, layer, start, stop, 6)
        n2 = _read(others, layer, start, stop, 7)
        advance(k, w, e, f, v, g, own[at : at + NUMBERS], n0, p0, n1, p1, n2, forms[layer])


@exact
def run_closed(
    row: int, shape: Array, pair: Pair, factors: Ends, tables: Ends, ends: Ends, first: Array,
    forms: Array, readout: float, job: Job, worst: Array,
) -> None:  # fmt: skip
    """Tiles of the kernels of a chain with a closed dual; ``worst`` takes the errors of each."""
    tiles, same, x = job[0], pair[3], pair[0]
    tables, ends, forms = both(tables), both(ends), uncounted(forms)
    k, w, panel = np.empty((ROWS, PITCH)), np.empty((ROWS, PITCH)), np.empty((PANEL, COLUMNS))
    begin, own = np.empty(ROWS, np.int64), np.empty(tables[0].shape[0])
    e, f, near = np.empty(COLUMNS), np.empty(COLUMNS), np.empty(COLUMNS)
    v, g, most = np.empty(COLUMNS), np.empty(COLUMNS), np.zeros((4, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        columns = min(COLUMNS, len(pair[1]) - j0)
        wide = whole(columns)
        gram(x, pair[2], i0, j0, wide, panel, k)
        starts(same, i0, j0, begin)
        for r in range(min(ROWS, len(x) - i0)):
            i, s = i0 + r, begin[r]
            if s >= columns:
                continue
            size, start = wide - s, j0 + s
            row_k, row_w, row_e, row_f = k[r][s:wide], w[r][s:wide], e[:size], f[:size]
            before = ends[1][4][start : start + size]
            _first(row_k, row_w, row_e, row_f, first, ends[0][4, i], before)
            for t in range(size):
                near[t] = row_k[t] - NEAR * math.sqrt(ends[0][4, i] * before[t])
            copy(tables[0][:, i], own)
            _closed_strip(
                row, shape, row_k, row_w, row_e, row_f, v[:size], g[:size], own, tables[1], start,
                forms,
            )  # fmt: skip
            some = row_k, row_w, row_e, row_f, near[:size]
            place = i - start if same and start <= i < start + size else -1
            _end(some, ends, i, start, place, readout, most)
        _keep_most(most, worst[i0 // ROWS, j0 // COLUMNS])
        keep(k, w, same, factors[0], factors[1], i0, j0, begin, job)


Table = tuple[Array, Array, Index]
"""Of rows (rows, terms) and of columns (terms, columns); where the terms of each degree start."""


@inner
def strip(state: Whole, i: int, a: int, b: int) -> Whole:
    """Pairs of one input."""
    return state[0][i][a:b], state[1][i][a:b], state[2][i][a:b], state[3][i][a:b], state[4][i][a:b]


@exact
def run_starts(
    pair: Pair, squares: Ends, first: Array, tiles: Index, state: Whole, span: Array
) -> None:
    """The linear map of the inputs, of pairs of different ones; ``span``: of correlations."""
    same, x = pair[3], pair[0]
    products, panel = np.empty((ROWS, PITCH)), np.empty((PANEL, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        columns = min(COLUMNS, len(pair[1]) - j0)
        gram(x, pair[2], i0, j0, whole(columns), panel, products)
        low, high = 1.0, -1.0
        for r in range(min(ROWS, len(x) - i0)):
            i = i0 + r
            s = max(0, i + 1 - j0) if same else 0
            if s >= columns:
                continue
            a, b = j0 + s, j0 + columns
            (k, w, e, f, near), others = strip(state, i, a, b), squares[1][a:b]
            copy(products[r][s:columns], k)
            _first(k, w, e, f, first, squares[0][i], others)
            for t in range(k.size):
                rho = k[t] / math.sqrt(squares[0][i] * others[t])
                near[t] = rho - NEAR
                low, high = min(low, rho), max(high, rho)
        span[i0 // ROWS, j0 // COLUMNS, 0], span[i0 // ROWS, j0 // COLUMNS, 1] = low, high


@inner
def _correlate(k: Array, mine: float, others: Array, out: Array) -> None:
    for t in range(k.size):
        out[t] = min(max(k[t] * (mine * others[t]), -1.0), 1.0)


@exact
def run_series(
    pair: Pair, way: int, series: Ends, short: tuple[Table, Table, float, float], tables: Ends,
    over: Ends, after: Ends, form: Array, tiles: Index, state: Whole, span: Array,
) -> None:  # fmt: skip
    """One layer by its Hermite series: of all degrees, the odd ones (1) or the even ones (2).

    The third way is ``short``: values and slopes in x = scale rho + shift. ``over``, ``after``: 1
    over the sizes of inputs before and after the layer.
    """
    same, (own, table), state = pair[3], both(tables), every(state)
    over, after = both(over), both(after)
    rho, x = np.empty((FOUR, COLUMNS)), np.empty((FOUR, COLUMNS))
    v, g = np.empty((FOUR, COLUMNS)), np.empty((FOUR, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        stop, low, high = min(j0 + COLUMNS, len(pair[1])), 1.0, -1.0
        top = min(i0 + ROWS, len(pair[0]))
        for i in range(i0, top, FOUR):
            a, rows = max(j0, i + 1) if same else j0, min(FOUR, top - i)
            if a >= stop:
                continue
            for r in range(rows):
                _correlate(state[0][i + r][a:stop], over[0][i + r], over[1][a:stop], rho[r])
            some = rho[:rows, : stop - a], x[:rows, : stop - a], v[:rows], g[:rows]
            if way == 3:
                _short(short, i, a, *some)
            else:
                _long(way, series, over, i, a, *some)
            for r in range(rows):
                b = max(a, i + r + 1) if same else a
                value, slope = v[r][b - a : stop - a], g[r][b - a : stop - a]
                k, w, e, f, _ = strip(state, i + r, b, stop)
                advance(
                    k, w, e, f, value, slope, own[:, i + r], table[3][b:stop], table[4][b:stop],
                    table[5][b:stop], table[6][b:stop], table[7][b:stop], form,
                )  # fmt: skip
                _correlate(k, after[0][i + r], after[1][b:stop], x[r])
                for t in range(stop - b):
                    low, high = min(low, x[r, t]), max(high, x[r, t])
        span[i0 // ROWS, j0 // COLUMNS, 0], span[i0 // ROWS, j0 // COLUMNS, 1] = low, high


@inner
def _long(
    way: int, series: Ends, over: Ends, i: int, a: int, rho: Array, x: Array, v: Array, g: Array
) -> None:
    """Values, and their derivatives by the correlation, of a Hermite series."""
    rows, size = x.shape
    for k in range(rows):
        r, z = rho[k], x[k]
        for t in range(size):
            z[t] = r[t] * r[t] if way else r[t]
    horner(x, series[0][i : i + rows], series[1], a, v, g)
    for k in range(rows):
        r, z, value, slope = rho[k], x[k], v[k], g[k]
        mine, others = over[0][i + k], over[1][a : a + size]
        for t in range(size):
            grown = 2.0 * slope[t]
            if way == 1:
                slope[t] = value[t] + z[t] * grown
                value[t] = value[t] * r[t]
            elif way == 2:
                slope[t] = r[t] * grown
            slope[t] *= mine * others[t]


@inner
def _short(
    short: tuple[Table, Table, float, float], i: int, a: int, rho: Array, x: Array, v: Array,
    g: Array,
) -> None:  # fmt: skip
    """Values and slopes by tables."""
    values, slopes, scale, shift = short
    rows, size = x.shape
    for k in range(rows):
        r, z = rho[k], x[k]
        for t in range(size):
            z[t] = scale * r[t] + shift
    clenshaw(x, values[0][i : i + rows], values[1], values[2], a, v)
    clenshaw(x, slopes[0][i : i + rows], slopes[1], slopes[2], a, g)


@exact
def run_ends(
    same: bool, ends: Ends, readout: float, tiles: Index, state: Whole, worst: Array
) -> None:
    """The readout, entries of inputs with themselves, mirror images, and the largest errors."""
    (rows, count), state, ends = state[0].shape, every(state), both(ends)
    most = np.zeros((4, COLUMNS))
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        stop = min(j0 + COLUMNS, count)
        for i in range(i0, min(i0 + ROWS, rows)):
            a = max(j0, i) if same else j0
            if a >= stop:
                continue
            at = 0 if same and a == i else -1
            _end(strip(state, i, a, stop), ends, i, a, at, readout, most)
        _keep_most(most, worst[i0 // ROWS, j0 // COLUMNS])
        if same:
            for j in range(max(j0, i0), stop):
                for i in range(i0, min(j, i0 + ROWS, rows)):
                    state[0][j, i], state[1][j, i] = state[0][i, j], state[1][i, j]
