"""Limit graph of blocks -> engine script: what each node is among registers with axes."""

from __future__ import annotations

from typing import Any

from tpcalc.engine.blocks import Blocks
from tpcalc.engine.instructions import Starts
from tpcalc.engine.starts import members_factor
from tpcalc.evaluate.particles.emit import INSTRUCTIONS, Reading, State
from tpcalc.functions import Fn, Var
from tpcalc.limit.graph import Expect, LimitGraph, LRef, Start, Total
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Rename, Stack

__all__ = ["emit_blocks"]

INNER = Fn(Var(0) * Var(1), 2)


def emit_blocks(state: State) -> None:
    """Write the instructions of a graph of blocks, with the registers of its nodes.

    Args:
        state: The script.
    """
    graph = state.graph
    blocks = Blocks(state, graph.axes, graph.vector_dim, held=state.blocks)
    for ref, node in enumerate(graph.nodes):
        _EMITTED(node, blocks, ref, graph)


def _start(node: Start, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    group = {own.name: own for own in graph.groups}[node.group]
    members = range(group.size) if node.index is None else (node.index,)
    blocks.writer.out.append(
        Starts(
            group.dim,
            tuple(float(group.means[index]) for index in members),
            members_factor(group.cov, members, group.name),
            tuple(blocks.fresh(ref).ravel().tolist()),
        )
    )


def _expect(node: Expect, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    inner = node.fn == INNER and not node.scalars
    if not (inner and blocks.gram(ref, *node.vectors)):
        _each(node, blocks, ref, graph)


def _each(node: Any, blocks: Blocks, ref: LRef, graph: LimitGraph) -> None:
    """An instruction for each cell."""
    for out, at in blocks.cells(ref, references(node)):
        blocks.writer.out.append(INSTRUCTIONS(node, Reading(graph, at, at), out))


_EMITTED: Table[None] = Table(
    {
        Start: _start,
        Data: lambda node, blocks, ref, graph: blocks.data(ref, node.values),
        Rename: lambda node, blocks, ref, graph: blocks.rename(ref, node.of),
        Stack: lambda node, blocks, ref, graph: blocks.stack(ref, node.of, node.axis),
        Total: lambda node, blocks, ref, graph: blocks.total(
            ref, node.numbers, node.scalars, node.vectors, node.over
        ),
        Expect: _expect,
    },
    _each,
)
