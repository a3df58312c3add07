"""The numba side of ``directions_basis``: small tables of every replicate, one after another.

A replicate sees its own numbers only, in an order that does not depend on how many others there
are, so that its bits do not either.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine.kernels_compile import loose, pointer

Rows = NDArray[Any]

NEAR = 0.01  # residual^2 / |x|^2 below which the residual is formed and projected again
DONE, FULL = -1, -2  # what ``grow`` says instead of the column that it left


@loose
def _inner(left: Array, right: Array, count: int) -> float:
    found = 0.0
    for i in range(count):
        found += left[i] * right[i]
    return found


@loose
def grow(
    gram: Array,
    coords: Array,
    rows: Index,
    triangle: Array,
    made: Array,
    growth: Array,
    least: Array,
    limits: tuple[float, float, float],
    new: Index,
    columns: Index,
    scale: Array,
    stopped: Index,
) -> None:
    """Add the directions of the columns from ``stopped`` on, by Pythagoras, for each replicate.

    ``limits``: tolerance, rounding of one inner product, deviation from orthogonality allowed.
    ``stopped`` becomes the column whose residual has to be formed first, or that all are done.
    """
    tolerance, rounding, deviation = limits
    capacity = triangle.shape[1]
    column = np.empty(capacity + 1)
    for r in range(rows.size):
        if stopped[r] == FULL:
            continue
        j, stop = stopped[r], DONE
        while j >= 0 and j < coords.shape[1]:
            square, count = gram[r, j, j], rows[r]
            mine = coords[r, j]
            left = square - _inner(mine, mine, count)
            doubt = 16 * rounding * math.sqrt(count + 1.0) * growth[r] + 1e-14
            if square == 0.0 or left / square + doubt < tolerance**2:
                j += 1
                continue
            left /= square
            if not left > NEAR:
                stop = j
                break
            norm, root = math.sqrt(square), math.sqrt(left)
            column[: count + 1] = 0.0
            for i in range(count):
                _add(column, -mine[i] / (norm * root), triangle[r, i], i + 1)
            column[count] = 1.0 / root
            size = _inner(column, column, count + 1)
            if not 4 * rounding * math.sqrt(count + 1.0) * size <= deviation:
                stop = j
                break
            if count == capacity:
                stop = FULL
                break
            growth[r] = max(growth[r], size)
            least[r] = min(least[r], root)
            length = root * norm
            triangle[r, count, :count] = column[:count]
            made[r, count, :count] = mine[:count] / norm
            triangle[r, count, count], made[r, count, count] = column[count], root
            columns[r, new[r]], scale[r, new[r]] = j, 1.0 / norm
            mine[count] = length
            for i in range(j + 1, coords.shape[1]):
                on = gram[r, i, j] - _inner(coords[r, i], mine, count)
                coords[r, i, count] = on / length
            rows[r] += 1
            new[r] += 1
            j += 1
        stopped[r] = stop


@loose
def _add(out: Array, factor: float, row: Array, count: int) -> None:
    for i in range(count):
        out[i] += factor * row[i]


@loose
def on_rows(coefficients: Array, rows: Index, triangle: Array) -> None:
    """Turn coefficients (replicate, column, direction) into those on the rows in memory."""
    columns, width = coefficients.shape[1:]
    for r in range(rows.size):
        for m in range(min(rows[r], width)):
            mine = triangle[r, m]
            for j in range(columns):
                factor = coefficients[r, j, m]
                coefficients[r, j, m] = 0.0
                if factor != 0.0:
                    _add(coefficients[r, j], factor, mine, m + 1)


@loose
def on_directions(sums: Array, rows: Index, triangle: Array) -> None:
    """Turn sums (replicate, column, row in memory) into those over directions."""
    columns, width = sums.shape[1:]
    for r in range(rows.size):
        for m in range(min(rows[r], width) - 1, -1, -1):
            mine = triangle[r, m]
            for j in range(columns):
                sums[r, j, m] = _inner(mine, sums[r, j], m + 1)


@loose
def reveal(
    known: Array,
    transpose: bool,
    overlaps: Array,
    before: Index,
    new: Index,
    others: Index,
    made: Array,
    target: Array,
    size: int,
) -> None:
    """What the other side knows of the images of new directions, and what of them is to be added.

    ``overlaps[r, p, m]`` is the sum of the other side's image p times new row m as it lies in
    memory; ``known[r, i, p]`` is of direction i of this side and p of the other one, or the other
    way round with ``transpose``; ``target[r, m, p]`` holds the inner products of fresh draws with
    the other side's directions, and becomes the coefficients of the correction.
    """
    for r in range(before.size):
        for m in range(new[r]):
            row = before[r] + m
            for p in range(others[r]):
                found = overlaps[r, p, m]
                for i in range(row):
                    found -= made[r, row, i] * (known[r, p, i] if transpose else known[r, i, p])
                found /= made[r, row, row]
                if transpose:
                    known[r, p, row] = found
                else:
                    known[r, row, p] = found
                target[r, m, p] = (found - target[r, m, p]) / size


@loose
def _factor(numbers: Array, registers: Index, scalars: Array, m: int, r: int) -> float:
    """Product m of numbers times scalars, of replicate r."""
    found = 1.0
    for level in range(numbers.shape[0]):
        found *= numbers[level, m] * scalars[registers[level, m], r]
    return found


@loose
def add_factors(
    places: Index, numbers: Array, registers: Index, scalars: Array, out: Array
) -> None:
    """Add to ``out[r, places[m]]`` the product m of numbers times scalars."""
    for r in range(out.shape[0]):
        for m in range(places.size):
            out[r, places[m]] += _factor(numbers, registers, scalars, m, r)


@loose
def sum_rows(
    table: Array, places: Index, numbers: Array, registers: Index, scalars: Array, out: Array
) -> None:
    """Add to ``out[r]`` the rows ``places`` of the table of each replicate, times their factors."""
    for r in range(table.shape[0]):
        for m in range(places.size):
            factor = _factor(numbers, registers, scalars, m, r)
            _add(out[r], factor, table[r, places[m]], table.shape[2])


@loose
def inner_rows(
    table: Array, row: int, places: Index, numbers: Array, registers: Index, scalars: Array,
    outs: Index,
) -> None:  # fmt: skip
    """Write inner products of one row with several, times their factors, as scalars ``outs``."""
    for r in range(table.shape[0]):
        for m in range(places.size):
            found = _inner(table[r, places[m]], table[r, row], table.shape[2])
            scalars[outs[m], r] = found * _factor(numbers, registers, scalars, m, r)


@loose
def append(
    data: Rows,
    rows: Index,
    start: Index,
    new: Index,
    columns: Index,
    scale: Array,
    addresses: Index,
) -> None:
    """Store multiples of vectors as new directions ``start`` .. ``new`` of each replicate."""
    count, block = data.shape[0] // rows.size, data.shape[2]
    for r in range(rows.size):
        for m in range(start[r], new[r]):
            place = addresses[columns[r, m]] + 8 * r * count * block
            vector, row = carray(pointer(place), (count, block)), rows[r] - new[r] + m
            for k in range(count):
                x, out = vector[k], data[r * count + k, row]
                for t in range(block):
                    out[t] = scale[r, m] * x[t]
