"""Vector registers on a device: a tensor, or a linear combination of stored rows not formed yet.

As ``engine/vectors`` and ``engine/panels``, with one way for sums and panels: factors are a matrix
of vectors and outputs, and coordinates in a basis come first, so that history is a product of small
matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.device.rows import Place
from tpcalc.engine.instructions import Panel, Sum
from tpcalc.engine.vectors import Key


@dataclass(slots=True)
class Vector:
    """A vector register, of all replicates.

    Args:
        dense: Its samples (blocks, block), if they were formed.
        form: Coefficients (replicates, rows) on stored rows; None if it was computed sample by
            sample.
        others: Tensors of samples with their factors (replicates,), besides the form.
        rows: For each matrix side it was applied to, its row in the side's table of coordinates.
        row: Its row in the stack of its space.
        multiple: The vector that it is a multiple of, and the factor (replicates,).
    """

    dense: Any = None
    form: dict[Key, Any] | None = None
    others: list[tuple[Any, Any]] = field(default_factory=list)
    rows: dict[Key, int] = field(default_factory=dict)
    row: tuple[Key, int] | None = None
    multiple: tuple[Vector, Any] | None = None

    @property
    def has_spare(self) -> bool:
        """Whether sums can do without the tensor."""
        known = bool(self.rows) or self.row is not None
        return known or self.form is not None or self.multiple is not None


class Table:
    """Coordinates of the arguments of one matrix side in its orthonormal basis, row by row."""

    def __init__(self, replicates: int, capacity: int, place: Place) -> None:
        self.place = place
        self.data = place.zeros(replicates, capacity, capacity, double=True)
        self.count = 0

    def append(self, coords: Any) -> int:
        """Add rows (replicates, m, directions); returns the number of the first."""
        first, count = self.count, coords.shape[1]
        self.data[:, first : first + count, : coords.shape[2]] = coords
        self.count += count
        return first

    def at(self, rows: Sequence[int]) -> Any:
        """Some rows, (replicates, rows, directions)."""
        first, count = rows[0], len(rows)
        if list(rows) == list(range(first, first + count)):
            return self.data[:, first : first + count, : self.count]
        return self.data[:, :, : self.count].index_select(1, self.place.index(rows))


@dataclass(frozen=True)
class Part:
    """Vectors with factors (replicates, vectors, outputs), and which of these are not always 0."""

    vectors: tuple[int, ...]
    factors: Any
    used: NDArray[np.bool_]


def parts_of(step: Sum | Panel, scalars: Any, place: Place) -> list[Part]:
    """What a sum or a panel adds up."""
    replicates = scalars.shape[1]
    if isinstance(step, Sum):
        factors = place.numbers(step.numbers).expand(replicates, -1)
        if any(scalar is not None for scalar in step.scalars):
            ones = scalars.new_ones(replicates)
            held = [ones if scalar is None else scalars[scalar] for scalar in step.scalars]
            factors = factors * place.torch.stack(held, 1)
        return [Part(step.vectors, factors[:, :, None], np.ones((len(step.vectors), 1), bool))]
    out = []
    for term in step.terms:
        factors = place.numbers(term.numbers).expand(replicates, *term.numbers.shape)
        if term.scalars is not None:
            held = scalars.index_select(0, place.index(term.scalars.ravel().tolist()))
            factors = factors * held.T.reshape(replicates, *term.scalars.shape)
        used = term.numbers != 0
        if term.each:
            factors, used = factors.diag_embed(), np.diag(used)
        out.append(Part(term.vectors, factors, used))
    return out


def combined(
    parts: Sequence[Part],
    vectors: Mapping[int, Vector],
    tables: Mapping[Key, Table],
    sizes: Mapping[Key, int],
    place: Place,
) -> list[Vector]:
    """Linear combinations, on stored rows where possible."""
    found = _Combined(parts[0].factors, tables, sizes, place)
    for part in parts:
        found.add(part, vectors)
    return [
        Vector(form={key: own[:, j] for key, own in found.forms.items()}, others=others)
        for j, others in enumerate(found.others)
    ]


class _Combined:
    """Combinations under construction: of stored rows, and of tensors beside them."""

    def __init__(
        self, like: Any, tables: Mapping[Key, Table], sizes: Mapping[Key, int], place: Place
    ) -> None:
        self._replicates, _, self._count = like.shape
        self._tables, self._sizes, self._place = tables, sizes, place
        self.forms: dict[Key, Any] = {}
        self.others: list[list[tuple[Any, Any]]] = [[] for _ in range(self._count)]

    def _on(self, key: Key) -> Any:
        if key not in self.forms:
            shape = self._replicates, self._count, self._sizes[key]
            self.forms[key] = self._place.zeros(*shape, double=True)
        return self.forms[key]

    def add(self, part: Part, vectors: Mapping[int, Vector]) -> None:
        """Add the vectors of a part; those with coordinates in one basis together."""
        bases: dict[Key, tuple[list[int], list[Any]]] = {}
        for index, register in enumerate(part.vectors):
            vector, number = _root(vectors[register])
            own, used = part.factors[:, index], np.flatnonzero(part.used[index]).tolist()
            own = own if number is None else own * number[:, None]
            if vector.rows:
                key = next(iter(vector.rows))
                rows, factors = bases.setdefault(key, ([], []))
                rows.append(vector.rows[key])
                factors.append(own)
            else:
                self._add_one(vector, own, used)
        for key, (rows, factors) in bases.items():
            found = self._place.torch.stack(factors, 2).bmm(self._tables[key].at(rows))
            width = min(found.shape[2], self._sizes[key])
            self._on(key)[:, :, :width] += found[:, :, :width]

    def _add_one(self, vector: Vector, factors: Any, used: Sequence[int]) -> None:
        """Add multiples of a vector without coordinates to the outputs that use it."""
        if vector.row is not None:
            key, row = vector.row
            self._on(key)[:, :, row] += factors
            return
        if vector.dense is not None:
            for j in used:
                self.others[j].append((vector.dense, factors[:, j]))
            return
        assert vector.form is not None
        for key, coefficients in vector.form.items():
            part = factors[:, :, None] * coefficients[:, None, :]
            self._on(key)[:, :, : coefficients.shape[1]] += part
        for tensor, factor in vector.others:
            for j in used:
                self.others[j].append((tensor, factors[:, j] * factor))


def _root(vector: Vector) -> tuple[Vector, Any]:
    """What a vector that was not formed is a multiple of, with the factor."""
    factor = None
    while not vector.rows and vector.dense is None and vector.multiple is not None:
        vector, number = vector.multiple
        factor = number if factor is None else factor * number
    return vector, factor


def grams(
    lefts: Sequence[Vector], rights: Sequence[Vector], tables: Mapping[Key, Table], place: Place
) -> Any:
    """All inner products of two lists with coordinates in one basis, (replicates, pairs)."""
    every = [*lefts, *rights]
    keys = (key for vector, _ in _sources(lefts[0]) for key in vector.rows)
    key = next((key for key in keys if all(_within(one, key) for one in every)), None)
    assert key is not None  # the plan makes others inner products of single vectors
    left, right = (_inside(own, key, tables[key], place) for own in (lefts, rights))
    return left.bmm(right.transpose(1, 2)).flatten(1)


def _sources(vector: Vector) -> Iterator[tuple[Vector, Any]]:
    """A vector, and what it is a multiple of, with the factors."""
    factor = None
    yield vector, factor
    while vector.multiple is not None:
        vector, number = vector.multiple
        factor = number if factor is None else factor * number
        yield vector, factor


def _within(vector: Vector, key: Key) -> tuple[int, Any] | None:
    """The row of a vector, or of what it is a multiple of, in a basis, with the factor."""
    held = ((one.rows[key], number) for one, number in _sources(vector) if key in one.rows)
    return next(held, None)


def _inside(own: Sequence[Vector], key: Key, table: Table, place: Place) -> Any:
    """The coordinates of vectors in a basis, (replicates, vectors, directions)."""
    pairs = [pair for vector in own if (pair := _within(vector, key)) is not None]
    found = table.at([row for row, _ in pairs])
    if all(factor is None for _, factor in pairs):
        return found
    one = place.zeros(len(found), double=True) + 1.0
    factors = [one if factor is None else factor for _, factor in pairs]
    return found * place.torch.stack(factors, 1)[:, :, None]
