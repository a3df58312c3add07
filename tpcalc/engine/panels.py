"""Panels: many linear combinations, or inner products, of the same vectors as matrix products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Index
from tpcalc.engine.instructions import Dot, Gram, Panel
from tpcalc.engine.vectors import (
    Factor,
    Forms,
    Host,
    Key,
    Numbers,
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
        width: Callable[[Key], int],
        scalars: Numbers,
        place: Host,
    ) -> list[Vector]:
        """The linear combinations, on stored rows where possible."""
        count, replicates = len(self._step.out), scalars.shape[1]
        found = Forms(count, width, scalars, place)
        inside: dict[Key, Numbers] = {}
        for term, held, alone in zip(self._step.terms, self._held, self._rest, strict=True):
            factors = place.numbers(term.numbers)[None]
            if term.scalars is not None:
                numbers = scalars[place.index(term.scalars)].swapaxes(0, -1)
                factors = factors * (numbers if term.each else numbers.swapaxes(1, 2))
            for at, register, multiples in alone:
                vector = back(vectors[register], len(multiples))
                own = place.zeros(replicates, count, double=True)
                used = slice(at, at + 1) if term.each else slice(count)
                own[:, used] = factors[:, at, None] if term.each else factors[:, at]
                own *= times(multiples, scalars)[:, None]
                if vector.row is not None:
                    key, row = vector.row
                    found.on(key)[:, :, row] += own
                else:
                    columns = [at] if term.each else np.flatnonzero(term.numbers[at]).tolist()
                    found.add(vector, own, used, columns)
            for key, (places, rows) in held.items():
                if key not in inside:
                    shape = replicates, count, tables[key].count
                    inside[key] = place.zeros(*shape, double=True)
                numbers = rows.values(scalars, place).T
                _scatter(factors, places, numbers, rows.rows, term.each, inside[key], place)
        for key, own in inside.items():  # one product for all that is inside a basis
            out, known = found.on(key), own.shape[2]
            kept = min(known, out.shape[2])
            out[:, :, :kept] += place.products(own, tables[key].data[:, :known, :kept])
        return found.vectors()


def _places(found: Sequence[tuple[int, int, list[Factor]]]) -> tuple[Index, Places]:
    """Places in a list, and rows with their factors."""
    return np.array([place for place, _, _ in found]), Places.of([own[1:] for own in found])


def _scatter(
    factors: Numbers,
    at: Index,
    numbers: Numbers,
    rows: NDArray[np.int32],
    each: bool,
    out: Numbers,
    place: Host,
) -> None:
    """Add the factors of the vectors ``at`` times numbers to ``out[replicate, output, row]``."""
    places, index = place.index(at), place.index(rows)
    if each:
        out[:, places, index] += factors[:, places] * numbers
        return
    values = (factors[:, places] * numbers[:, :, None]).swapaxes(1, 2)
    if len(np.unique(rows)) == len(rows):
        out[:, :, index] += values
    else:
        for column, row in enumerate(rows.tolist()):
            out[:, :, row] += values[:, :, column]


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

    def values(self, tables: Mapping[Key, Table], scalars: Numbers, place: Host) -> Numbers:
        """All inner products, (pairs, replicates)."""
        table = tables[self._key]
        data = table.data[:, : table.count, : table.count]
        one, two = self._left, self._right
        if len(one.rows) > len(two.rows):
            one, two = two, one
        mine = place.take(data, one.rows, 1) * one.values(scalars, place).T[:, :, None]
        found = place.products(mine, data.swapaxes(1, 2))  # with all rows: none of many is moved
        found = place.take(found, two.rows, 2) * two.values(scalars, place).T[:, None]
        if one is not self._left:
            found = found.swapaxes(1, 2)
        return found.reshape(len(found), -1).T


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

    def write(self, tables: Mapping[Key, Table], scalars: Numbers, place: Host) -> bool:
        """Write the inner products as scalars, if there is such a basis."""
        if self._key is not None:
            place.inner_rows(tables[self._key], self._row, self._places, scalars, self._outs)
        return self._key is not None


def _sources(vector: Vector) -> Iterator[tuple[Vector, list[Factor]]]:
    """A vector, and what it is a multiple of, with the factors."""
    factors: list[Factor] = []
    yield vector, factors
    while vector.source is not None:
        vector, number = vector.source
        factors = [*factors, number]
        yield vector, factors


def _inside(own: Sequence[Vector], key: Key) -> list[tuple[int, list[Factor]]] | None:
    """Vectors, or what they are multiples of, as rows in a basis, if it has them all."""
    found = []
    for vector in own:
        held = ((one.rows[key], factors) for one, factors in _sources(vector) if key in one.rows)
        if (first := next(held, None)) is None:
            return None
        found.append(first)
    return found
