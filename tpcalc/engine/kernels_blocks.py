"""The numba side of ``kernels``: loops over blocks of samples.

Vectors come as addresses, so that one compiled function serves any number of them. Loops that form
sums may be reordered by the compiler (``LOOSE``), which is what lets them use vector registers;
infinities and NaN keep their meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

__all__ = ["axpy", "combine_many", "combine_one", "dot", "dots_many", "dots_one", "residual",
           "total"]  # fmt: skip

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[Any]  # float64 or float32

LOOSE = {"reassoc", "nsz", "contract"}
AHEAD = 4  # rows fetched ahead
LINE = 64  # bytes of a cache line
CHUNK = 128  # samples of a chunk where several rows are worked on at once
PANEL = 32  # rows that stay in cache while all columns pass over them


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    """A float64 pointer from an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.int64), generate


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


@njit(fastmath=LOOSE, nogil=True, cache=True)
def total(vector: Array) -> float:
    """The sum of a vector."""
    found = 0.0
    for start in range(0, vector.size, 512):
        x = vector[start : start + 512]
        part = 0.0
        for t in range(x.size):
            part += x[t]
        found += part
    return found


@njit(fastmath=LOOSE, nogil=True, cache=True)
def dot(left: Array, right: Array) -> float:
    """The sum of products of two vectors."""
    found = 0.0
    for start in range(0, left.size, 512):
        x, y = left[start : start + 512], right[start : start + 512]
        part = 0.0
        for t in range(x.size):
            part += x[t] * y[t]
        found += part
    return found


@njit(fastmath=LOOSE, nogil=True, cache=True)
def axpy(out: Array, factor: float, vector: Array) -> None:
    """Add ``factor`` times a vector to ``out``."""
    for t in range(out.size):
        out[t] += factor * vector[t]


# ---------------------------------------------------------------------------- pieces of one block


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _fetch_row(data: Rows, start: int, block: int, row: int, rows: int) -> None:
    """Fetch row ``row`` of a block; counted on into the next block when it is past the last."""
    if row >= rows:
        row -= rows
        block += 1
    size = data.shape[2] * data.itemsize
    place = start + (block * data.shape[1] + row) * size
    for offset in range(0, size, LINE):
        _fetch(place + offset)


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _dot_block(row: Rows, x: Array) -> float:
    found = 0.0
    for t in range(row.size):
        found += row[t] * x[t]
    return found


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _add_rows_four(
    out: Array,
    table: Array,
    i: int,
    j: int,
    row_a: Rows,
    row_b: Rows,
    row_c: Rows,
    row_d: Rows,
) -> None:
    """Four rows of coefficients, four outputs: every number that is loaded is used four times."""
    a0, a1, a2, a3 = table[i, j], table[i, j + 1], table[i, j + 2], table[i, j + 3]
    b0, b1, b2, b3 = table[i + 1, j], table[i + 1, j + 1], table[i + 1, j + 2], table[i + 1, j + 3]
    c0, c1, c2, c3 = table[i + 2, j], table[i + 2, j + 1], table[i + 2, j + 2], table[i + 2, j + 3]
    d0, d1, d2, d3 = table[i + 3, j], table[i + 3, j + 1], table[i + 3, j + 2], table[i + 3, j + 3]
    out0, out1, out2, out3 = out[j], out[j + 1], out[j + 2], out[j + 3]
    for t in range(row_a.size):
        p, q, r, s = row_a[t], row_b[t], row_c[t], row_d[t]
        out0[t] += (a0 * p + b0 * q) + (c0 * r + d0 * s)
        out1[t] += (a1 * p + b1 * q) + (c1 * r + d1 * s)
        out2[t] += (a2 * p + b2 * q) + (c2 * r + d2 * s)
        out3[t] += (a3 * p + b3 * q) + (c3 * r + d3 * s)


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _dot_two_by_four(
    row_a: Rows,
    row_b: Rows,
    x: Array,
    j: int,
    out: Array,
    i: int,
    second: bool,
) -> None:
    """Inner products of two rows with four columns, added to ``out``."""
    x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for t in range(row_a.size):
        p, q = row_a[t], row_b[t]
        a0 += p * x0[t]
        a1 += p * x1[t]
        a2 += p * x2[t]
        a3 += p * x3[t]
        b0 += q * x0[t]
        b1 += q * x1[t]
        b2 += q * x2[t]
        b3 += q * x3[t]
    out[i, j] += a0
    out[i, j + 1] += a1
    out[i, j + 2] += a2
    out[i, j + 3] += a3
    if second:
        out[i + 1, j] += b0
        out[i + 1, j + 1] += b1
        out[i + 1, j + 2] += b2
        out[i + 1, j + 3] += b3


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _fetch_share(
    data: Rows, start: int, block: int, index: Index, first: int, part: int, parts: int
) -> None:
    """Fetch a share of the panel that begins at position ``first`` of the list of rows."""
    count = index.size
    for place in range(first + PANEL * part // parts, first + PANEL * (part + 1) // parts):
        if place < count:
            _fetch_row(data, start, block, index[place], data.shape[1])
        elif place - count < min(count, PANEL):
            _fetch_row(data, start, block + 1, index[place - count], data.shape[1])


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _combine_block(
    data: Rows, start: int, block: int, index: Index, table: Array, out: Array
) -> None:
    """Add to ``out[columns, samples]`` the rows ``index`` times ``table[rows, columns]``.

    Panel by panel, so that rows are in cache for every column; the next panel is fetched meanwhile.
    """
    count = index.size
    panel = data[block]
    for low in range(0, count, PANEL):
        high = min(low + PANEL, count)
        part, parts = 0, (high - low) // 4 * (out.shape[0] // 4)
        for j in range(0, out.shape[0], 4):
            for i in range(low, high, 4):
                _fetch_share(data, start, block, index, high, part, parts)
                part += 1
                _add_rows_four(
                    out,
                    table,
                    i,
                    j,
                    panel[index[i]],
                    panel[index[i + 1]],
                    panel[index[i + 2]],
                    panel[index[i + 3]],
                )


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _finalise_block(
    data: Rows,
    start: int,
    block: int,
    rows: int,
    first: int,
    every: Index,
    table: Array,
    factors: Array,
    inverse: Array,
    work: Array,
) -> None:
    """Finalise the raw rows ``first..rows`` of one block."""
    panel = data[block]
    work[:] = 0.0
    _combine_block(data, start, block, every, table, work)
    for m in range(rows - first):
        row, mine = panel[first + m], work[m]
        for t in range(row.size):
            mine[t] = row[t] - mine[t]
        for i in range(first, first + m):
            factor, older = factors[m, i], panel[i]
            for t in range(row.size):
                mine[t] -= factor * older[t]
        scale = inverse[m]
        for t in range(row.size):
            row[t] = mine[t] * scale


@njit(nogil=True, cache=True)
def _every(count: int, padded: int) -> Index:
    """0..count-1, padded with zeros to the height of a table of factors (none: empty)."""
    index = np.zeros(padded, np.int64)
    for i in range(min(count, padded)):
        index[i] = i
    return index


# --------------------------------------------------------------------------------- one vector


@njit(fastmath=LOOSE, nogil=True, cache=True)
def dots_one(
    data: Rows,
    rows: int,
    first: int,
    factors: Array,
    inverse: float,
    address: int,
    out: Array,
    gram: bool,
) -> float:
    """Inner products of all rows with one vector; finalises the last row if it is raw."""
    count, _, size = data.shape
    vector = carray(_pointer(address), (count, size))
    start = data.ctypes.data
    work = np.empty(size)
    square = 0.0
    for block in range(count):
        x, panel = vector[block], data[block]
        if gram:
            square += _dot_block(x, x)
        if first == rows:
            for i in range(rows):
                _fetch_row(data, start, block, i + AHEAD, rows)
                out[i] += _dot_block(panel[i], x)
            continue
        newest = panel[first]
        work[:] = newest
        for i in range(0, first - 1, 2):
            _fetch_row(data, start, block, i + AHEAD, rows)
            _fetch_row(data, start, block, i + AHEAD + 1, rows)
            f, g = factors[i], factors[i + 1]
            for low in range(0, size, CHUNK):
                high = low + CHUNK
                p, q = panel[i, low:high], panel[i + 1, low:high]
                y, z = x[low:high], work[low:high]
                a = b = 0.0
                for t in range(p.size):
                    a += p[t] * y[t]
                    b += q[t] * y[t]
                    z[t] -= f * p[t] + g * q[t]
                out[i] += a
                out[i + 1] += b
        if first % 2:
            last = panel[first - 1]
            out[first - 1] += _dot_block(last, x)
            f = factors[first - 1]
            for t in range(size):
                work[t] -= f * last[t]
        a = 0.0
        for t in range(size):
            newest[t] = work[t] * inverse
            a += newest[t] * x[t]
        out[first] += a
    return square


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _combine_row(
    data: Rows,
    start: int,
    block: int,
    index: Index,
    coefficients: Array,
    out: Array,
) -> None:
    panel, count = data[block], index.size
    for i in range(count):
        ahead = i + AHEAD
        if ahead < count:
            _fetch_row(data, start, block, index[ahead], data.shape[1])
        else:
            _fetch_row(data, start, block + 1, index[min(ahead - count, count - 1)], data.shape[1])
        factor, row = coefficients[i], panel[index[i]]
        for t in range(out.size):
            out[t] += factor * row[t]


@njit(fastmath=LOOSE, nogil=True, cache=True)
def combine_one(
    one: Rows,
    left: Index,
    left_factors: Array,
    two: Rows,
    right: Index,
    right_factors: Array,
    address: int,
    add: bool,
) -> None:
    """Write or add a combination of rows of two stores to one vector."""
    count, _, size = one.shape
    vector = carray(_pointer(address), (count, size))
    first, second = one.ctypes.data, two.ctypes.data
    for block in range(count):
        out = vector[block]
        if not add:
            out[:] = 0.0
        _combine_row(one, first, block, left, left_factors, out)
        _combine_row(two, second, block, right, right_factors, out)


@njit(fastmath=LOOSE, nogil=True, cache=True)
def residual(
    data: Rows,
    rows: int,
    first: int,
    table: Array,
    factors: Array,
    inverse: Array,
    source: int,
    coefficients: Array,
    target: int,
    out: Array,
) -> float:
    """Write target = source - combination of rows, and its inner products with the rows."""
    count, _, size = data.shape
    given, result = carray(_pointer(source), (count, size)), carray(_pointer(target), (count, size))
    start = data.ctypes.data
    every = _every(first, table.shape[0])
    work = np.empty((table.shape[1], size))
    v = np.empty(size)
    square = 0.0
    for block in range(count):
        panel = data[block]
        if first < rows:
            _finalise_block(data, start, block, rows, first, every, table, factors, inverse, work)
        v[:] = given[block]
        for i in range(rows):
            _fetch_row(data, start, block, i + AHEAD, rows)
            factor, row = coefficients[i], panel[i]
            for t in range(size):
                v[t] -= factor * row[t]
        for i in range(rows):
            out[i] += _dot_block(panel[i], v)
        square += _dot_block(v, v)
        result[block] = v
    return square


# ---------------------------------------------------------------------------- several vectors


@njit(fastmath=LOOSE, nogil=True, cache=True)
def _dots_block(data: Rows, start: int, block: int, index: Index, x: Array, found: Array) -> None:
    """Add to ``found[rows, columns]`` the inner products of rows and columns of one block."""
    rows = index.size
    panel = data[block]
    for low in range(0, rows, PANEL):
        high = min(low + PANEL, rows)
        part, parts = 0, (high - low + 1) // 2 * (x.shape[0] // 4)
        for j in range(0, x.shape[0], 4):
            for i in range(low, high, 2):
                _fetch_share(data, start, block, index, high, part, parts)
                part += 1
                second = i + 1 < rows
                partner = i + 1 if second else i
                _dot_two_by_four(panel[i], panel[partner], x, j, found, i, second)


@njit(fastmath=LOOSE, nogil=True, cache=True)
def dots_many(
    data: Rows,
    rows: int,
    first: int,
    table: Array,
    factors: Array,
    inverse: Array,
    addresses: Index,
    out: Array,
    square: Array,
    gram: bool,
) -> None:
    """Inner products of all rows with several vectors; finalises raw rows first."""
    count, _, size = data.shape
    columns = addresses.size
    start = data.ctypes.data
    every, order = _every(first, table.shape[0]), _every(rows, rows)
    work = np.empty((table.shape[1], size))
    x = np.zeros(((columns + 3) // 4 * 4, size))
    found = np.zeros((rows + 1, x.shape[0]))
    for block in range(count):
        if first < rows:
            _finalise_block(data, start, block, rows, first, every, table, factors, inverse, work)
        for j in range(columns):
            x[j] = carray(_pointer(addresses[j]), (count, size))[block]
        if gram:
            for i in range(columns):
                for j in range(i + 1):
                    square[i, j] += _dot_block(x[i], x[j])
        _dots_block(data, start, block, order, x, found)
    out[:] = found[:rows, :columns]
    for i in range(columns):
        for j in range(i):
            square[j, i] = square[i, j]


@njit(fastmath=LOOSE, nogil=True, cache=True)
def combine_many(
    one: Rows,
    left: Index,
    left_table: Array,
    two: Rows,
    right: Index,
    right_table: Array,
    addresses: Index,
    add: bool,
) -> None:
    """Write or add combinations of rows of two stores to several vectors."""
    count, _, size = one.shape
    columns = addresses.size
    first, second = one.ctypes.data, two.ctypes.data
    work = np.empty(((columns + 3) // 4 * 4, size))
    for block in range(count):
        work[:] = 0.0
        _combine_block(one, first, block, left, left_table, work)
        _combine_block(two, second, block, right, right_table, work)
        for j in range(columns):
            out = carray(_pointer(addresses[j]), (count, size))[block]
            if add:
                out += work[j]
            else:
                out[:] = work[j]
