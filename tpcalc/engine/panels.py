"""Panels: many linear combinations, or inner products, of the same vectors as matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from tpcalc.engine.instructions import Gram, Panel
from tpcalc.engine.vectors import Array, Buffer, Key, Number, Table, Vector

__all__ = ["combined", "grams", "inner_products"]

ONE = 1.0  # the factor of what is no multiple


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
            vector, number = _root(vectors[register])
            if vector.rows:
                key, row = next(iter(vector.rows.items()))
                if key not in held:
                    held[key] = _Held([])
                held[key].entries.append((place, row, number))
                continue
            own = np.zeros((replicates, count))
            used: Sequence[int] = [place] if term.each else range(count)
            own[:, used] = factors[:, place, None] if term.each else factors[:, place]
            own *= number if isinstance(number, float) else number[:, None]
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
    """Vectors that are rows of the table of a basis, times numbers."""

    def __init__(self, entries: list[tuple[int, int, Number]]) -> None:
        self.entries = entries  # place in a list, row, number

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
        full = np.ones((len(self.entries), len(values)))
        others = [(i, x) for i, (_, _, x) in enumerate(self.entries) if x is not ONE]
        if not others:
            return values
        for i, number in others:
            full[i] = number
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


def grams(step: Gram, vectors: Mapping[int, Vector], tables: Mapping[Key, Table]) -> Array:
    """All inner products of two lists with coordinates in one basis, (pairs, replicates).

    Args:
        step: The lists.
        vectors: All vectors, by register.
        tables: Coordinates of what matrices were applied to.
    """
    lefts, rights = ([vectors[one] for one in own] for own in (step.lefts, step.rights))
    for vector, _ in _sources(lefts[0]):
        for key in vector.rows:
            left, right = _inside(lefts, key), _inside(rights, key)
            if left is not None and right is not None:
                found = _products(left, right, tables[key])
                return found.reshape(-1, found.shape[2])
    raise AssertionError(step)  # scheduled as inner products of single vectors


def _products(left: _Held, right: _Held, table: Table) -> Array:
    if len(left.rows) > len(right.rows):
        return _products(right, left, table).transpose(1, 0, 2)
    data = table.data[:, : table.count, : table.count]
    mine = left.scale(np.take(data, left.rows, axis=1))
    found = np.matmul(mine, data.transpose(0, 2, 1))  # with all rows: none of the many is moved
    return right.scale(found[:, :, right.rows].transpose(0, 2, 1)).transpose(2, 1, 0)


def inner_products(
    vector: Vector, others: Sequence[Vector], tables: Mapping[Key, Table]
) -> Array | None:
    """Inner products of a vector with several, (others, replicates), if one basis has them all."""
    for one, factor in _sources(vector):
        for key, row in one.rows.items():
            held = _inside(others, key)
            if held is not None:
                found = held.scale(tables[key].inner(row, held.rows).T[:, :, None])[:, :, 0].T
                return found if isinstance(factor, float) and factor == 1.0 else found * factor
    return None


def _sources(vector: Vector) -> Iterator[tuple[Vector, Number]]:
    """A vector, and what it is a multiple of, with the factors."""
    factor: Number = ONE
    yield vector, factor
    while vector.source is not None:
        vector, number = vector.source
        factor = factor * number
        yield vector, factor


def _within(vector: Vector, key: Key) -> tuple[int, Number] | None:
    """The row of a vector, or of what it is a multiple of, in a basis, with the factor."""
    factor: Number = ONE
    while key not in vector.rows:
        if vector.source is None:
            return None
        vector, number = vector.source
        factor = number if factor is ONE else factor * number
    return vector.rows[key], factor


def _root(vector: Vector) -> tuple[Vector, Number]:
    """What a vector that was not formed is a multiple of, with the factor."""
    factor: Number = ONE
    while not vector.rows and vector.multiple is not None:
        vector, number = vector.multiple
        factor = number if factor is ONE else factor * number
    return vector, factor


def _inside(own: Sequence[Vector], key: Key) -> _Held | None:
    """Vectors, or what they are multiples of, as rows in a basis, if it has them all."""
    entries: list[tuple[int, int, Number]] = []
    for place, vector in enumerate(own):
        row = vector.rows.get(key)
        pair = _within(vector, key) if row is None else (row, ONE)
        if pair is None:
            return None
        entries.append((place, *pair))
    return _Held(entries)
