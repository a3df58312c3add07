"""Compiled passes over rows of samples: inner products, linear combinations, finalisation.

Rows live in block layout, ``data[blocks, capacity, block]``; vectors are flat float64 arrays of
``blocks * block`` entries. Storage may be float32, arithmetic is float64. Every sum is formed block
by block and added in block order, so that results do not depend on anything but the data.

The passes are bound by memory: one row after another is read from memory, with the row that comes
four rows later fetched ahead, and whatever is done to a block a second time finds it in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine import kernels_blocks as blocks
from tpcalc.engine.kernels_compile import loose
from tpcalc.errors import EvaluationError

# Bytes of a row that are worked on before more is fetched: inner products lose by short stretches
# (every one ends with a sum over a register), two rows at once fetch twice as much.
DOT_CHUNK, SUM_CHUNK, PAIR_CHUNK = 2048, 1024, 512

__all__ = ["Pending", "Term", "axpy", "combine", "dot", "dots", "residual", "total"]

Array = NDArray[np.float64]
Rows = NDArray[Any]  # float64 or float32, block layout


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows that were stored raw, and what they are to become.

    Row ``first + m`` becomes ``(row - sum_i factors[m, i] row_i) * inverse[m]``, summed over the
    rows before it.

    Args:
        first: The first raw row; all later ones are raw too.
        factors: Shape (raw rows, rows).
        inverse: Shape (raw rows,).
    """

    first: int
    factors: Array
    inverse: Array


@dataclass(frozen=True, slots=True)
class Term:
    """Rows with their coefficients, shape (B, k): the rows of one store in a linear combination."""

    data: Rows
    coefficients: Array


def dots(
    data: Rows,
    rows: int,
    vectors: Sequence[Array],
    pending: Pending | None = None,
    gram: bool = False,
) -> tuple[Array, Array]:
    """Sums over the samples of rows times vectors, in one pass over the rows.

    Args:
        data: Block layout.
        rows: How many rows, from the first.
        vectors: B flat vectors; none, if only pending rows are to be finalised.
        pending: Raw rows that are finalised, in place, in the same pass.
        gram: Whether to form the inner products of the vectors among themselves, too.

    Returns:
        ``sum row_i x_j``, shape (rows, B), and ``sum x_i x_j``, shape (B, B) (zeros unless asked).
    """
    count = len(vectors)
    out, square = np.zeros((rows, count)), np.zeros((count, count))
    if count == 0 and pending is None:
        return out, square
    addresses = _addresses(data, vectors)
    raw = _NOTHING_PENDING if pending is None else pending
    first = rows if pending is None else pending.first
    if count == 1 and rows - first <= 1:
        data = _chunked(data, (DOT_CHUNK if first == rows else PAIR_CHUNK) // data.itemsize)
        factors = raw.factors[0] if len(raw.factors) else _NONE
        inverse = raw.inverse[0] if len(raw.inverse) else 1.0
        square[0, 0] = blocks.dots_one(
            data, rows, first, factors, inverse, addresses[0], out.reshape(-1), gram
        )
    else:
        blocks.dots_many(
            _chunked(data, SUM_CHUNK // data.itemsize),
            rows,
            first,
            _table(raw.factors[:, :first]),
            raw.factors,
            raw.inverse,
            addresses,
            out,
            square,
            gram,
        )
    return out, square


def residual(
    data: Rows,
    rows: int,
    vector: Array,
    coefficients: Array,
    out: Array,
    pending: Pending | None = None,
) -> tuple[Array, float]:
    """Write ``out = vector - sum_i coefficients_i row_i``; inner products of ``out`` with all rows.

    One pass over the rows. ``out`` may be ``vector``.

    Returns:
        ``sum row_i out``, shape (rows,), and ``sum out^2``.
    """
    raw = _NOTHING_PENDING if pending is None else pending
    first = rows if pending is None else pending.first
    source, target = _addresses(data, [vector, out])
    found = np.zeros(rows)
    square = blocks.residual(
        _chunked(data, SUM_CHUNK // data.itemsize), rows, first,
        _table(raw.factors[:, :first]), raw.factors, raw.inverse, source,
        np.ascontiguousarray(coefficients), target, found,
    )  # fmt: skip
    return found, float(square)


def combine(outs: Sequence[Array], terms: Sequence[Term], add: bool = False) -> None:
    """Write (or add) linear combinations of rows: out_j = sum over terms of coefficients[j] @ rows.

    Two stores are read in one pass, so that every output is written once; rows whose coefficients
    are all zero are not read.

    Args:
        outs: B flat vectors.
        terms: Stores and their coefficients.
        add: Whether to add to what is there.
    """
    active = [(term, np.flatnonzero(term.coefficients.any(axis=0))) for term in terms]
    active = [(term, index) for term, index in active if len(index)]
    active.sort(key=lambda pair: pair[0].data.dtype.itemsize)
    if not active and not add:
        for out in outs:
            out[:] = 0.0
    for start in range(0, len(active), 2):
        pair = active[start : start + 2]
        (one, left), (two, right) = pair[0], pair[1] if len(pair) == 2 else (pair[0][0], _NO_ROWS)
        addresses = _addresses(one.data, outs)
        _addresses(two.data, outs)
        samples = SUM_CHUNK // two.data.itemsize
        rows, others = _chunked(one.data, samples), _chunked(two.data, samples)
        if len(outs) == 1:
            blocks.combine_one(
                rows, left, one.coefficients[0, left],
                others, right, two.coefficients[0, right],
                addresses[0], add or start > 0,
            )  # fmt: skip
        else:
            blocks.combine_many(
                rows, *_padded(left, one.coefficients),
                others, *_padded(right, two.coefficients),
                addresses, add or start > 0,
            )  # fmt: skip


def axpy(out: Array, factor: float, vector: Array) -> None:
    """Add ``factor`` times a vector to ``out``."""
    _axpy(out, float(factor), vector)


def dot(left: Array, right: Array) -> float:
    """The sum of products of two vectors."""
    return float(_dot(left, right))


def total(vector: Array) -> float:
    """The sum of a vector."""
    return float(_total(vector))


@loose
def _total(vector: Array) -> float:
    found = 0.0
    for start in range(0, vector.size, 512):
        x = vector[start : start + 512]
        part = 0.0
        for t in range(x.size):
            part += x[t]
        found += part
    return found


@loose
def _dot(left: Array, right: Array) -> float:
    found = 0.0
    for start in range(0, left.size, 512):
        x, y = left[start : start + 512], right[start : start + 512]
        part = 0.0
        for t in range(x.size):
            part += x[t] * y[t]
        found += part
    return found


@loose
def _axpy(out: Array, factor: float, vector: Array) -> None:
    for t in range(out.size):
        out[t] += factor * vector[t]


_NONE = np.zeros(0)
_NO_ROWS = np.zeros(0, np.int64)
_NOTHING_PENDING = Pending(0, np.zeros((0, 0)), np.zeros(0))


def _addresses(data: Rows, vectors: Sequence[Array]) -> NDArray[np.int64]:
    """Where vectors start, after a check that a compiled pass can read them there."""
    length = data.shape[0] * data.shape[2]
    for vector in vectors:
        if vector.shape != (length,) or vector.dtype != np.float64 or not vector.flags.c_contiguous:
            raise EvaluationError(
                f"a vector of shape {vector.shape} and type {vector.dtype} does not fit rows of "
                f"{length} samples.",
                hint="Vectors are flat float64 arrays of the padded length of their space.",
            )
    return np.array([v.__array_interface__["data"][0] for v in vectors], dtype=np.int64)


def _chunked(data: Rows, samples: int) -> Rows:
    """Rows with every block cut into chunks of so many samples."""
    count, capacity, block = data.shape
    samples = min(block, samples)
    return data.reshape(count, capacity, block // samples, samples)


def _table(coefficients: Array) -> Array:
    """Coefficients (columns, rows) as a (rows, columns) table, both padded to fours."""
    columns, rows = coefficients.shape
    table = np.zeros((-(-rows // 4) * 4, -(-columns // 4) * 4))
    table[:rows, :columns] = coefficients.T
    return table


def _padded(index: NDArray[np.int64], coefficients: Array) -> tuple[NDArray[np.int64], Array]:
    """Row numbers padded to a multiple of four (by the first one, with coefficient 0)."""
    table = _table(coefficients[:, index])
    full = np.full(len(table), index[0] if len(index) else 0, dtype=np.int64)
    full[: len(index)] = index
    return full, table
