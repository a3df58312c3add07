"""Rows of samples in block layout, and linear combinations of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.engine import kernels
from tpcalc.engine.crew import share
from tpcalc.errors import EvaluationError, OutOfMemory

Vector = Array
LINE = 64  # bytes of a cache line, where arrays begin


class Memory:
    """One piece of memory that arrays are cut from.

    The system gives a large piece in large pages: that takes a fifth of the time that as many bytes
    take in arrays of their own, which is what a short run would wait for most.

    Example:
        >>> Memory(100).zeros((2, 3)).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, size: int) -> None:
        try:
            self._free = np.zeros(size, np.uint8)
        except MemoryError:  # the array that does not fit will say so
            self._free = np.zeros(0, np.uint8)
        self._free = self._free[-self._free.ctypes.data % LINE :]

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of zeros."""
        count = math.prod(shape) * np.dtype(dtype).itemsize
        if count > len(self._free):
            return np.zeros(shape, dtype)
        part, self._free = self._free[:count], self._free[-(-count // LINE) * LINE :]
        return part.view(dtype).reshape(shape)


NO_MEMORY = Memory(0)


@dataclass(frozen=True, slots=True)
class SampleSpace:
    """Where vectors live: a number of samples, and the ratio of the dimension to n.

    Example:
        >>> SampleSpace(1000).padded
        1024
    """

    size: int  # number of samples N (at finite width: of coordinates)
    ratio: float = 1.0  # dimension divided by n
    block: int = 512  # samples in a block, a power of two from 16 on
    # independent copies; a vector has the samples of one after those of another
    replicates: int = 1
    memory: Memory = NO_MEMORY  # where arrays over the space are cut from

    def __post_init__(self) -> None:
        _check_sizes(self.size, self.block)
        checks.real(self.ratio, "the ratio of a space", above=0)

    @property
    def padded(self) -> int:
        """Length of a vector of one replicate: the size, rounded up to whole blocks."""
        return -(-self.size // self.block) * self.block

    def zeros(self) -> Vector:
        """A new vector of zeros."""
        return self.memory.zeros((self.replicates * self.padded,))


class Store:
    """Growing lists of rows over one space, as ``data[replicates * blocks, capacity, block]``.

    Entries beyond ``size`` are and stay 0.

    Example:
        >>> store = Store(size=3, capacity=2)
        >>> vector = SampleSpace(3).zeros()
        >>> vector[:3] = [1.0, 2.0, 3.0]
        >>> store.append(vector)
        0
        >>> float(store.dots([vector])[0, 0, 0])
        14.0
    """

    def __init__(
        self,
        size: int,
        capacity: int,
        dtype: DTypeLike = np.float64,
        block: int = 512,
        replicates: int = 1,
        memory: Memory = NO_MEMORY,
    ) -> None:
        _check_sizes(size, block)
        self.size = size
        self.capacity = capacity
        self.block = block
        self.replicates = replicates
        self.counts = np.zeros(replicates, np.int64)
        shape = (replicates * -(-size // block), capacity, block)
        try:
            self.data: NDArray[Any] = memory.zeros(shape, dtype)
        except MemoryError:
            gib = float(np.prod(shape, dtype=float)) * np.dtype(dtype).itemsize / 2**30
            raise OutOfMemory(
                f"{replicates * capacity} rows of {size} samples need {gib:.1f} GiB.",
                hint="Take fewer samples, or single-precision storage.",
            ) from None

    @property
    def rows(self) -> int:
        """Number of rows in use (the largest, where replicates differ)."""
        return max(self.counts.tolist())

    def row_view(self, row: int, replicate: int | None = None) -> NDArray[Any]:
        """Row number ``row`` of one replicate, or of all, as (blocks, block) to be written."""
        if replicate is None:
            return self.data[:, row, :]
        blocks = len(self.data) // self.replicates
        return self.data[replicate * blocks : (replicate + 1) * blocks, row, :]

    def reserve(self, count: int | Index = 1) -> int:
        """Take the next rows, whatever they hold; returns the number of the first."""
        first = self.rows
        counts = self.counts + count
        if max(counts.tolist()) > self.capacity:
            raise full_store(self.capacity)
        self.counts[:] = counts
        return first

    def append(self, vector: Vector) -> int:
        """Copy a flat vector of padded length into the next row; returns its number."""
        row, lines = self.reserve(), vector.reshape(-1, self.block)

        def work(own: slice) -> None:
            self.data[own, row, :] = lines[own]

        share(len(lines), vector.size, work)
        return row

    def clear(self) -> None:
        """Forget all rows, keep the memory."""
        self.counts[:] = 0

    def dots(self, vectors: Sequence[Vector], used: Index | None = None) -> Array:
        """Sums over the samples of row i times vector j, shape (replicates, rows, B)."""
        return kernels.dots([(self.data, self.counts)], vectors, used=used)[0][0]

    def dots_with(self, other: Store, first: Index, used: Index) -> Array:
        """The same with rows ``first``, ... of another store, ``used`` of each replicate."""
        return kernels.dots_with_rows(self.data, self.counts, other.data, first, used)

    def raw_coefficients(self, coefficients: Vector) -> Vector:
        """Coefficients on the rows as they lie in memory: here the same ones."""
        return coefficients


def full_store(capacity: int) -> EvaluationError:
    """The error of a store that has no row left."""
    return EvaluationError(
        f"a store of {capacity} rows is full.",
        hint="The plan of the program asks for too few directions; please report this.",
    )


def materialise(out: Vector | Sequence[Vector], terms: Sequence[tuple[Store, Array]]) -> None:
    """Write linear combinations of rows: out_j = sum over terms and i of coefficients[j, i] row_i.

    Every two stores are one pass over ``out``. Rows whose coefficients are all 0 are not read.

    Example:
        >>> space, store = SampleSpace(3), Store(3, 2)
        >>> ones = space.zeros()
        >>> ones[:3] = 1.0
        >>> _ = store.append(ones)
        >>> out = space.zeros()
        >>> materialise(out, [(store, np.array([2.0]))])
        >>> out[:4].tolist()
        [2.0, 2.0, 2.0, 0.0]
    """
    _combine(out, terms, add=False)


def accumulate(
    out: Vector | Sequence[Vector],
    terms: Sequence[tuple[Store, Array]],
    used: Index | None = None,
) -> None:
    """Like ``materialise``, but adds to ``out`` (to the first ``used[r]`` of replicate r)."""
    _combine(out, terms, add=True, used=used)


def _combine(
    out: Vector | Sequence[Vector],
    terms: Sequence[tuple[Store, Array]],
    add: bool,
    used: Index | None = None,
) -> None:
    single = isinstance(out, np.ndarray)
    outs = [out] if isinstance(out, np.ndarray) else list(out)
    if not outs:
        return
    ready = []
    for source, given in terms:
        counts = source.counts
        table = given[..., None, :] if single else given
        if len(outs) != table.shape[-2]:
            raise EvaluationError(
                f"{table.shape[-2]} sets of coefficients for {len(outs)} vectors."
            )
        rows = max(counts.tolist())
        if table.shape[-1] > rows:
            if table[..., rows:].any():
                raise EvaluationError(
                    f"coefficients for {table.shape[-1]} rows, but there are {rows} of them."
                )
            table = table[..., :rows]
        if table.ndim == 2:
            table = np.broadcast_to(table, (len(counts), *table.shape))
        table = source.raw_coefficients(np.ascontiguousarray(table, dtype=np.float64))
        ready.append(kernels.Term(source.data, table))
    kernels.combine(outs, ready, add, used)


def _check_sizes(size: int, block: int) -> None:
    checks.whole(size, "the number of samples", least=1, each=0.0)
    if block < 16 or block & (block - 1):
        raise EvaluationError(f"blocks of {block} samples; they must be a power of two, 16 on.")
