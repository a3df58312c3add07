"""The numba side of ``kernels``: loops over blocks of samples.

For one vector one row after another is read, and the beginning of the next one is fetched: the
processor foresees what lies within a row, not where the next one starts. For several vectors rows
and vectors meet in tiles.
Vectors come as addresses, so that one compiled function serves any number of them, and replicates
one after another: each has its own blocks. All loops are in one file: numba's cache notices changes
of the file of a function only (after a change of ``kernels_tiles`` touch this one).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from tpcalc.engine.kernels_compile import loose, pointer
from tpcalc.engine.kernels_tiles import (
    ACROSS,
    DOWN,
    LANES,
    add_short_tile,
    add_tile,
    dot_tile,
    fetch,
)

__all__ = ["combine", "dots", "residual"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[Any]  # float64 or float32, and in chunks

LINE = 64  # bytes of a cache line
BEGIN = 4  # lines of a row that are fetched before it is read
PANEL = 16  # rows that stay in the fastest cache while all columns pass over them


@loose
def _row(data: Rows, block: int, row: int) -> int:
    """Address of a row; past the last block it is only fetched, which does nothing there."""
    place = (block * data.shape[1] + row) * data.shape[2]
    return int(data.ctypes.data + place * data.itemsize)


@loose
def _dot_row(row: Rows, x: Array) -> float:
    """An inner product."""
    found = 0.0
    for t in range(row.size):
        found += row[t] * x[t]
    return found


@loose
def _begin(place: int) -> None:
    """Fetch the beginning of the row at an address."""
    for line in range(BEGIN):
        fetch(place + line * LINE)


@loose
def _used(coefficients: Array) -> Index:
    """The rows with a coefficient, of any column, that is not zero."""
    index, found = np.empty(coefficients.shape[1], np.int64), 0
    for i in range(coefficients.shape[1]):
        for j in range(coefficients.shape[0]):
            if coefficients[j, i] != 0.0:
                index[found] = i
                found += 1
                break
    return index[:found]


@loose
def _dots_one(data: Rows, rows: int, vector: Array, out: Array, gram: bool) -> float:
    """Inner products of all rows with one vector."""
    square = 0.0
    for block in range(data.shape[0]):
        x, panel = vector[block, 0], data[block]
        if gram:
            square += _dot_row(x, x)
        for i in range(rows):
            _begin(_row(data, block, i + 1) if i + 1 < rows else _row(data, block + 1, 0))
            out[i, 0] += _dot_row(panel[i], x)
    return square


@loose
def _dots_many(
    data: Rows, rows: int, addresses: Index, rows_of: int, out: Array, square: Array, gram: bool
) -> None:
    """Inner products of all rows with several vectors."""
    count, capacity, block = data.shape
    columns, size = addresses.size, block * data.itemsize
    padded, lines = (columns + ACROSS - 1) // ACROSS * ACROSS, 3 * block // LANES * LINE
    places, panel = np.empty(padded + DOWN, np.int64), np.empty(rows + DOWN, np.int64)
    found, among = np.zeros((rows + DOWN, padded)), np.zeros((columns + DOWN, padded))
    p, x, pitch = panel.ctypes.data, places.ctypes.data, 8 * padded
    for k in range(count):
        start = data.ctypes.data + k * capacity * size
        for j in range(places.size):  # what is beyond is computed, and left
            places[j] = addresses[min(j, columns - 1)] + 8 * block * rows_of * k
        for i in range(panel.size):
            panel[i] = start + max(0, min(i, rows - 1)) * size
        if gram:
            for i in range(0, columns, DOWN):
                for j in range(0, padded, ACROSS):
                    place = among.ctypes.data + i * pitch + 8 * j
                    dot_tile(among, x + 8 * i, x + 8 * j, block // LANES, place, pitch, start)
        for i in range(0, rows, DOWN):
            ahead = start + (i + DOWN if i + DOWN < rows else capacity) * size
            for j in range(0, padded, ACROSS):
                place = found.ctypes.data + i * pitch + 8 * j
                dot_tile(data, p + 8 * i, x + 8 * j, block // LANES, place, pitch, ahead)
                ahead = ahead + lines if j == 0 else start
    out[:rows, :columns] = found[:rows, :columns]
    square[:columns, :columns] = among[:columns, :columns]


@loose
def dots(
    data: Rows, first: int, parts: int, rows: Index, places: Index, rows_of: int, used: Index,
    out: Array, square: Array, gram: bool,
) -> None:  # fmt: skip
    """Inner products of rows with vectors, for some parts of the samples, from ``first`` on.

    Each replicate has ``parts`` of them. ``places``: where the vectors of each replicate (or of
    all) would begin if it were the first; a vector is a row of a store of ``rows_of`` rows (1: the
    samples follow one another).
    ``used``: how many of the vectors a replicate has; with none it is left alone.
    """
    count, block = data.shape[0] // len(out), data.shape[2]
    for p in range(len(out)):
        r = (first + p) // parts
        part, mine = data[p * count : (p + 1) * count], places[r if len(places) > 1 else 0]
        own = mine[: used[r]] + 8 * count * block * rows_of * (first + p)
        if used[r] == 1:
            vector = carray(pointer(own[0]), (count, rows_of, block))
            square[p, 0, 0] = _dots_one(part, rows[r], vector, out[p], gram)
        elif used[r]:
            _dots_many(part, rows[r], own, rows_of, out[p], square[p], gram)


@loose
def _add_rows(
    data: Rows, block: int, index: Index, coefficients: Array, out: Array, ahead: int
) -> None:
    """Add the rows ``index`` of a block to ``out``; then what lies at ``ahead`` is read."""
    for i in range(index.size):
        _begin(_row(data, block, index[i + 1]) if i + 1 < index.size else ahead)
        factor, row = coefficients[index[i]], data[block, index[i]]
        for t in range(out.size):
            out[t] += factor * row[t]


@loose
def _combine_block(
    data: Rows, block: int, index: Index, table: Array, places: Index, ahead: int
) -> None:
    """Add the rows ``index`` of a block times ``table[row, column]`` to the vectors at ``places``.

    Panel by panel, so that rows are in cache for every column; meanwhile the next panel is fetched,
    after the last one what lies at ``ahead``.
    """
    rows, size = index.size, data.shape[2] * data.itemsize
    panel, pitch = np.empty(rows, np.int64), 8 * table.shape[1]
    for i in range(rows):
        panel[i] = data.ctypes.data + (block * data.shape[1] + index[i]) * size
    tall = 4 * LANES if data.shape[2] >= 4 * LANES else 2 * LANES
    for low in range(0, rows, PANEL):
        high = min(low + PANEL, rows)
        fetched = panel[high] if high < rows else ahead
        end = fetched + PANEL * size
        p, factors = panel.ctypes.data + 8 * low, table.ctypes.data + low * pitch
        for t in range(0, data.shape[2], tall):
            for j in range(0, table.shape[1], ACROSS):
                own, out = factors + 8 * j, places.ctypes.data + 8 * j
                if tall == 4 * LANES:
                    add_tile(data, p, high - low, t, own, pitch, out, fetched)
                else:
                    add_short_tile(data, p, high - low, t, own, pitch, out, fetched)
                fetched = fetched + 2 * LINE * (high - low) if fetched < end else panel[low]


@loose
def _by_rows(coefficients: Array, index: Index) -> Array:
    """Coefficients (column, row) of some rows as (row, column), padded to whole tiles."""
    columns = coefficients.shape[0]
    table = np.zeros((index.size, (columns + ACROSS - 1) // ACROSS * ACROSS))
    for i in range(index.size):
        for j in range(columns):
            table[i, j] = coefficients[j, index[i]]
    return table


@loose
def combine(
    one: Rows, left: Array, two: Rows, right: Array, first: int, parts: int, count: int,
    addresses: Index, used: Index, add: bool,
) -> None:  # fmt: skip
    """Write or add combinations of rows of two stores, for some parts of the samples.

    Each replicate has ``parts`` of ``count`` blocks, and takes the first ``used`` vectors. Rows
    whose coefficients (replicate, column, row) are all zero are not read.
    """
    block = one.shape[2]
    stride = 8 * count * block
    spare = np.zeros(block)  # for the columns of a tile that are not there
    places = np.full((addresses.size + ACROSS - 1) // ACROSS * ACROSS, spare.ctypes.data)
    for p in range(len(one) // count):
        r, begin = (first + p) // parts, stride * (first + p)
        columns = used[r]
        rows, others = one[p * count : (p + 1) * count], two[p * count : (p + 1) * count]
        index, more = _used(left[r, :columns]), _used(right[r, :columns])
        if columns == 1:
            vector = carray(pointer(addresses[0] + begin), (count, block))
            start = index[0] if index.size else 0
            for k in range(count):
                if not add:
                    vector[k] = 0.0
                after = _row(rows, k + 1, start)
                between = _row(others, k, more[0]) if more.size else after
                _add_rows(rows, k, index, left[r, 0], vector[k], between)
                _add_rows(others, k, more, right[r, 0], vector[k], after)
            continue
        table, extra = _by_rows(left[r, :columns], index), _by_rows(right[r, :columns], more)
        for k in range(count):
            for j in range(columns):
                places[j] = addresses[j] + begin + 8 * block * k
                if not add:
                    carray(pointer(places[j]), (block,))[:] = 0.0
            after = min(k + 1, count - 1)
            ahead = rows[after].ctypes.data
            _combine_block(
                rows, k, index, table, places, others[k].ctypes.data if more.size else ahead
            )
            _combine_block(others, k, more, extra, places, ahead)
        places[:] = spare.ctypes.data


@loose
def residual(
    data: Rows, rows: int, given: Array, coefficients: Array, result: Array, out: Array
) -> float:
    """Write result = given - combination of rows, and its inner products with the rows."""
    order, minus = np.arange(rows), -coefficients
    v = np.empty(data.shape[2])
    square = 0.0
    for block in range(data.shape[0]):
        v[:] = given[block]
        _add_rows(data, block, order, minus, v, _row(data, block + 1, 0))
        for i in range(rows):
            out[i] += _dot_row(data[block, i], v)
        square += _dot_row(v, v)
        result[block] = v
    return square
