"""A plain interpreter of blocks, cell by cell: the reference of what splits them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tests.numpy_run import RULES, World, evaluate, key, total
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    LinComb,
    Ref,
    Rename,
    RowNonlin,
    Stack,
)
from tpcalc.program.program import Program

Cell = Mapping[str, int]  # a place on each axis


def named(family: Family, cell: int | None) -> str:
    """The name of the draws of a cell."""
    return key(Input(family, cell)) if len(family.width) == 1 else family.cell_name(cell)


def run(program: Program, width: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All outputs, cell by cell, under the names that ``split`` gives them.

    Args:
        program: The program.
        width: n.
        inputs: What ``numpy_run.draw`` gives for the split program.
    """
    values: list[dict[tuple[int, ...], Any]] = []
    world = World(width, inputs)
    for ref, node in enumerate(program.nodes):
        axes = program.types[ref].axes
        read = _reader(program, ref, node, values, world)
        names, places = [name for name, _ in axes], np.ndindex(*(size for _, size in axes))
        values.append({place: read(dict(zip(names, place, strict=True))) for place in places})
    return {
        f"{name}[{','.join(map(str, place))}]" if place else name: value
        for name, ref in program.outputs
        for place, value in values[ref].items()
    }


@dataclass(frozen=True)
class At:
    """The values before a node at one cell."""

    read: Callable[[Ref, Cell], Any]
    where: Cell

    def __getitem__(self, ref: Ref) -> Any:
        return self.read(ref, self.where)


def _reader(
    program: Program, ref: Ref, node: Any, values: list[dict[tuple[int, ...], Any]], world: World
) -> Callable[[Cell], Any]:
    """The value of a node as a function of a cell."""
    axes = dict(program.types[ref].axes)
    sizes = tuple(axes.values())

    def at(other: Ref, where: Cell) -> Any:
        return values[other][tuple(where[name] for name, _ in program.types[other].axes)]

    if isinstance(node, Data):
        numbers = np.array(node.values, dtype=float).reshape(sizes)
        return lambda where: float(numbers[tuple(where.values())])
    if isinstance(node, Input):
        cells = np.arange(node.family.size).reshape(sizes) if sizes else node.cell
        return lambda where: world.inputs[
            named(node.family, int(cells[tuple(where.values())]) if sizes else cells)
        ]
    if isinstance(node, Rename):
        new, old = dict(node.names), program.types[node.of].axes
        return lambda where: at(node.of, {name: where[new.get(name, name)] for name, _ in old})
    if isinstance(node, Stack):
        return lambda where: at(node.of[where[node.axis]], where)
    if isinstance(node, RowNonlin):
        size = axes[node.along]
        cells = [Fn(expr, size) for expr in node.row.cells([Var(i) for i in range(size)])]

        def shared(where: Cell) -> Any:
            row = [at(node.of, {**where, node.along: i}) for i in range(size)]
            # The softmax of a row of one cell is a number, whatever is in it.
            return np.broadcast_to(evaluate(cells[where[node.along]], row, []), np.shape(row[0]))

        return shared
    if isinstance(node, LinComb) and node.over:
        return lambda where: total([*_terms(program, node, at, where)])
    return lambda where: RULES[type(node)](node, At(at, where), world)


def _terms(
    program: Program, node: LinComb, at: Callable[[Ref, Cell], Any], where: Cell
) -> Iterator[Any]:
    """The terms of a sum at a cell, one for each place on the axes that are summed."""
    parts = zip(node.numbers, node.scalars, node.vectors, node.over, strict=True)
    for number, scalar, vector, over in parts:
        factors = [one for one in (scalar, vector) if one is not None]
        axes = dict(pair for one in factors for pair in program.types[one].axes)
        for place in product(*(range(axes[name]) for name in over)):
            here = {**where, **dict(zip(over, place, strict=True))}
            yield float(number) * math.prod(at(one, here) for one in factors)
