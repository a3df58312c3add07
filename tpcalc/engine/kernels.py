"""Compiled passes over rows of samples: inner products, linear combinations, residuals.

Rows live in block layout, ``data[blocks, capacity, block]``; vectors are flat float64 arrays of
``blocks * block`` entries. Storage may be float32, arithmetic is float64. Every sum is formed block
by block and added in block order, so that results do not depend on anything but the data. The
blocks of many replicates lie one after another, in rows and in vectors, and one call serves all.

The passes are bound by memory: one row after another is read from memory, and whatever is done to a
block a second time finds it in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine import kernels_blocks as blocks
from tpcalc.engine.crew import share, stretches
from tpcalc.engine.kernels_compile import loose
from tpcalc.errors import EvaluationError

Rows = NDArray[Any]  # float64 or float32, block layout


@dataclass(frozen=True, slots=True)
class Term:
    """Rows with their coefficients, shape (replicates, B, k), in a linear combination."""

    data: Rows
    coefficients: Array


def dots(
    stores: Sequence[tuple[Rows, Index]],
    vectors: Sequence[Array],
    gram: bool = False,
    used: Index | None = None,
) -> tuple[list[Array], Array]:
    """Sums over the samples of rows times vectors, in one pass over the rows."""
    data, rows = stores[0]
    if used is None:
        used = _all(len(rows), len(vectors))
    return _dots(stores, addresses(data, vectors)[None], 1, used, gram)


def dots_with_rows(data: Rows, rows: Index, others: Rows, first: Index, used: Index) -> Array:
    """Sums over the samples of rows times rows of another store."""
    if others.dtype != np.float64:
        low = int(first.min())
        others = others[:, low : int((first + used).max())].astype(np.float64)
        first = first - low
    capacity, block = others.shape[1:]
    places = others.ctypes.data + 8 * block * (first[:, None] + np.arange(int(used.max())))
    return _dots([(data, rows)], places, capacity, used, False)[0][0]


def _dots(
    stores: Sequence[tuple[Rows, Index]], places: Index, rows_of: int, used: Index, gram: bool
) -> tuple[list[Array], Array]:
    """``places``: of the vectors of each replicate (or of all), as if it were the first."""
    columns, size = places.shape[1], stores[0][0].size // stores[0][0].shape[1]
    parts, count = _parts(len(stores[0][0]), len(used))
    shape = len(used) * parts, columns
    outs = [np.zeros((shape[0], max(rows.tolist()), columns)) for _, rows in stores]
    squares = [np.zeros((*shape, columns)) for _ in stores]

    def work(part: slice) -> None:
        own = slice(part.start * count, part.stop * count)
        for (data, rows), out, square in zip(stores, outs, squares, strict=True):
            blocks.dots(
                data[own], part.start, parts, rows, places, rows_of, used, out[part],
                square[part], gram and out is outs[0],
            )  # fmt: skip

    if columns:
        share(shape[0], size * columns * (1 + sum(out.shape[1] for out in outs)), work)
    return [_added(out, parts) for out in outs], _added(squares[0], parts)


@lru_cache(maxsize=256)
def _parts(count: int, replicates: int) -> tuple[int, int]:
    """Parts of each replicate of ``count`` blocks that threads may share, and the blocks of one."""
    parts = stretches(count // replicates)
    return parts, count // replicates // parts


@lru_cache(maxsize=256)
def _all(replicates: int, columns: int) -> Index:
    """That each replicate has all vectors."""
    return np.full(replicates, columns)


def _added(array: Array, parts: int) -> Array:
    """Sums of parts as those of replicates, in the order of the parts."""
    if parts == 1:
        return array
    held = array.reshape(len(array) // parts, parts, *array.shape[1:])
    total = held[:, 0].copy()
    for part in range(1, parts):
        total += held[:, part]
    return total


def residual(
    data: Rows, rows: int, vector: Array, coefficients: Array, out: Array
) -> tuple[Array, float]:
    """Write ``out = vector - sum_i coefficients_i row_i``; inner products of ``out`` with all rows.

    One pass over the rows of one replicate. ``out`` may be ``vector``.

    Returns:
        ``sum row_i out``, shape (rows,), and ``sum out^2``.
    """
    addresses(data, [vector, out])
    layout = (len(data), data.shape[2])
    found = np.zeros(rows)
    square = blocks.residual(
        data, rows, vector.reshape(layout), coefficients, out.reshape(layout), found
    )
    return found, float(square)


def combine(
    outs: Sequence[Array], terms: Sequence[Term], add: bool = False, used: Index | None = None
) -> None:
    """Write (or add) linear combinations of rows: out_j = sum over terms of coefficients[j] @ rows.

    Two stores are read in one pass, so that every output is written once; rows whose coefficients
    are all zero are not read.
    """
    # Stores without coefficients stay: which pass adds what must not depend on other replicates.
    active = sorted(terms, key=lambda term: term.data.dtype.itemsize)
    if not active and not add:
        for out in outs:
            out[:] = 0.0
    for start in range(0, len(active), 2):
        one = active[start]
        two = (
            active[start + 1]
            if start + 1 < len(active)
            else Term(one.data, one.coefficients[:, :, :0])
        )
        _combine(outs, one, two, add or start > 0, used)


def _combine(outs: Sequence[Array], one: Term, two: Term, add: bool, used: Index | None) -> None:
    left, right = one.coefficients, two.coefficients
    parts, count = _parts(len(one.data), len(left))
    places = addresses(one.data, outs)
    if used is None:
        used = _all(len(left), len(outs))

    def work(part: slice) -> None:
        own = slice(part.start * count, part.stop * count)
        blocks.combine(
            one.data[own], left, two.data[own], right, part.start, parts, count, places, used, add
        )  # fmt: skip

    rows = left.shape[2] + right.shape[2] + 1
    share(len(left) * parts, len(outs) * outs[0].size * rows, work)


def axpy(out: Array, factor: Array, vector: Array) -> None:
    """Add ``factor[r]`` times a vector to ``out``, for each replicate r."""
    _axpy(out.reshape(len(factor), -1), factor, vector.reshape(len(factor), -1))


def dot(left: Array, right: Array, replicates: int = 1) -> Array:
    """The sum of products of two vectors, for each replicate; the second may be one for all."""
    lefts, out = left.reshape(replicates, -1), np.empty(replicates)
    _dot(lefts, right.reshape(-1, lefts.shape[1]), out)
    return out


def total(vector: Array, replicates: int = 1) -> Array:
    """The sum of a vector, for each replicate."""
    out = np.empty(replicates)
    _total(vector.reshape(replicates, -1), out)
    return out


@loose
def _total(vectors: Array, out: Array) -> None:
    for r in range(out.size):
        vector, found = vectors[r], 0.0
        for start in range(0, vector.size, 512):
            x = vector[start : start + 512]
            part = 0.0
            for t in range(x.size):
                part += x[t]
            found += part
        out[r] = found


@loose
def _dot(lefts: Array, rights: Array, out: Array) -> None:
    for r in range(out.size):
        left, right, found = lefts[r], rights[r % len(rights)], 0.0
        for start in range(0, left.size, 512):
            x, y = left[start : start + 512], right[start : start + 512]
            part = 0.0
            for t in range(x.size):
                part += x[t] * y[t]
            found += part
        out[r] = found


@loose
def _axpy(outs: Array, factors: Array, vectors: Array) -> None:
    for r in range(factors.size):
        out, vector = outs[r], vectors[r]
        for t in range(out.size):
            out[t] += factors[r] * vector[t]


def addresses(data: Rows, vectors: Sequence[Array]) -> Index:
    """Where vectors start, after a check that a compiled pass can read them there."""
    length = data.shape[0] * data.shape[2]
    for vector in vectors:
        if vector.shape != (length,) or vector.dtype != np.float64 or not vector.flags.c_contiguous:
            raise EvaluationError(
                f"a vector of shape {vector.shape} and type {vector.dtype} does not fit rows of "
                f"{length} samples.",
                hint="Vectors are flat float64 arrays of the padded length of their space.",
            )
    places = [vector.__array_interface__["data"][0] for vector in vectors]  # quicker than ctypes
    return np.array(places, dtype=np.int64)
