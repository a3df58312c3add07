"""Limit graph -> engine script.

One register for each node; powers of n are gone already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from tpcalc.engine.blocks import Blocks
from tpcalc.engine.instructions import Matrix, Mean, Script, Space
from tpcalc.engine.starts import starts_of
from tpcalc.evaluate.closure.chance import random_nodes
from tpcalc.evaluate.particles.emit import COLUMNS, INSTRUCTIONS, State
from tpcalc.functions import Call, Fn, Par, const
from tpcalc.functions.expr import Pow, walk
from tpcalc.functions.fn import FIRST, INNER, SQUARE
from tpcalc.limit.cells import as_drawn
from tpcalc.limit.graph import (
    Expect,
    LimitGraph,
    LRef,
    OuterExpect,
    Start,
    Starts,
    Target,
    Total,
    function_of,
    number_of,
    product_of,
    start_of,
)
from tpcalc.names import cell_name
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Nonlin, Rename, Stack

ENOUGH = 4  # samples for each direction: averages are off by a part of 0.003 then, or less


def directions(graph: LimitGraph) -> int:
    """The largest number of vectors that a side of a matrix is applied to."""
    found: dict[tuple[str, bool], int] = {}
    for ref, node in enumerate(map(product_of, graph.nodes)):
        if node is not None:
            held = dict(graph.axes[ref]) if graph.axes else {}
            shared = [name for name, _ in dict(graph.matrix_axes).get(node.matrix, ())]
            side = node.matrix, node.transpose
            cells = prod(size for name, size in held.items() if name not in shared)
            found[side] = found.get(side, 0) + cells
    return max(found.values(), default=0)


def samples_for(graph: LimitGraph) -> int:
    """How many samples a replicate has where nobody says it."""
    if not graph.has_blocks:
        return 2**14
    least = max(2**12, ENOUGH * directions(graph))
    return int(2 ** min(17, (least - 1).bit_length()))


def emit_blocks(state: State) -> None:
    """Write the instructions of a graph of blocks, with the registers of its nodes."""
    graph = state.graph
    blocks = Blocks(state, graph.axes, graph.vector_dim, held=state.blocks)
    for ref, node in enumerate(graph.nodes):
        _EMITTED(node, blocks, ref, graph)


def _starts(node: Start | Starts, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    group = {own.name: own for own in graph.groups}[node.group]
    out = blocks.fresh(ref).ravel().tolist()
    start = start_of(node)
    members = range(len(out)) if start is None else (start.index,)
    blocks.writer.out.append(starts_of(group, members, out))


def _expect(node: Expect, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    inner = node.fn == INNER and not node.scalars
    if not (inner and blocks.gram(ref, *node.vectors)):
        _each(node, blocks, ref, graph)


def _each(node: Any, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    """An instruction for each cell."""
    for out, at in blocks.cells(ref, references(node)):
        own = as_drawn(node, graph, at.where)
        blocks.writer.out.append(INSTRUCTIONS(own, at, out, graph))


_EMITTED: Table[None] = Table(
    {
        Start: _starts,
        Starts: _starts,
        Data: lambda node, blocks, ref, graph: blocks.data(ref, node.values),
        Rename: lambda node, blocks, ref, graph: blocks.rename(ref, node.of),
        Stack: lambda node, blocks, ref, graph: blocks.stack(ref, node.of, node.axis),
        Total: lambda node, blocks, ref, graph: blocks.total(
            ref, node.numbers, node.scalars, node.vectors, node.over
        ),
        Expect: _expect,
        OuterExpect: lambda node, blocks, ref, graph: blocks.outer(ref, node, COLUMNS),
    },
    _each,
)


ZERO = Fn(const(0), 0)


@dataclass(frozen=True)
class Compiled:
    """A script with the place of each target in its results."""

    script: Script  # what the engine runs
    scalars: Mapping[str, int]  # result index of each scalar target
    # result indices (mean, second moment) of each vector target; None for one that is 0 by symmetry
    moments: Mapping[str, tuple[int | None, int | None]]
    # the names of the cells of each target, under which the results are
    cells: Mapping[str, tuple[str, ...]]
    random: frozenset[int]  # result indices of scalars that stay random
    denominators: tuple[int, ...] = ()  # result indices of scalars that the program divides by
    jumps: tuple[int, ...] = ()  # result indices of scalars that are a jump of other scalars


_FUNCTIONS: Table[tuple[Fn, tuple[LRef, ...]]] = Table(
    dict.fromkeys((Nonlin, Expect), lambda node: (node.fn, node.scalars)),
    lambda node: (ZERO, ()),
)


@dataclass
class _Columns:
    """The results of a script."""

    registers: list[int] = field(default_factory=list)
    random: set[int] = field(default_factory=set)

    def add(self, register: int, chance: bool = False) -> int:
        if chance:
            self.random.add(len(self.registers))
        self.registers.append(register)
        return len(self.registers) - 1

    def all(self, registers: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(self.add, registers))


def compile_graph(
    graph: LimitGraph, *, moments: bool = True, collect: Sequence[str] = ()
) -> Compiled:
    """Compile a limit graph."""
    state = State(graph)
    if graph.has_blocks:
        emit_blocks(state)
    else:
        _emit_cells(state)
    random = random_nodes(graph)
    columns = _Columns()
    scalars: dict[str, int] = {}
    pairs: dict[str, tuple[int | None, int | None]] = {}
    names: dict[str, tuple[str, ...]] = {}
    held: dict[str, Sequence[int]] = {}
    for name, target in graph.targets:
        if target.node is None:
            continue
        cells = names[name] = _named(graph, name, target.node)
        registers = held[name] = state.cells(target.node)
        held.update((own, [one]) for own, one in zip(cells, registers, strict=True))
        if graph.vector_dim[target.node] is None:
            for own, register in zip(cells, registers, strict=True):
                scalars[own] = columns.add(register, target.node in random)
        elif moments:
            found = [list(_moments(state, target, fn, random)) for fn in (FIRST, SQUARE)]
            for own, first, second in zip(cells, *found, strict=True):
                mean, square = (
                    None if one is None else columns.add(*one) for one in (first, second)
                )
                pairs[own] = mean, square
    denominators = columns.all(_cells(state, _divisors(graph) - random))
    jumps = columns.all(_cells(state, _jumps(graph) - random))
    script = Script(
        tuple(Space(dim.name, float(dim.ratio)) for dim in graph.dims),
        tuple(Matrix(*matrix, adjoint=graph.has_blocks) for matrix in graph.drawn),
        tuple(state.out),
        tuple(state.spaces),
        state.scalars,
        tuple(state.labels),
        tuple(columns.registers),
        tuple(register for name in collect for register in held[name]),
    )
    return Compiled(script, scalars, pairs, names, frozenset(columns.random), denominators, jumps)


def _named(graph: LimitGraph, name: str, ref: LRef) -> tuple[str, ...]:
    """The names of the cells of an output."""
    sizes = (range(size) for _, size in graph.axes[ref]) if graph.axes else ()
    return tuple(cell_name(name, cell) for cell in product(*sizes))


def _cells(state: State, refs: Iterable[LRef]) -> list[int]:
    return [register for ref in sorted(refs) for register in state.cells(ref)]


def _moments(
    state: State, target: Target, fn: Fn, random: frozenset[LRef]
) -> Iterator[tuple[int, bool] | None]:
    """For each cell the register of E Z or E Z^2, with whether it is random; None for what is 0."""
    assert target.node is not None
    if target.moments is not None:
        ref = target.moments[fn is SQUARE]
        count = len(state.cells(target.node))
        yield from [None] * count if ref is None else [(r, ref in random) for r in state.cells(ref)]
        return
    for vector in state.cells(target.node):
        register = state.new_scalar()
        state.out.append(Mean(fn, (vector,), (), register))
        yield register, target.node in random


def _divisors(graph: LimitGraph) -> set[LRef]:
    """Scalars, other than given numbers, that something is divided by."""
    found: set[LRef] = set()
    for fn, scalars in map(_FUNCTIONS, graph.nodes):
        for part in walk(fn.expr):
            if isinstance(part, Pow) and part.exponent < 0 and isinstance(part.base, Par):
                ref = scalars[part.base.index]
                if number_of(graph.nodes[ref]) is None:
                    found.add(ref)
    return found


def _jumps(graph: LimitGraph) -> set[LRef]:
    """Scalars that are a jump of other scalars, such as the sign of one."""
    return {
        ref
        for ref, node in enumerate(map(function_of, graph.nodes))
        if node is not None
        and not node.vectors
        and isinstance(node.fn.expr, Call)
        and node.fn.expr.atom.facts.kinks
        and node.fn.expr.atom.jumps
    }


def _emit_cells(state: State) -> None:
    """The instructions of a graph of single vectors."""
    graph = state.graph
    names: dict[LRef, str] = {}
    for name, target in graph.targets:
        if target.node is not None:
            names.setdefault(target.node, name)
    groups = {group.name: group for group in graph.groups}
    members: dict[str, dict[LRef, int]] = {}
    for ref, start in enumerate(map(start_of, graph.nodes)):
        if start is not None:
            members.setdefault(start.group, {})[ref] = start.index
    for name, own in members.items():
        group = groups[name]
        state.single |= {ref: state.new_vector(group.dim, names.get(ref, "")) for ref in own}
        found = [state.single[ref] for ref in own]
        state.out.append(starts_of(group, list(own.values()), found))
    for ref, node in enumerate(graph.nodes):
        if ref in state.single:
            continue
        dim = graph.vector_dim[ref]
        if dim is None:
            out = state.single[ref] = state.new_scalar()
        else:
            out = state.single[ref] = state.new_vector(dim, names.get(ref, ""))
        state.out.append(INSTRUCTIONS(node, state.single, out, graph))
