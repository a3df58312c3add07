"""Limit graph of blocks -> engine script: registers with axes, sums and inner products as panels.

Each cell has a register of its own; a stack, or another name of an axis, is a view of registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.instructions import Gram, Panel, PanelTerm, ScalarMap
from tpcalc.engine.instructions import Starts as Drawn
from tpcalc.engine.starts import members_factor
from tpcalc.evaluate.particles.emit import INSTRUCTIONS, Reading, State
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul
from tpcalc.limit.graph import Expect, LimitGraph, LRef, Start, Starts, Total
from tpcalc.limit.views import product_of
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Rename, Stack

__all__ = ["directions", "emit_blocks", "samples_for"]

INNER = Fn(Var(0) * Var(1), 2)
Registers = NDArray[np.int64]
Where = Mapping[str, int]


ENOUGH = 16  # samples for each direction: averages are off by about a hundredth then, or less


def directions(graph: LimitGraph) -> int:
    """The largest number of vectors that a side of a matrix is applied to.

    Args:
        graph: A limit graph.
    """
    found: dict[tuple[str, bool], int] = {}
    for ref, node in enumerate(map(product_of, graph.nodes)):
        if node is not None:
            cells = prod(size for _, size in graph.axes[ref]) if graph.axes else 1
            side = node.matrix, node.transpose
            found[side] = found.get(side, 0) + cells
    return max(found.values(), default=0)


def samples_for(graph: LimitGraph) -> int:
    """How many samples a replicate has where nobody says it.

    Args:
        graph: A limit graph.
    """
    if not graph.has_blocks:
        return 2**14
    least = max(2**12, ENOUGH * directions(graph))
    return int(2 ** min(17, (least - 1).bit_length()))


@dataclass
class _Blocks:
    """A script under construction, with the numbers of data that no register holds yet."""

    state: State
    given: dict[LRef, NDArray[np.float64]] = field(default_factory=dict)

    def sizes(self, ref: LRef) -> dict[str, int]:
        """The axes of a node."""
        return dict(self.state.graph.axes[ref])

    def along(self, array: NDArray[Any], ref: LRef, names: Sequence[str]) -> NDArray[Any]:
        """What a node has in each cell, with these axes in this order; 1 where it lacks one."""
        own = list(self.sizes(ref))
        moved = array.transpose([own.index(name) for name in names if name in own])
        return np.expand_dims(moved, [i for i, name in enumerate(names) if name not in own])

    def registers(self, ref: LRef) -> Registers:
        """Those of a node; given numbers get some when a function reads them."""
        blocks = self.state.blocks
        if ref not in blocks:
            cells = self.given[ref]
            first = self.state.new_scalar(cells.size)
            for place, value in enumerate(cells.ravel().tolist()):
                self.state.out.append(ScalarMap(Fn(const(value), 0), (), first + place))
            blocks[ref] = np.arange(first, first + cells.size).reshape(cells.shape)
        return blocks[ref]

    def fresh(self, ref: LRef) -> Registers:
        """New registers for all cells of a node."""
        shape = tuple(self.sizes(ref).values())
        dim, count = self.state.graph.vector_dim[ref], int(np.prod(shape))
        if dim is None:
            first = self.state.new_scalar(count)
        else:
            first, *_ = [self.state.new_vector(dim) for _ in range(count)]
        found = self.state.blocks[ref] = np.arange(first, first + count).reshape(shape)
        return found


class _Cell:
    """Registers of nodes at one cell."""

    def __init__(self, blocks: _Blocks, where: Where) -> None:
        self.blocks, self.where = blocks, where

    def __getitem__(self, ref: LRef) -> int:
        cell = tuple(self.where[name] for name in self.blocks.sizes(ref))
        return int(self.blocks.registers(ref)[cell])


def emit_blocks(state: State) -> None:
    """Write the instructions of a graph of blocks, with the registers of its nodes.

    Args:
        state: The script.
    """
    blocks = _Blocks(state)
    for ref, node in enumerate(state.graph.nodes):
        _EMITTED(node, blocks, ref)


def _starts(node: Start | Starts, state: _Blocks, ref: LRef, members: Sequence[int]) -> None:
    group = {own.name: own for own in state.state.graph.groups}[node.group]
    state.state.out.append(
        Drawn(
            group.dim,
            tuple(float(group.means[index]) for index in members),
            members_factor(group.cov, members, group.name),
            tuple(state.fresh(ref).ravel().tolist()),
        )
    )


def _all_starts(node: Starts, state: _Blocks, ref: LRef) -> None:
    _starts(node, state, ref, range(int(np.prod([*state.sizes(ref).values()]))))


def _data(node: Data, state: _Blocks, ref: LRef) -> None:
    shape = tuple(size for _, size in node.axes)
    state.given[ref] = np.array([float(value) for value in node.values]).reshape(shape)


def _rename(node: Rename, state: _Blocks, ref: LRef) -> None:
    if node.of in state.given:
        state.given[ref] = state.given[node.of]
    else:
        state.state.blocks[ref] = state.state.blocks[node.of]


def _stack(node: Stack, state: _Blocks, ref: LRef) -> None:
    sizes = state.sizes(ref)
    names = [name for name in sizes if name != node.axis]
    shape = tuple(sizes[name] for name in names)
    cells = [
        np.broadcast_to(state.along(state.registers(one), one, names), shape) for one in node.of
    ]
    state.state.blocks[ref] = np.stack(cells, list(sizes).index(node.axis))


def _total(node: Total, state: _Blocks, ref: LRef) -> None:
    if state.state.graph.vector_dim[ref] is None:
        _scalar_total(node, state, ref)
        return
    out = state.fresh(ref)
    kept = state.sizes(ref)
    parts = zip(node.numbers, node.scalars, node.vectors, node.over, strict=True)
    terms = tuple(_term(state, float(x), s, v, over, kept) for x, s, v, over in parts)
    state.state.out.append(Panel(terms, tuple(out.ravel().tolist())))


def _term(
    state: _Blocks,
    number: float,
    scalar: LRef | None,
    vector: LRef,
    over: Sequence[str],
    kept: Mapping[str, int],
) -> PanelTerm:
    """One term of a panel: a row for each cell of the vector, a column for each output."""
    sizes = dict(state.sizes(vector))
    own = {} if scalar is None else state.sizes(scalar)
    sizes |= {name: size for name, size in own.items() if name in over}
    each = not over and sizes == kept
    outs = list(kept)
    rows = outs if each else list(sizes)
    shape = tuple(sizes[name] for name in rows)
    vectors = np.broadcast_to(state.along(state.registers(vector), vector, rows), shape).ravel()
    outer = [] if each else [name for name in outs if name not in sizes]
    whole = (*shape, *(kept[name] for name in outer))
    numbers: NDArray[np.float64] = np.broadcast_to(np.float64(number), whole)
    registers: Registers | None = None
    if scalar is not None and scalar in state.given:
        numbers = number * np.broadcast_to(
            state.along(state.given[scalar], scalar, [*rows, *outer]), whole
        )
    elif scalar is not None:
        found = state.along(state.registers(scalar), scalar, [*rows, *outer])
        registers = np.broadcast_to(found, whole)
    if each:
        numbers = numbers.ravel()
        registers = None if registers is None else registers.ravel()
    else:
        numbers, *more = (
            _matrix(array, rows, outs, outer, sizes, kept)
            for array in (numbers, *(() if registers is None else (registers,)))
        )
        registers = more[0] if more else None
        numbers = numbers * _matching(rows, outs, sizes, kept)
    return PanelTerm(tuple(vectors.tolist()), numbers, registers, each)


def _matrix(
    array: NDArray[Any],
    rows: Sequence[str],
    outs: Sequence[str],
    outer: Sequence[str],
    sizes: Mapping[str, int],
    kept: Mapping[str, int],
) -> NDArray[Any]:
    """Entries by rows and other axes as a matrix of rows and outputs."""
    shape = [sizes[name] for name in rows] + [kept[name] if name in outer else 1 for name in outs]
    full = [sizes[name] for name in rows] + [kept[name] for name in outs]
    height = int(np.prod([sizes[name] for name in rows]))
    return np.broadcast_to(array.reshape(shape), full).reshape(height, -1)


def _matching(
    rows: Sequence[str], outs: Sequence[str], sizes: Mapping[str, int], kept: Mapping[str, int]
) -> NDArray[np.float64] | float:
    """1 where the cell of a row is that of an output along all axes that they share."""
    shared = [name for name in outs if name in rows]
    if not shared:
        return 1.0
    own = np.indices([sizes[name] for name in rows]).reshape(len(rows), -1)
    other = np.indices([kept[name] for name in outs]).reshape(len(outs), -1)
    same = [own[rows.index(name)][:, None] == other[outs.index(name)][None, :] for name in shared]
    found: NDArray[np.float64] = np.logical_and.reduce(same).astype(float)
    return found


def _scalar_total(node: Total, state: _Blocks, ref: LRef) -> None:
    """The sum for each cell as a function of all numbers in it."""
    out, kept = state.fresh(ref), state.sizes(ref)
    for cell in product(*(range(size) for size in kept.values())):
        where = dict(zip(kept, cell, strict=True))
        held: dict[int, int] = {}
        terms: list[Expr] = []

        def part(one: LRef, here: Where, held: dict[int, int] = held) -> Expr:
            at = tuple(here[name] for name in state.sizes(one))
            if one in state.given:
                return const(float(state.given[one][at]))
            return Par(held.setdefault(int(state.registers(one)[at]), len(held)))

        for number, scalar, other, over in zip(
            node.numbers, node.scalars, node.vectors, node.over, strict=True
        ):
            own = {
                name: n
                for r in (scalar, other)
                if r is not None
                for name, n in state.sizes(r).items()
            }
            for inner in product(*(range(own[name]) for name in over)):
                here = {**where, **dict(zip(over, inner, strict=True))}
                factors = [const(number), part(other, here)]
                terms.append(mul(factors if scalar is None else [*factors, part(scalar, here)]))
        fn, _, used = Fn(add(terms), 0, len(held)).compact()
        registers = tuple(list(held)[k] for k in used)
        state.state.out.append(ScalarMap(fn, registers, int(out[cell])))


def _expect(node: Expect, state: _Blocks, ref: LRef) -> None:
    if node.fn == INNER and not node.scalars:
        left, right = node.vectors
        one, two = state.sizes(left), state.sizes(right)
        if one and two and not one.keys() & two.keys():
            lefts, rights = state.registers(left), state.registers(right)
            first, count = state.state.new_scalar(lefts.size * rights.size), state.state.scalars
            one_by_one = tuple(lefts.ravel().tolist()), tuple(rights.ravel().tolist())
            state.state.out.append(Gram(*one_by_one, out=first))
            found = np.arange(first, count).reshape(*lefts.shape, *rights.shape)
            names = [*one, *two]
            moved = found.transpose([names.index(name) for name in state.sizes(ref)])
            state.state.blocks[ref] = moved
            return
    _each(node, state, ref)


def _each(node: Any, state: _Blocks, ref: LRef) -> None:
    """An instruction for each cell."""
    for ref_ in references(node):
        state.registers(ref_)  # of data they are written first
    out, sizes = state.fresh(ref), state.sizes(ref)
    for cell in product(*(range(size) for size in sizes.values())):
        own = _Cell(state, dict(zip(sizes, cell, strict=True)))
        reading = Reading(state.state.graph, own, own)
        state.state.out.append(INSTRUCTIONS(node, reading, int(out[cell])))


_EMITTED: Table[None] = Table(
    {
        Start: lambda node, state, ref: _starts(node, state, ref, (node.index,)),
        Starts: _all_starts,
        Data: _data,
        Rename: _rename,
        Stack: _stack,
        Total: _total,
        Expect: _expect,
    },
    _each,
)
