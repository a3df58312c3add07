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

from tpcalc.arrays import Array, Index
from tpcalc.engine.kernels_compile import loose, pointer
from tpcalc.engine.kernels_tiles import (
    ACROSS,
    DOWN,
    HIGH,
    LANES,
    WIDE,
    add_tile,
    dot_tile,
    fetch,
    transpose,
)

Rows = NDArray[Any]  # float64 or float32, and in chunks

LINE = 64  # bytes of a cache line
BEGIN = 4  # lines of a row that are fetched before it is read
MOST = 2 * LANES  # columns of a tile of inner products
STEP = WIDE * LANES  # samples of a tile of sums
TALL, LOW, _ = DOWN


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
def _zeros(count: int) -> Array:
    """Zeros that begin with a cache line: vectors of them never lie across two."""
    found = np.zeros(count + LANES)
    first = -found.ctypes.data % LINE // 8
    return found[first : first + count]


@loose
def _copy(given: Array, out: Array) -> None:
    """Write a table into another; numba's own assignment compiles words of errors, for seconds."""
    for i in range(out.shape[0]):
        for t in range(out.shape[1]):
            out[i, t] = given[i, t]


@loose
def _panels(
    data: Rows, start: int, pitch: int, rows: int, after: int, columns: Array, out: Array,
    room: Array,
) -> None:  # fmt: skip
    """Add inner products of rows with up to 16 columns; then what lies at ``after`` is read."""
    i, line, count = 0, 8 * out.shape[1], columns.shape[0] // LANES
    vectors = columns.shape[1] // LANES
    x, spare = columns.ctypes.data, room.ctypes.data
    while i < rows:
        place, row = out.ctypes.data + i * line, start + i * pitch
        down = TALL if rows - i >= TALL else (LOW if rows - i >= LOW else 1)
        ahead = row + down * pitch if i + down < rows else after
        dot_tile(data, down, vectors, row, pitch, x, count, place, line, ahead, spare)
        i += down


@loose
def _dots_many(
    data: Rows, rows: int, addresses: Index, rows_of: int, out: Array, square: Array, gram: bool
) -> None:
    """Inner products of all rows with several vectors, 16 of them at a time."""
    count, capacity, block = data.shape
    columns, size = addresses.size, block * data.itemsize
    room, copy = _zeros(TALL * LANES), np.empty((columns, block))
    groups = (columns + MOST - 1) // MOST
    places = np.empty(groups * MOST, np.int64)  # what is beyond is computed, and left
    found, among = np.zeros((groups, rows, MOST)), np.zeros((groups, columns, MOST))
    by_sample = _zeros(groups * block * MOST).reshape(groups, block * MOST)
    for k in range(count):
        start = data.ctypes.data + k * capacity * size
        for j in range(places.size):
            places[j] = addresses[min(j, columns - 1)] + 8 * block * rows_of * k
            if gram and j < columns:
                _copy(carray(pointer(places[j]), (1, block)), copy[j : j + 1])
        for g in range(groups):
            # The tiles read a vector of columns, or two, for every sample.
            width = LANES if columns - g * MOST <= LANES else MOST
            x = by_sample[g, : block * width].reshape(block, width)
            for j in range(0, width, LANES):
                given = places.ctypes.data + 8 * (g * MOST + j)
                transpose(given, block // LANES, x.ctypes.data + 8 * j, 8 * width)
            if gram:
                own = copy.ctypes.data
                _panels(copy, own, 8 * block, columns, start, x, among[g], room)
            after = start + (capacity * size if g + 1 == groups else 0)
            _panels(data, start, size, rows, after, x, found[g], room)
    for g in range(groups):
        low, high = g * MOST, min((g + 1) * MOST, columns)
        _copy(found[g], out[:rows, low:high])
        if gram:
            _copy(among[g], square[:columns, low:high])


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
    data: Rows, block: int, index: Index, table: Array, sums: Array, ahead: int
) -> None:
    """Add the rows ``index`` of a block times a table to the sums of all columns.

    Eight rows after eight others, so that they are read once for all columns; meanwhile the next
    ones are fetched, after the last ones what lies at ``ahead``.
    """
    size, rows, high = data.shape[2] * data.itemsize, index.size, HIGH * table.shape[0]
    panel = np.empty(high + HIGH, np.int64)
    for i in range(high):  # whole panels: coefficients of what is added are 0
        panel[i] = data.ctypes.data + (block * data.shape[1] + index[min(i, rows - 1)]) * size
    for i in range(HIGH):
        panel[high + i] = ahead + i * size
    for low in range(table.shape[0]):
        place, own = panel.ctypes.data + 8 * HIGH * low, table[low].ctypes.data
        for m in range(sums.shape[0]):
            add_tile(data, place, m * STEP, own, sums[m].ctypes.data, table.shape[1])


@loose
def _by_rows(coefficients: Array, index: Index) -> Array:
    """Coefficients (column, row) of some rows by tiles (panel, four columns, row, column)."""
    columns, rows = coefficients.shape[0], index.size
    panels, groups = (rows + HIGH - 1) // HIGH, (columns + ACROSS - 1) // ACROSS
    shape = panels, groups, HIGH, ACROSS
    table: Array = _zeros(groups * panels * HIGH * ACROSS).reshape(shape)
    for i in range(rows):
        for j in range(columns):
            table[i // HIGH, j // ACROSS, i % HIGH, j % ACROSS] = coefficients[j, index[i]]
    return table


@loose
def _by_steps(address: int, block: int) -> Array:
    """The block of a vector, as steps of samples."""
    found: Array = carray(pointer(address), (block // STEP, STEP))
    return found


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
    padded = (addresses.size + ACROSS - 1) // ACROSS * ACROSS
    sums = _zeros(block * padded).reshape(block // STEP, padded, STEP)
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
                sums[:, j] = 0.0
                if add:
                    _copy(_by_steps(addresses[j] + begin + 8 * block * k, block), sums[:, j])
            ahead = rows[min(k + 1, count - 1)].ctypes.data
            between = others[k].ctypes.data if more.size else ahead
            _combine_block(rows, k, index, table, sums, between)
            _combine_block(others, k, more, extra, sums, ahead)
            for j in range(columns):
                _copy(sums[:, j], _by_steps(addresses[j] + begin + 8 * block * k, block))


@loose
def residual(
    data: Rows, rows: int, given: Array, coefficients: Array, result: Array, out: Array
) -> float:
    """Write result = given - combination of rows, and its inner products with the rows."""
    order, minus = np.arange(rows), -coefficients
    found = np.empty((1, data.shape[2]))
    v, square = found[0], 0.0
    for block in range(data.shape[0]):
        _copy(given[block : block + 1], found)
        _add_rows(data, block, order, minus, v, _row(data, block + 1, 0))
        for i in range(rows):
            out[i] += _dot_row(data[block, i], v)
        square += _dot_row(v, v)
        _copy(found, result[block : block + 1])
    return square
