"""Limit graph of blocks -> engine script: what each node is among registers with axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tpcalc.engine.blocks import Blocks
from tpcalc.engine.instructions import Starts as Drawn
from tpcalc.engine.starts import members_factor
from tpcalc.evaluate.particles.emit import COLUMNS, INSTRUCTIONS, Reading, State
from tpcalc.functions.fn import INNER
from tpcalc.limit.cells import as_drawn
from tpcalc.limit.graph import (
    Expect,
    LimitGraph,
    LRef,
    OuterExpect,
    Start,
    Starts,
    Total,
    product_of,
)
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Rename, Stack

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


def _starts(
    node: Start | Starts, blocks: Blocks, ref: LRef, graph: LimitGraph, members: Sequence[int]
) -> None:
    group = {own.name: own for own in graph.groups}[node.group]
    blocks.writer.out.append(
        Drawn(
            group.dim,
            tuple(float(group.means[index]) for index in members),
            members_factor(group.cov, members, group.name),
            tuple(blocks.fresh(ref).ravel().tolist()),
        )
    )


def _all_starts(node: Starts, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    _starts(node, blocks, ref, graph, range(prod(size for _, size in graph.axes[ref])))


def _expect(node: Expect, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    inner = node.fn == INNER and not node.scalars
    if not (inner and blocks.gram(ref, *node.vectors)):
        _each(node, blocks, ref, graph)


def _each(node: Any, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    """An instruction for each cell."""
    for out, at in blocks.cells(ref, references(node)):
        own = as_drawn(node, graph, at.where)
        blocks.writer.out.append(INSTRUCTIONS(own, Reading(graph, at, at), out))


_EMITTED: Table[None] = Table(
    {
        Start: lambda node, blocks, ref, graph: _starts(node, blocks, ref, graph, (node.index,)),
        Starts: _all_starts,
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
