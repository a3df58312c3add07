"""Vector registers: an array, or a linear combination of stored rows that was not formed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine import kernels_growth
from tpcalc.engine.directions import Basis, SampleSpace, Store

__all__ = ["Buffer", "Combination", "Key", "Pool", "Table", "Vector"]

Array = NDArray[np.float64]
Number = float | Array  # one, or one for each replicate
Key = tuple[str, str, bool]  # ("e" | "q", matrix, transpose), ("stack" | "starts", space, False)


class Pool:
    """Reusable arrays of one space; touched once, so that later replicates have no page faults."""

    def __init__(self, space: SampleSpace) -> None:
        self.space = space
        self._free: list[Array] = []

    def take(self) -> Buffer:
        """An array with arbitrary contents up to the size and zeros beyond."""
        return Buffer(self._free.pop() if self._free else self.space.zeros(), self)

    def give(self, array: Array) -> None:
        """Take an array back."""
        self._free.append(array)


class Buffer:
    """An array on loan from a pool; it goes back when nobody refers to the buffer any more."""

    __slots__ = ("__weakref__", "array", "pool")

    def __init__(self, array: Array, pool: Pool) -> None:
        self.array = array
        self.pool = pool

    def __del__(self) -> None:
        self.pool.give(self.array)


@dataclass(slots=True)
class Vector:
    """A vector register, of all replicates; coefficients have one of them in each row.

    Args:
        dense: Its coordinates, if they were formed.
        form: Coefficients on stored rows; None if it was computed coordinate by coordinate.
        others: Arrays with their coefficients, besides the form.
        rows: For each matrix side it was applied to, its row in the side's table of coordinates.
        row: Its row in the stack of its space.
        multiple: The vector that it is a multiple of, and the factor; looked up when it is used,
            because that vector may get coordinates in the meantime.
        source: The same; it stays when the vector is formed.
    """

    dense: Buffer | None = None
    form: dict[Key, Array] | None = None
    others: list[tuple[Buffer, Number]] = field(default_factory=list)
    rows: dict[Key, int] = field(default_factory=dict)
    row: tuple[Key, int] | None = None
    multiple: tuple[Vector, Number] | None = None
    source: tuple[Vector, Number] | None = None

    @property
    def has_spare(self) -> bool:
        """Whether sums can do without the array."""
        known = bool(self.rows) or self.row is not None
        return known or self.form is not None or self.multiple is not None


class Table:
    """Coordinates of the arguments of one matrix side in its orthonormal basis, row by row."""

    def __init__(self, replicates: int, capacity: int) -> None:
        self.data = np.zeros((replicates, capacity, capacity))
        self.count = 0

    def append(self, coordinates: Array) -> int:
        """Add a row (the rest of it stays 0); returns its number."""
        row, width = self.count, coordinates.shape[1]
        self.data[:, row, :width] = coordinates
        self.data[:, row, width:] = 0.0
        self.count += 1
        return row

    def inner(self, row: int, others: list[int]) -> Array:
        """Inner products of a row with several, shape (others, replicates)."""
        out = np.empty((len(others), len(self.data)))
        kernels_growth.inner_rows(self.data, row, np.array(others), out)
        return out


class Combination:
    """A linear combination of vectors under construction, kept on stored rows where possible.

    Coordinates in a basis come first: many vectors share its rows, which a product reads anyway.
    """

    def __init__(
        self, tables: Mapping[Key, Table], capacity: Mapping[Key, int], replicates: int
    ) -> None:
        self._tables = tables
        self._capacity = capacity
        self._replicates = replicates
        self._form: dict[Key, Array] = {}
        self._others: list[tuple[Buffer, Number]] = []
        self._rows: dict[Key, tuple[list[int], list[Number]]] = {}

    def add(self, vector: Vector, factor: Number) -> None:
        """Add ``factor`` times a vector."""
        while not vector.rows and vector.multiple is not None:
            vector, number = vector.multiple
            factor *= number
        if vector.rows:
            key = next(iter(vector.rows))
            found = self._rows.get(key)
            if found is None:
                found = self._rows[key] = ([], [])
            found[0].append(vector.rows[key])
            found[1].append(factor)
        elif vector.row is not None:
            key, row = vector.row
            self._on(key)[:, row] += factor
        elif vector.dense is not None:
            self._others.append((vector.dense, factor))
        else:
            assert vector.form is not None
            for key, coefficients in vector.form.items():
                part = factor if isinstance(factor, float) else factor[:, None]
                self._on(key)[:, : coefficients.shape[1]] += part * coefficients
            self._others.extend((buffer, factor * number) for buffer, number in vector.others)

    def _on(self, key: Key) -> Array:
        found = self._form.get(key)
        if found is None:
            found = self._form[key] = np.zeros((self._replicates, self._capacity[key]))
        return found

    def finish(self) -> tuple[dict[Key, Array], list[tuple[Buffer, Number]]]:
        """Coefficients on stored rows, and arrays with theirs."""
        for key, (indices, factors) in self._rows.items():
            own = np.array(factors).reshape(len(indices), -1)
            if own.shape[1] != self._replicates:  # numbers that all replicates have
                own = np.repeat(own, self._replicates, axis=1)
            kernels_growth.sum_rows(self._tables[key].data, np.array(indices), own, self._on(key))
        return self._form, self._others


Rows = Store | Basis
