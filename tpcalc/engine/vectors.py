"""Vector registers: an array, or a linear combination of stored rows that was not formed yet.

Where a vector is found (in which store, as a multiple of what) is a matter of the script. It is
looked up in the first run of a workspace; later ones put in their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.engine import kernels_growth
from tpcalc.engine.directions import Basis, SampleSpace, Store
from tpcalc.engine.instructions import Sum

Number = float | Array  # one, or one for each replicate
Factor = tuple[float, int]  # a number, and the register of a scalar (NONE: 1)
NONE = -1  # after the scalars of all registers there is a 1
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
        multiple: The vector that it is a multiple of, with the factor; looked up when it is used,
            because that vector may get coordinates in the meantime.
        source: The same; it stays when the vector is formed.
    """

    dense: Buffer | None = None
    form: dict[Key, Array] | None = None
    others: list[tuple[Buffer, Number]] = field(default_factory=list)
    rows: dict[Key, int] = field(default_factory=dict)
    row: tuple[Key, int] | None = None
    multiple: tuple[Vector, Factor] | None = None
    source: tuple[Vector, Factor] | None = None

    @property
    def has_spare(self) -> bool:
        """Whether sums can do without the array."""
        known = bool(self.rows) or self.row is not None
        return known or self.form is not None or self.multiple is not None


def root(vector: Vector) -> tuple[Vector, list[Factor]]:
    """What a vector that was not formed is a multiple of, with the factors."""
    factors: list[Factor] = []
    while not vector.rows and vector.multiple is not None:
        vector, number = vector.multiple
        factors.append(number)
    return vector, factors


def back(vector: Vector, count: int) -> Vector:
    """What a vector is a multiple of, so many multiples back."""
    for _ in range(count):
        assert vector.multiple is not None
        vector, _ = vector.multiple
    return vector


def times(factors: Sequence[Factor], scalars: Array) -> Array:
    """A product of factors, for each replicate."""
    found = np.ones(scalars.shape[1])
    for number, register in factors:
        found = found * (number * scalars[register])
    return found


@dataclass(frozen=True, slots=True)
class Places:
    """Rows, with a product of factors for each of them: tables (factor, row)."""

    rows: NDArray[np.int32]
    numbers: Array
    registers: NDArray[np.int32]

    @classmethod
    def of(cls, given: Sequence[tuple[int, Sequence[Factor]]]) -> Places:
        """Rows with their factors."""
        levels = list(zip_longest([(1.0, NONE)], *(own for _, own in given), fillvalue=(1.0, NONE)))
        return cls(
            np.array([row for row, _ in given], np.int32),
            np.array([[number for number, _ in level[1:]] for level in levels]),
            np.array([[register for _, register in level[1:]] for level in levels], np.int32),
        )

    def values(self, scalars: Array) -> Array:
        """The products, (rows, replicates)."""
        found: Array = self.numbers[0, :, None] * scalars[self.registers[0]]
        for numbers, registers in zip(self.numbers[1:], self.registers[1:], strict=True):
            found *= numbers[:, None] * scalars[registers]
        return found


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


class Combination:
    """Where the vectors of a linear combination are: on stored rows where possible.

    Coordinates in a basis come first: many vectors share its rows, which a product reads anyway.
    """

    __slots__ = ("_inside", "_rest", "_stored")

    def __init__(self, step: Sum, vectors: Mapping[int, Vector]) -> None:
        inside: dict[Key, list[tuple[int, list[Factor]]]] = defaultdict(list)
        stored: dict[Key, list[tuple[int, list[Factor]]]] = defaultdict(list)
        self._rest: list[tuple[int, int, list[Factor]]] = []  # a register, multiples back, factors
        for register, own, scalar in zip(step.vectors, step.numbers, step.scalars, strict=True):
            vector, multiples = root(vectors[register])
            factors = [(own, NONE if scalar is None else scalar), *multiples]
            if vector.rows:
                key, row = next(iter(vector.rows.items()))
                inside[key].append((row, factors))
            elif vector.row is not None:
                key, row = vector.row
                stored[key].append((row, factors))
            else:
                self._rest.append((register, len(multiples), factors))
        self._inside, self._stored = (
            [(key, Places.of(held)) for key, held in found.items()] for found in (inside, stored)
        )

    def values(
        self,
        vectors: Mapping[int, Vector],
        tables: Mapping[Key, Table],
        capacity: Mapping[Key, int],
        scalars: Array,
    ) -> tuple[dict[Key, Array], list[tuple[Buffer, Number]]]:
        """Coefficients on stored rows, and arrays with theirs."""
        form: dict[Key, Array] = {}
        others: list[tuple[Buffer, Number]] = []

        def on(key: Key) -> Array:
            if key not in form:
                form[key] = np.zeros((scalars.shape[1], capacity[key]))
            return form[key]

        for register, count, factors in self._rest:
            vector, factor = back(vectors[register], count), times(factors, scalars)
            if vector.dense is not None:
                others.append((vector.dense, factor))
                continue
            assert vector.form is not None
            for key, coefficients in vector.form.items():
                on(key)[:, : coefficients.shape[1]] += factor[:, None] * coefficients
            others.extend((buffer, factor * number) for buffer, number in vector.others)
        for key, own in self._stored:
            kernels_growth.add_factors(own.rows, own.numbers, own.registers, scalars, on(key))
        for key, own in self._inside:
            kernels_growth.sum_rows(
                tables[key].data, own.rows, own.numbers, own.registers, scalars, on(key)
            )
        return form, others


Rows = Store | Basis
