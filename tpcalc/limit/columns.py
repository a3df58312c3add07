"""Which samples have nothing to do with each other: zeros of data, and data of disjoint supports.

A block has one sign, so that its cells count as dependent. Where the data say more, its axes are
divided: samples that are 0 are apart from the others, and samples that share no coordinate of the
inputs, not even by way of other samples, have start vectors with signs of their own. What all
cells of a block have alike divides nothing: of one-hot data only what is met at other steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpcalc.program.base import data_of, input_of, lincomb_of
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program
from tpcalc.program.types import Axes

MOST = 4  # classes of samples: a Gram matrix has a part for each pair of them
SUPPORTS = 64  # classes of coordinates: each part of the samples meets few of them

_Classes = dict[str, dict[int, int]]  # by axis the class of each cell


@dataclass(frozen=True)
class _Table:
    """Where data are not 0: rows of samples, columns of coordinates."""

    axes: Axes
    rows: NDArray[np.bool_]


def divisions(program: Program) -> _Classes:
    """The axes that data divide, with the class of each cell."""
    found: _Classes = {}
    for axis, tables in _tables(program).items():
        alone = all(
            len(family.axes) == 1
            for node in program.nodes
            if (drawn := input_of(node)) is not None
            for family in (drawn.family,)
            if axis in dict(family.axes)
        )
        known = _zeros(program, {table.axes for table in tables})
        for marks in (known, {}) if alone and not _connected(tables) else ():
            parts = _supports(tables, marks)
            own = _samples(tables, parts)
            sizes = [len(set(classes.values())) for classes in own.values()]
            if len(set(parts)) <= SUPPORTS and all(size <= MOST for size in sizes):
                found |= own | {axis: dict(enumerate(parts))}
                break
        else:
            found |= {
                name: classes
                for name, classes in _samples(tables, [0] * tables[0].rows.shape[1]).items()
                if len(set(classes.values())) <= MOST
            }
    return {name: own for name, own in found.items() if len(set(own.values())) > 1}


def readouts(program: Program) -> dict[str, int]:
    """Axes of blocks of start vectors that no data are multiplied with, and their sizes."""
    met = _tables(program).keys()
    return {name: size for name, size in _starts(program).items() if name not in met}


def _starts(program: Program) -> dict[str, int]:
    """The axes of blocks of start vectors."""
    return {
        name: size
        for node in program.nodes
        if (drawn := input_of(node)) is not None and len(drawn.family.width) == 1
        for name, size in drawn.family.axes
    }


def _tables(program: Program) -> dict[str, list[_Table]]:
    """By axis of start vectors the data that they are multiplied with."""
    starts = _starts(program)
    found: dict[str, dict[int, _Table]] = {}
    for node in program.nodes:
        total = lincomb_of(node)
        if total is None or program.types[total.vectors[0]].kind is not Kind.VECTOR:
            continue
        for scalar, over in zip(total.scalars, total.over, strict=False):
            if scalar is None or len(over) != 1 or over[0] not in starts:
                continue
            data, (axis,) = data_of(program.nodes[scalar]), over
            names = [] if data is None else [name for name, _ in data.axes]
            if data is None or axis not in names or len(names) < 2:
                continue
            array = np.array([value != 0 for value in data.values])
            array = np.moveaxis(
                array.reshape([size for _, size in data.axes]), names.index(axis), -1
            )
            kept = tuple(pair for pair in data.axes if pair[0] != axis)
            found.setdefault(axis, {})[scalar] = _Table(kept, array.reshape(-1, array.shape[-1]))
    return {axis: list(tables.values()) for axis, tables in found.items()}


def _connected(tables: Sequence[_Table]) -> bool:
    """Whether all coordinates that are met are met together, by way of others."""
    rows = np.concatenate([table.rows for table in tables])
    met = rows.any(0)
    reached = np.zeros_like(met)
    reached[np.argmax(met)] = True
    while True:
        more = rows[(rows & reached).any(1)].any(0) | reached
        if (more == reached).all():
            return bool((reached >= met).all())
        reached = more


def _zeros(program: Program, axes: set[Axes]) -> dict[Axes, list[Hashable]]:
    """For samples of some axes where other data, as targets, are 0."""
    found: dict[Axes, list[NDArray[np.bool_]]] = {}
    for node in program.nodes:
        data = data_of(node)
        if data is not None and data.axes in axes:
            found.setdefault(data.axes, []).append(np.array([v == 0 for v in data.values]))
    return {own: [tuple(row) for row in np.array(marks).T] for own, marks in found.items()}


def _supports(tables: Sequence[_Table], marks: Mapping[Axes, Sequence[Hashable]]) -> list[int]:
    """The part of each coordinate.

    Those of one part are met by one class of samples, or by several that have a class of
    coordinates in common.
    """
    size, count = tables[0].rows.shape[1], 1
    colours: list[Hashable] = [0] * size
    rows = [list(marks.get(one.axes, [0] * len(one.rows))) for one in tables]
    while True:
        rows = [
            [
                (own, frozenset(colours[k] for k in np.flatnonzero(row)))
                for own, row in zip(known, one.rows, strict=True)
            ]
            for known, one in zip(rows, tables, strict=True)
        ]
        rows = [list(_numbered(known)) for known in rows]
        met = [
            frozenset(
                (place, rows[place][k])
                for place, one in enumerate(tables)
                for k in np.flatnonzero(one.rows[:, column])
            )
            for column in range(size)
        ]
        colours = list(_numbered(zip(colours, met, strict=True)))
        if len(set(colours)) == count:
            break
        count = len(set(colours))
    part = dict(zip(colours, range(size), strict=True))
    for known, one in zip(rows, tables, strict=True):
        for own in set(known):
            here = [row for row, mark in zip(one.rows, known, strict=True) if mark == own]
            joined = {part[colours[k]] for k in np.flatnonzero(np.array(here).any(0))}
            part = {colour: min(joined) if p in joined else p for colour, p in part.items()}
    return list(_numbered(part[colour] for colour in colours))


def _samples(tables: Sequence[_Table], parts: Sequence[int]) -> _Classes:
    """For each axis of samples the class of each cell: by the parts of what it meets."""
    met: dict[str, dict[int, list[Hashable]]] = {}
    most: dict[str, int] = {}
    for table in tables:
        for name, size in table.axes:
            most[name] = max(size, most.get(name, 0))
    for table in tables:
        array = table.rows.reshape([*(size for _, size in table.axes), -1])
        for along, (name, size) in enumerate(table.axes):
            others = tuple(k for k in range(len(table.axes)) if k != along)
            own: NDArray[np.bool_] = np.asarray(np.any(array, axis=others))
            found = [frozenset(parts[k] for k in map(int, np.flatnonzero(row))) for row in own]
            for cell in range(most[name]):  # where there are fewer, further ones are as the last
                met.setdefault(name, {}).setdefault(cell, []).append(found[min(cell, size - 1)])
    return {
        name: dict(zip(own, _numbered(map(tuple, own.values())), strict=True))
        for name, own in met.items()
    }


def _numbered(keys: Iterable[Hashable]) -> Iterator[int]:
    """The number of each key among those that differ."""
    numbers: dict[Hashable, int] = {}
    for key in keys:
        yield numbers.setdefault(key, len(numbers))
