"""Panels: many linear combinations, or inner products, of the same vectors as matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from tpcalc.engine import kernels_growth
from tpcalc.engine.instructions import Dot, Gram, Panel
from tpcalc.engine.vectors import (
    NONE,
    Array,
    Buffer,
    Factor,
    Key,
    Number,
    Places,
    Table,
    Vector,
    times,
)

__all__ = ["InnerProducts", "combined", "grams"]


def combined(
    step: Panel,
    vectors: Mapping[int, Vector],
    tables: Mapping[Key, Table],
    capacity: Mapping[Key, int],
    scalars: Array,
) -> list[Vector]:
    """The linear combinations of a panel, on stored rows where possible.

    Args:
        step: The panel.
        vectors: All vectors, by register.
        tables: Coordinates of what matrices were applied to.
        capacity: Rows of each store.
        scalars: The numbers of all replicates, by register.
    """
    count, replicates = len(step.out), scalars.shape[1]
    forms: dict[Key, Array] = {}
    inside: dict[Key, Array] = {}
    others: list[list[tuple[Buffer, Number]]] = [[] for _ in step.out]

    def on(key: Key) -> Array:
        if key not in forms:
            forms[key] = np.zeros((replicates, count, capacity[key]))
        return forms[key]

    for term in step.terms:
        factors = np.broadcast_to(term.numbers, (replicates, *term.numbers.shape))
        if term.scalars is not None:
            factors = factors * np.moveaxis(scalars[term.scalars], -1, 0)
        held: dict[Key, _Held] = {}
        for place, register in enumerate(term.vectors):
            vector, multiples = _root(vectors[register])
            if vector.rows:
                key, row = next(iter(vector.rows.items()))
                if key not in held:
                    held[key] = _Held([], scalars)
                held[key].entries.append((place, row, multiples))
                continue
            own = np.zeros((replicates, count))
            used: Sequence[int] = [place] if term.each else range(count)
            own[:, used] = factors[:, place, None] if term.each else factors[:, place]
            own *= times(multiples, scalars)[:, None]
            if vector.row is not None:
                key, row = vector.row
                on(key)[:, :, row] += own
            else:
                used = [place] if term.each else np.flatnonzero(term.numbers[place]).tolist()
                _add(vector, own, used, on, others)
        for key, found in held.items():
            if key not in inside:
                inside[key] = np.zeros((replicates, count, capacity[key]))
            found.scatter(factors, term.each, inside[key])
    for key, own in inside.items():  # one product for all that is inside a basis
        table, rows = tables[key].data, tables[key].count
        on(key)[:, :, :rows] += np.matmul(own[:, :, :rows], table[:, :rows, :rows])
    return [
        Vector(form={key: own[:, j] for key, own in forms.items()}, others=others[j])
        for j in range(count)
    ]


class _Held:
    """Vectors that are multiples of rows of the table of a basis."""

    def __init__(self, entries: list[tuple[int, int, list[Factor]]], scalars: Array) -> None:
        self.entries = entries  # place in a list, row, factors
        self.scalars = scalars

    @property
    def places(self) -> list[int]:
        """Where they are in a list."""
        return [place for place, _, _ in self.entries]

    @cached_property
    def rows(self) -> list[int]:
        """The rows."""
        return [row for _, row, _ in self.entries]

    def scale(self, values: Array) -> Array:
        """Values (replicates, vectors, anything) times the numbers."""
        others = [(i, factors) for i, (_, _, factors) in enumerate(self.entries) if factors]
        if not others:
            return values
        full = np.ones((len(self.entries), len(values)))
        for i, factors in others:
            full[i] = times(factors, self.scalars)
        return values * full.T[:, :, None]

    def scatter(self, factors: Array, each: bool, out: Array) -> None:
        """Add factors of these vectors to ``out[replicate, output, row]``."""
        if each:
            values = self.scale(factors[:, self.places, None])[:, :, 0]
            out[:, self.places, self.rows] += values
            return
        values = self.scale(factors[:, self.places]).transpose(0, 2, 1)
        if len(set(self.rows)) == len(self.rows):
            out[:, :, self.rows] += values
        else:
            for row, own in zip(self.rows, np.moveaxis(values, 2, 0), strict=True):
                out[:, :, row] += own


def _add(
    vector: Vector,
    factors: Array,
    used: Sequence[int],
    on: object,
    others: list[list[tuple[Buffer, Number]]],
) -> None:
    """Add multiples of a vector that is an array, or a combination that was not formed."""
    if vector.dense is not None:
        for j in used:
            others[j].append((vector.dense, factors[:, j].copy()))
        return
    assert vector.form is not None and callable(on)
    for key, coefficients in vector.form.items():
        part = factors[:, used, None] * coefficients[:, None]
        on(key)[:, used, : coefficients.shape[1]] += part
    for buffer, number in vector.others:
        for j in used:
            others[j].append((buffer, factors[:, j] * number))


def grams(
    step: Gram, vectors: Mapping[int, Vector], tables: Mapping[Key, Table], scalars: Array
) -> Array:
    """All inner products of two lists with coordinates in one basis, (pairs, replicates).

    Args:
        step: The lists.
        vectors: All vectors, by register.
        tables: Coordinates of what matrices were applied to.
        scalars: The numbers of all replicates, by register.
    """
    lefts, rights = ([vectors[one] for one in own] for own in (step.lefts, step.rights))
    for vector, _ in _sources(lefts[0]):
        for key in vector.rows:
            left, right = _inside(lefts, key), _inside(rights, key)
            if left is not None and right is not None:
                held = _Held(left, scalars), _Held(right, scalars)
                found = _products(*held, tables[key])
                return found.reshape(-1, found.shape[2])
    raise AssertionError(step)  # scheduled as inner products of single vectors


def _products(left: _Held, right: _Held, table: Table) -> Array:
    if len(left.rows) > len(right.rows):
        return _products(right, left, table).transpose(1, 0, 2)
    data = table.data[:, : table.count, : table.count]
    mine = left.scale(np.take(data, left.rows, axis=1))
    found = np.matmul(mine, data.transpose(0, 2, 1))  # with all rows: none of the many is moved
    return right.scale(found[:, :, right.rows].transpose(0, 2, 1)).transpose(2, 1, 0)


class InnerProducts:
    """Where one basis has the coordinates of a vector and of all those it is multiplied with.

    Args:
        step: The inner products.
        vectors: All vectors, by register.
    """

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
                    given = [(place, [(1.0, NONE), *own, *factors]) for _, place, own in held]
                    self._places = Places.of(given)

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


def _root(vector: Vector) -> tuple[Vector, list[Factor]]:
    """What a vector that was not formed is a multiple of, with the factors."""
    factors: list[Factor] = []
    while not vector.rows and vector.multiple is not None:
        vector, number = vector.multiple
        factors.append(number)
    return vector, factors


def _inside(own: Sequence[Vector], key: Key) -> list[tuple[int, int, list[Factor]]] | None:
    """Vectors, or what they are multiples of, as rows in a basis, if it has them all."""
    entries: list[tuple[int, int, list[Factor]]] = []
    for place, vector in enumerate(own):
        pair = _within(vector, key)
        if pair is None:
            return None
        entries.append((place, *pair))
    return entries
