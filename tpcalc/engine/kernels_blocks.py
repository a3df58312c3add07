"""The numba side of ``kernels``: loops over blocks of samples.

Rows come as ``data[blocks, capacity, chunks, chunk]``: between two chunks of arithmetic a piece of
a row that is needed later is fetched, so that memory and arithmetic are busy at the same time.
Vectors come as addresses, so that one compiled function serves any number of them, and replicates
one after another: each has its own blocks. All of it is in one file: numba's cache notices changes
of the file of a function only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tpcalc.engine.kernels_compile import loose, pointer

__all__ = ["combine", "dots", "residual"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[Any]  # float64 or float32, and in chunks

AHEAD = 4096  # bytes between a row that is read and the one that is fetched meanwhile
LINE = 64  # bytes of a cache line
PANEL = 32  # rows that stay in cache while all columns pass over them


@intrinsic
def _fetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address; never faults."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place], kind)
        builder.call(prefetch, [builder.inttoptr(args[0], place), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@loose
def _place(data: Rows, start: int, block: int, index: Index, position: int) -> int:
    """Address of a row of a block, by its position in the list ``index`` of rows that are read.

    Positions past the end count on into the next blocks. (Past the last block nothing is read:
    a fetch of an address that does not exist does nothing.)
    """
    count = index.size
    if position >= count:
        block += position // count
        position %= count
    row = block * data.shape[1] + int(index[position])
    return int(start + row * data.shape[2] * data.shape[3] * data.itemsize)


@loose
def _rows_ahead(data: Rows) -> int:
    return max(1, AHEAD // int(data.shape[2] * data.shape[3] * data.itemsize))


@loose
def _fetch_chunk(place: int, row: Rows, c: int) -> None:
    """Fetch chunk ``c`` of a row of the same layout as ``row``."""
    size = row.shape[1] * row.itemsize
    for offset in range(0, size, LINE):
        _fetch(place + c * size + offset)


@loose
def _dot_row(row: Rows, x: Array, ahead: int) -> float:
    """An inner product; another row is fetched meanwhile (none: 0)."""
    found = 0.0
    for c in range(row.shape[0]):
        if ahead:
            _fetch_chunk(ahead, row, c)
        p, y = row[c], x[c]
        for t in range(p.size):
            found += p[t] * y[t]
    return found


@loose
def _add_row(out: Array, factor: float, row: Rows, ahead: int) -> None:
    """Add a row to ``out``; another one is fetched meanwhile (none: 0)."""
    for c in range(row.shape[0]):
        if ahead:
            _fetch_chunk(ahead, row, c)
        p, y = row[c], out[c]
        for t in range(p.size):
            y[t] += factor * p[t]


@loose
def _add_four_rows(
    out: Array, table: Array, i: int, j: int, panel: Rows, index: Index, ahead: Index, fetched: int
) -> None:
    """Four rows of coefficients, four outputs: every number that is loaded is used four times."""
    row_a, row_b = panel[index[i]], panel[index[i + 1]]
    row_c, row_d = panel[index[i + 2]], panel[index[i + 3]]
    a0, a1, a2, a3 = table[i, j], table[i, j + 1], table[i, j + 2], table[i, j + 3]
    b0, b1, b2, b3 = table[i + 1, j], table[i + 1, j + 1], table[i + 1, j + 2], table[i + 1, j + 3]
    c0, c1, c2, c3 = table[i + 2, j], table[i + 2, j + 1], table[i + 2, j + 2], table[i + 2, j + 3]
    d0, d1, d2, d3 = table[i + 3, j], table[i + 3, j + 1], table[i + 3, j + 2], table[i + 3, j + 3]
    for k in range(row_a.shape[0]):
        for m in range(fetched):
            _fetch_chunk(ahead[m], row_a, k)
        a, b, c, d = row_a[k], row_b[k], row_c[k], row_d[k]
        out0, out1, out2, out3 = out[j, k], out[j + 1, k], out[j + 2, k], out[j + 3, k]
        for t in range(a.size):
            p, q, r, s = a[t], b[t], c[t], d[t]
            out0[t] += (a0 * p + b0 * q) + (c0 * r + d0 * s)
            out1[t] += (a1 * p + b1 * q) + (c1 * r + d1 * s)
            out2[t] += (a2 * p + b2 * q) + (c2 * r + d2 * s)
            out3[t] += (a3 * p + b3 * q) + (c3 * r + d3 * s)


@loose
def _dot_four_rows(
    panel: Rows, i: int, last: int, x: Array, j: int, out: Array, ahead: Index, fetched: int
) -> None:
    """Inner products of four rows with four columns, added to four rows of ``out``.

    Where there are no four rows left the last one serves, for rows of ``out`` that nobody reads.
    """
    row_a, row_b = panel[i], panel[min(i + 1, last)]
    row_c, row_d = panel[min(i + 2, last)], panel[min(i + 3, last)]
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
    for k in range(row_a.shape[0]):
        for m in range(fetched):
            _fetch_chunk(ahead[m], row_a, k)
        a, b, c, d = row_a[k], row_b[k], row_c[k], row_d[k]
        x0, x1, x2, x3 = x[j, k], x[j + 1, k], x[j + 2, k], x[j + 3, k]
        for t in range(a.size):
            p, q, r, s = a[t], b[t], c[t], d[t]
            y = x0[t]
            a0, b0, c0, d0 = a0 + p * y, b0 + q * y, c0 + r * y, d0 + s * y
            y = x1[t]
            a1, b1, c1, d1 = a1 + p * y, b1 + q * y, c1 + r * y, d1 + s * y
            y = x2[t]
            a2, b2, c2, d2 = a2 + p * y, b2 + q * y, c2 + r * y, d2 + s * y
            y = x3[t]
            a3, b3, c3, d3 = a3 + p * y, b3 + q * y, c3 + r * y, d3 + s * y
    sums = ((a0, b0, c0, d0), (a1, b1, c1, d1), (a2, b2, c2, d2), (a3, b3, c3, d3))
    for column in range(4):
        for row in range(4):
            out[i + row, j + column] += sums[column][row]


@loose
def _combine_block(
    data: Rows, start: int, block: int, index: Index, table: Array, out: Array
) -> None:
    """Add to ``out[columns, samples]`` the rows ``index`` times ``table[rows, columns]``.

    Panel by panel, so that rows are in cache for every column. The next panel is fetched by the
    first columns: all of it by the first four, or one half by them and one half by the next four.
    """
    count = index.size
    panel = data[block]
    ahead = np.zeros(4, np.int64)
    each = 4 if out.shape[0] == 4 else 2
    for low in range(0, count, PANEL):
        high = min(low + PANEL, count)
        position = high
        for j in range(0, out.shape[0], 4):
            fetched = each if j < 8 else 0
            for i in range(low, high, 4):
                for m in range(fetched):
                    ahead[m] = _place(data, start, block, index, position + m)
                position += fetched
                _add_four_rows(out, table, i, j, panel, index, ahead, fetched)


@loose
def _dots_block(data: Rows, start: int, block: int, index: Index, x: Array, found: Array) -> None:
    """Add to ``found[rows, columns]`` the inner products of rows and columns of one block."""
    last = index.size - 1
    panel = data[block]
    ahead = np.zeros(4, np.int64)
    each = 4 if x.shape[0] == 4 else 2
    for low in range(0, last + 1, PANEL):
        high = min(low + PANEL, last + 1)
        position = high
        for j in range(0, x.shape[0], 4):
            fetched = each if j < 8 else 0
            for i in range(low, high, 4):
                for m in range(fetched):
                    ahead[m] = _place(data, start, block, index, position + m)
                position += fetched
                _dot_four_rows(panel, i, last, x, j, found, ahead, fetched)


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
def _padded(index: Index, coefficients: Array) -> tuple[Index, Array]:
    """Rows padded to a multiple of four (by the first one, with coefficient 0), and their table."""
    columns = coefficients.shape[0]
    table = np.zeros(((index.size + 3) // 4 * 4, (columns + 3) // 4 * 4))
    full = np.zeros(table.shape[0], np.int64)
    for i in range(full.size):
        full[i] = index[i] if i < index.size else index[0]
    for i in range(index.size):
        for j in range(columns):
            table[i, j] = coefficients[j, index[i]]
    return full, table


@loose
def _dots_one(data: Rows, rows: int, vector: Array, out: Array, gram: bool) -> float:
    """Inner products of all rows with one vector."""
    start, order, gap = data.ctypes.data, np.arange(rows), _rows_ahead(data)
    square = 0.0
    for block in range(data.shape[0]):
        x, panel = vector[block, 0], data[block]
        if gram:
            square += _dot_row(x, x, 0)
        for i in range(rows):
            out[i, 0] += _dot_row(panel[i], x, _place(data, start, block, order, i + gap))
    return square


@loose
def _dots_many(
    data: Rows, rows: int, addresses: Index, rows_of: int, out: Array, square: Array, gram: bool
) -> None:
    """Inner products of all rows with several vectors."""
    count, _, chunks, chunk = data.shape
    columns, start, order = addresses.size, data.ctypes.data, np.arange(rows)
    x = np.zeros(((columns + 3) // 4 * 4, chunks, chunk))
    found = np.zeros((rows + 4, x.shape[0]))
    for block in range(count):
        for j in range(columns):
            x[j] = carray(pointer(addresses[j]), (count, rows_of, chunks, chunk))[block, 0]
        if gram:
            for i in range(columns):
                for j in range(i + 1):
                    square[i, j] += _dot_row(x[i], x[j], 0)
        _dots_block(data, start, block, order, x, found)
    out[:rows, :columns] = found[:rows, :columns]
    for i in range(columns):
        for j in range(i):
            square[j, i] = square[i, j]


@loose
def dots(
    data: Rows, rows: Index, addresses: Index, rows_of: int, used: Index, out: Array,
    square: Array, gram: bool, chunks: tuple[int, int],
) -> None:  # fmt: skip
    """Inner products of the rows of each replicate with its vectors.

    ``addresses``: of the first samples of each vector, (replicate, column); a vector is a row of a
    store of ``rows_of`` rows (1: the samples follow one another).
    ``used``: how many of the vectors a replicate has; with none it is left alone.
    ``chunks``: samples worked on at once with one column, with more.
    """
    count, capacity, block = data.shape[0] // rows.size, data.shape[1], data.shape[2]
    for r in range(rows.size):
        part, own = data[r * count : (r + 1) * count], addresses[r, : used[r]]
        if used[r] == 1:
            chunk = min(block, chunks[0])
            shape = (count, capacity, block // chunk, chunk)
            vector = carray(pointer(own[0]), (count, rows_of, block // chunk, chunk))
            square[r, 0, 0] = _dots_one(part.reshape(shape), rows[r], vector, out[r], gram)
        elif used[r]:
            chunk = min(block, chunks[1])
            shape = (count, capacity, block // chunk, chunk)
            _dots_many(part.reshape(shape), rows[r], own, rows_of, out[r], square[r], gram)


@loose
def _combine_row(
    data: Rows, start: int, block: int, index: Index, coefficients: Array, out: Array
) -> None:
    panel, gap = data[block], _rows_ahead(data)
    for i in range(index.size):
        ahead = _place(data, start, block, index, i + gap)
        _add_row(out, coefficients[index[i]], panel[index[i]], ahead)


@loose
def combine(
    one: Rows, left: Array, two: Rows, right: Array, addresses: Index, used: Index, add: bool,
    samples: int,
) -> None:  # fmt: skip
    """Write or add combinations of rows of two stores to the ``used`` vectors of each replicate.

    Rows whose coefficients (replicate, column, row) are all zero are not read.
    """
    replicates = left.shape[0]
    count, block = one.shape[0] // replicates, one.shape[2]
    chunk = min(block, samples)
    chunks, stride = block // chunk, 8 * count * block
    panel = np.empty(((addresses.size + 3) // 4 * 4, chunks, chunk))
    for r in range(replicates):
        columns = used[r]
        work = panel[: (columns + 3) // 4 * 4]
        rows = one[r * count : (r + 1) * count].reshape((count, one.shape[1], chunks, chunk))
        others = two[r * count : (r + 1) * count].reshape((count, two.shape[1], chunks, chunk))
        index, more = _used(left[r, :columns]), _used(right[r, :columns])
        first, second = rows.ctypes.data, others.ctypes.data
        if columns == 1:
            vector = carray(pointer(addresses[0] + r * stride), (count, chunks, chunk))
            for k in range(count):
                if not add:
                    vector[k] = 0.0
                _combine_row(rows, first, k, index, left[r, 0], vector[k])
                _combine_row(others, second, k, more, right[r, 0], vector[k])
            continue
        index, table = _padded(index, left[r, :columns])
        more, extra = _padded(more, right[r, :columns])
        for k in range(count):
            work[:] = 0.0
            _combine_block(rows, first, k, index, table, work)
            _combine_block(others, second, k, more, extra, work)
            for j in range(columns):
                place = addresses[j] + r * stride
                out = carray(pointer(place), (count, chunks, chunk))[k]
                if add:
                    out += work[j]
                else:
                    out[:] = work[j]


@loose
def residual(
    data: Rows, rows: int, given: Array, coefficients: Array, result: Array, out: Array
) -> float:
    """Write result = given - combination of rows, and its inner products with the rows."""
    count, _, chunks, chunk = data.shape
    start, order, gap = data.ctypes.data, np.arange(rows), _rows_ahead(data)
    v = np.empty((chunks, chunk))
    square = 0.0
    for block in range(count):
        panel = data[block]
        v[:] = given[block]
        for i in range(rows):
            _add_row(v, -coefficients[i], panel[i], _place(data, start, block, order, i + gap))
        for i in range(rows):
            out[i] += _dot_row(panel[i], v, 0)
        square += _dot_row(v, v, 0)
        result[block] = v
    return square
