"""Panels: many linear combinations, or inner products, of the same vectors as matrix products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine import kernels_growth
from tpcalc.engine.crew import products
from tpcalc.engine.instructions import Dot, Gram, Panel
from tpcalc.engine.vectors import (
    Buffer,
    Factor,
    Key,
    Number,
    Places,
    Table,
    Vector,
    back,
    root,
    times,
)


class Combinations:
    """Where the vectors of a panel are: on stored rows where possible."""

    __slots__ = ("_held", "_rest", "_step")

    def __init__(self, step: Panel, vectors: Mapping[int, Vector]) -> None:
        self._step = step
        self._held: list[dict[Key, tuple[Index, Places]]] = []  # inside a basis, for each term
        self._rest: list[list[tuple[int, int, list[Factor]]]] = []
        for term in step.terms:
            held: dict[Key, list[tuple[int, int, list[Factor]]]] = defaultdict(list)
            rest = []
            for place, register in enumerate(term.vectors):
                vector, factors = root(vectors[register])
                if vector.rows:
                    key, row = next(iter(vector.rows.items()))
                    held[key].append((place, row, factors))
                else:
                    rest.append((place, register, factors))
            self._held.append({key: _places(found) for key, found in held.items()})
            self._rest.append(rest)

    def values(
        self,
        vectors: Mapping[int, Vector],
        tables: Mapping[Key, Table],
        capacity: Mapping[Key, int],
        scalars: Array,
    ) -> list[Vector]:
        """The linear combinations, on stored rows where possible."""
        count, replicates = len(self._step.out), scalars.shape[1]
        forms: dict[Key, Array] = {}
        inside: dict[Key, Array] = {}
        others: list[list[tuple[Buffer, Number]]] = [[] for _ in self._step.out]

        def on(key: Key) -> Array:
            if key not in forms:
                forms[key] = np.zeros((replicates, count, capacity[key]))
            return forms[key]

        for term, held, alone in zip(self._step.terms, self._held, self._rest, strict=True):
            factors = np.broadcast_to(term.numbers, (replicates, *term.numbers.shape))
            if term.scalars is not None:
                factors = factors * np.moveaxis(scalars[term.scalars], -1, 0)
            for place, register, multiples in alone:
                vector = back(vectors[register], len(multiples))
                own = np.zeros((replicates, count))
                used = slice(place, place + 1) if term.each else slice(count)
                own[:, used] = factors[:, place, None] if term.each else factors[:, place]
                own *= times(multiples, scalars)[:, None]
                if vector.row is not None:
                    key, row = vector.row
                    on(key)[:, :, row] += own
                else:
                    columns = [place] if term.each else np.flatnonzero(term.numbers[place]).tolist()
                    _add(vector, own, used, columns, on, others)
            for key, (places, rows) in held.items():
                if key not in inside:
                    inside[key] = np.zeros((replicates, count, capacity[key]))
                _scatter(factors[:, places], places, rows, term.each, scalars, inside[key])
        for key, own in inside.items():  # one product for all that is inside a basis
            table, known = tables[key].data, tables[key].count
            on(key)[:, :, :known] += products(own[:, :, :known], table[:, :known, :known])
        return [
            Vector(form={key: own[:, j] for key, own in forms.items()}, others=others[j])
            for j in range(count)
        ]


def _places(found: Sequence[tuple[int, int, list[Factor]]]) -> tuple[Index, Places]:
    """Places in a list, and rows with their factors."""
    return np.array([place for place, _, _ in found]), Places.of([own[1:] for own in found])


def _scatter(
    factors: Array, places: Index, rows: Places, each: bool, scalars: Array, out: Array
) -> None:
    """Add the factors of vectors to ``out[replicate, output, row]``."""
    own = rows.values(scalars).T
    if each:
        out[:, places, rows.rows] += factors * own
        return
    values = (factors * own[:, :, None]).transpose(0, 2, 1)
    if len(np.unique(rows.rows)) == len(rows.rows):
        out[:, :, rows.rows] += values
    else:
        for row, one in zip(rows.rows, np.moveaxis(values, 2, 0), strict=True):
            out[:, :, row] += one


def _add(
    vector: Vector,
    factors: Array,
    used: slice,
    columns: Sequence[int],
    on: Callable[[Key], Array],
    others: list[list[tuple[Buffer, Number]]],
) -> None:
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
            on(key)[:, used, : coefficients.shape[1]] += part
    for buffer, number in arrays:
        for j in columns:
            others[j].append((buffer, factors[:, j] * number))


class Grams:
    """Where one basis has the coordinates of two lists."""

    __slots__ = ("_key", "_left", "_right")

    def __init__(self, step: Gram, vectors: Mapping[int, Vector]) -> None:
        lefts, rights = ([vectors[one] for one in own] for own in (step.lefts, step.rights))
        for vector, _ in _sources(lefts[0]):
            for key in vector.rows:
                left, right = _inside(lefts, key), _inside(rights, key)
                if left is not None and right is not None:
                    self._key, self._left, self._right = key, Places.of(left), Places.of(right)
                    return
        raise AssertionError(step)  # scheduled as inner products of single vectors

    def values(self, tables: Mapping[Key, Table], scalars: Array) -> Array:
        """All inner products, (pairs, replicates)."""
        table = tables[self._key]
        data = table.data[:, : table.count, : table.count]
        one, two = self._left, self._right
        if len(one.rows) > len(two.rows):
            one, two = two, one
        mine = np.take(data, one.rows, axis=1) * one.values(scalars).T[:, :, None]
        found = products(mine, data.transpose(0, 2, 1))  # with all rows: none of many is moved
        found = np.take(found, two.rows, axis=2) * two.values(scalars).T[:, None]
        order = (1, 2, 0) if one is self._left else (2, 1, 0)
        return found.transpose(order).reshape(-1, len(found))


class InnerProducts:
    """Where one basis has the coordinates of a vector and of all those it is multiplied with."""

    __slots__ = ("_key", "_outs", "_places", "_row")

    def __init__(self, step: Dot, vectors: Mapping[int, Vector]) -> None:
        others = [vectors[register] for register in step.others]
        self._key: Key | None = None
        self._outs = np.array(step.out, np.int32)
        for one, factors in _sources(vectors[step.vector]):
            for key, row in one.rows.items():
                held = _inside(others, key)
                if held is not None and self._key is None:
                    self._key, self._row = key, row
                    self._places = Places.of([(place, [*own, *factors]) for place, own in held])

    def write(self, tables: Mapping[Key, Table], scalars: Array) -> bool:
        """Write the inner products as scalars, if there is such a basis."""
        if self._key is None:
            return False
        own = self._places
        kernels_growth.inner_rows(
            tables[self._key].data, self._row, own.rows, own.numbers, own.registers, scalars,
            self._outs,
        )  # fmt: skip
        return True


def _sources(vector: Vector) -> Iterator[tuple[Vector, list[Factor]]]:
    """A vector, and what it is a multiple of, with the factors."""
    factors: list[Factor] = []
    yield vector, factors
    while vector.source is not None:
        vector, number = vector.source
        factors = [*factors, number]
        yield vector, factors


def _within(vector: Vector, key: Key) -> tuple[int, list[Factor]] | None:
    """The row of a vector, or of what it is a multiple of, in a basis, with the factors."""
    factors: list[Factor] = []
    while key not in vector.rows:
        if vector.source is None:
            return None
        vector, number = vector.source
        factors.append(number)
    return vector.rows[key], factors


def _inside(own: Sequence[Vector], key: Key) -> list[tuple[int, list[Factor]]] | None:
    """Vectors, or what they are multiples of, as rows in a basis, if it has them all."""
    found = [_within(vector, key) for vector in own]
    return None if None in found else [one for one in found if one is not None]
