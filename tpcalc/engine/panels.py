"""Panels: many linear combinations, or inner products, of the same vectors as matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tpcalc.engine.instructions import Gram, Panel
from tpcalc.engine.vectors import Array, Buffer, Key, Number, Table, Vector

__all__ = ["combined", "grams"]


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
    others: list[list[tuple[Buffer, Number]]] = [[] for _ in step.out]

    def on(key: Key) -> Array:
        if key not in forms:
            forms[key] = np.zeros((replicates, count, capacity[key]))
        return forms[key]

    for term in step.terms:
        factors = np.broadcast_to(term.numbers, (replicates, *term.numbers.shape))
        if term.scalars is not None:
            factors = factors * np.moveaxis(scalars[term.scalars], -1, 0)
        if term.each:
            factors = np.einsum("ri,ij->rij", factors, np.eye(count))
        bases: dict[Key, tuple[list[int], list[Array]]] = {}
        for place, register in enumerate(term.vectors):
            (vector, number), own = _root(vectors[register]), factors[:, place]
            own = own * (number if isinstance(number, float) else number[:, None])
            if vector.rows:
                key = next(iter(vector.rows))
                rows = bases.setdefault(key, ([], []))
                rows[0].append(vector.rows[key])
                rows[1].append(own)
            elif vector.row is not None:
                key, row = vector.row
                on(key)[:, :, row] += own
            else:
                used = [place] if term.each else np.flatnonzero(term.numbers[place]).tolist()
                _add(vector, own, used, on, others)
        for key, (held, parts) in bases.items():
            table = tables[key]
            inside = np.take(table.data, held, axis=1)[:, :, : table.count]
            on(key)[:, :, : table.count] += np.matmul(np.stack(parts, axis=2), inside)
    return [
        Vector(form={key: own[:, j] for key, own in forms.items()}, others=others[j])
        for j in range(count)
    ]


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
    key = next(
        key
        for vector, _ in _sources(lefts[0])
        for key in vector.rows
        if all(_within(other, key) for other in (*lefts, *rights))
    )
    left, right = (_inside(own, key, tables[key]) for own in (lefts, rights))
    found = np.matmul(left, right.transpose(0, 2, 1))
    return np.ascontiguousarray(found.reshape(len(found), -1).T)


def _sources(vector: Vector) -> Iterator[tuple[Vector, Number]]:
    """A vector, and what it is a multiple of, with the factors."""
    factor: Number = 1.0
    yield vector, factor
    while vector.source is not None:
        vector, number = vector.source
        factor = factor * number
        yield vector, factor


def _within(vector: Vector, key: Key) -> tuple[int, Number] | None:
    """The row of a vector, or of what it is a multiple of, in a basis, with the factor."""
    held = ((one.rows[key], number) for one, number in _sources(vector) if key in one.rows)
    return next(held, None)


def _root(vector: Vector) -> tuple[Vector, Number]:
    """What a vector that was not formed is a multiple of, with the factor."""
    factor: Number = 1.0
    while not vector.rows and vector.multiple is not None:
        vector, number = vector.multiple
        factor = factor * number
    return vector, factor


def _inside(own: Sequence[Vector], key: Key, table: Table) -> Array:
    """The coordinates of vectors in a basis, (replicates, vectors, directions)."""
    pairs = [pair for vector in own if (pair := _within(vector, key)) is not None]
    found = np.take(table.data, [row for row, _ in pairs], axis=1)[:, :, : table.count]
    for place, (_, factor) in enumerate(pairs):
        found[:, place] *= factor if isinstance(factor, float) else factor[:, None]
    return found
