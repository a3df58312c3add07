"""Vector registers: an array, or a linear combination of stored rows that was not formed yet.

Where a vector is found (in which store, as a multiple of what) is a matter of the script. It is
looked up in the first run of a workspace; later ones put in their numbers. Numbers are arrays, or
tensors where ``place`` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.engine import kernels_growth
from tpcalc.engine.crew import products
from tpcalc.engine.directions import SampleSpace
from tpcalc.engine.instructions import Sum

Numbers = Any  # an array of float64, or a tensor; of factors one for each replicate
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
        dense: Its coordinates, if they were formed: a buffer, or a tensor (blocks, block).
        form: Coefficients on stored rows; None if it was computed coordinate by coordinate.
        others: Coordinates of other vectors with their coefficients, besides the form.
        rows: For each matrix side it was applied to, its row in the side's table of coordinates.
        row: Its row in the stack of its space.
        multiple: The vector that it is a multiple of, with the factor; looked up when it is used,
            because that vector may get coordinates in the meantime.
        source: The same; it stays when the vector is formed.
    """

    dense: Any = None
    form: dict[Key, Numbers] | None = None
    others: list[tuple[Any, Numbers]] = field(default_factory=list)
    rows: dict[Key, int] = field(default_factory=dict)
    row: tuple[Key, int] | None = None
    multiple: tuple[Vector, Factor] | None = None
    source: tuple[Vector, Factor] | None = None

    @property
    def has_spare(self) -> bool:
        """Whether sums can do without the coordinates."""
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


def times(factors: Sequence[Factor], scalars: Numbers) -> Numbers:
    """A product of factors, for each replicate."""
    found = scalars[NONE]
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

    def values(self, scalars: Numbers, place: Host) -> Numbers:
        """The products, (rows, replicates)."""
        numbers, registers = place.numbers(self.numbers)[:, :, None], place.index(self.registers)
        found = numbers[0] * scalars[registers[0]]
        for level in range(1, len(numbers)):
            found *= numbers[level] * scalars[registers[level]]
        return found


class Host:
    """Coefficients and scalars as arrays; ``device.rows.Place`` has them as tensors."""

    def zeros(self, *shape: int, double: bool = False) -> Numbers:
        """Zeros, of samples or of coefficients."""
        return np.zeros(shape)

    def numbers(self, values: Any) -> Numbers:
        """Numbers as coefficients."""
        return np.asarray(values, np.float64)

    def index(self, rows: Any) -> Any:
        """Numbers of rows, to select by."""
        return rows

    def host(self, numbers: Numbers) -> Array:
        """Numbers as an array."""
        found: Array = numbers
        return found

    def take(self, numbers: Numbers, rows: Any, axis: int) -> Numbers:
        """A copy of some rows."""
        return np.take(numbers, rows, axis=axis)

    def products(self, left: Numbers, right: Numbers) -> Numbers:
        """Matrix products, one for each replicate."""
        return products(left, right)

    def add_factors(self, own: Places, scalars: Numbers, out: Numbers) -> None:
        """Add to ``out[r, row]`` the factors of some rows."""
        kernels_growth.add_factors(own.rows, own.numbers, own.registers, scalars, out)

    def sum_rows(self, table: Table, own: Places, scalars: Numbers, out: Numbers) -> None:
        """Add to ``out[r]`` some rows of a table times their factors."""
        kernels_growth.sum_rows(table.data, own.rows, own.numbers, own.registers, scalars, out)

    def inner_rows(
        self, table: Table, row: int, own: Places, scalars: Numbers, outs: NDArray[np.int32]
    ) -> None:
        """Write inner products of a row with some rows times their factors as scalars ``outs``."""
        kernels_growth.inner_rows(
            table.data, row, own.rows, own.numbers, own.registers, scalars, outs
        )


class Table:
    """Coordinates of the arguments of one matrix side in its orthonormal basis, row by row."""

    def __init__(self, replicates: int, capacity: int, place: Host) -> None:
        self.data = place.zeros(replicates, capacity, capacity, double=True)
        self.count = 0

    def append(self, coordinates: Numbers) -> int:
        """Add rows (replicates, m, directions), 0 beyond; returns the number of the first."""
        first, (_, count, width) = self.count, coordinates.shape
        self.count += count
        rows = self.data[:, first : self.count]
        rows[:, :, :width] = coordinates
        rows[:, :, width:] = 0.0
        return first


class Forms:
    """Linear combinations under construction: of stored rows, and of arrays beside them."""

    def __init__(self, count: int, width: Callable[[Key], int], scalars: Numbers, place: Host):
        self.count, self.replicates = count, scalars.shape[1]
        self._width, self._place = width, place
        self.forms: dict[Key, Numbers] = {}
        self.others: list[list[tuple[Any, Numbers]]] = [[] for _ in range(count)]

    def on(self, key: Key) -> Numbers:
        """Coefficients on the rows of a store, (replicates, combination, row)."""
        if key not in self.forms:
            shape = self.replicates, self.count, self._width(key)
            self.forms[key] = self._place.zeros(*shape, double=True)
        return self.forms[key]

    def add(self, vector: Vector, factors: Numbers, used: slice, columns: Sequence[int]) -> None:
        """Add multiples of a vector that is an array, or a combination that was not formed.

        ``used``: where there are any factors; ``columns``: which of them the script names.
        """
        arrays = vector.others
        if vector.dense is not None:
            arrays = [(vector.dense, 1.0)]
        else:
            assert vector.form is not None
            for key, coefficients in vector.form.items():
                part = factors[:, used, None] * coefficients[:, None]
                self.on(key)[:, used, : coefficients.shape[1]] += part
        for array, number in arrays:
            for j in columns:
                self.others[j].append((array, factors[:, j] * number))

    def vectors(self) -> list[Vector]:
        """The combinations."""
        return [
            Vector(form={key: own[:, j] for key, own in self.forms.items()}, others=others)
            for j, others in enumerate(self.others)
        ]


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
        width: Callable[[Key], int],
        scalars: Numbers,
        place: Host,
    ) -> list[Vector]:
        """The linear combination."""
        found = Forms(1, width, scalars, place)
        for register, count, factors in self._rest:
            numbers = times(factors, scalars)[:, None]
            found.add(back(vectors[register], count), numbers, slice(1), (0,))
        for key, own in self._stored:
            place.add_factors(own, scalars, found.on(key)[:, 0])
        for key, own in self._inside:
            place.sum_rows(tables[key], own, scalars, found.on(key)[:, 0])
        return found.vectors()
