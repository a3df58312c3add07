"""A node of a limit graph as an instruction of the engine, given the registers of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tpcalc.arrays import Index
from tpcalc.engine.blocks import Writer
from tpcalc.engine.instructions import (
    DrawScalar,
    Instruction,
    Map,
    Mean,
    Multiply,
    Noise,
    Outer,
    ScalarMap,
    Sum,
)
from tpcalc.evaluate.family import family
from tpcalc.functions import Fn, const
from tpcalc.limit.graph import Expect, Fluctuation, LimitGraph, LRef, Number, OuterExpect, Product
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, LinComb, Nonlin

COLUMNS = 2048  # that an outer function is averaged over: the others change little


class Registers(Protocol):
    """The register of a node."""

    def __getitem__(self, ref: LRef) -> int: ...


@dataclass
class Reading:
    """Where the arguments of nodes are."""

    graph: LimitGraph
    vector: Registers  # registers of vectors
    scalar: Registers  # registers of scalars

    def vectors(self, refs: Sequence[LRef]) -> tuple[int, ...]:
        """The registers of some vectors."""
        return tuple([self.vector[ref] for ref in refs])

    def scalars_of(self, refs: Sequence[LRef]) -> tuple[int, ...]:
        """The registers of some scalars."""
        return tuple([self.scalar[ref] for ref in refs])


@dataclass
class State(Writer):
    """A script under construction.

    Args:
        graph: What it is compiled from.
        vector: Registers of vectors.
        scalar: Registers of scalars.
        blocks: Of a graph of blocks the registers of each node, an array with its axes.
    """

    graph: LimitGraph
    vector: dict[LRef, int] = field(default_factory=dict)
    scalar: dict[LRef, int] = field(default_factory=dict)
    blocks: dict[LRef, Index] = field(default_factory=dict)

    def cells(self, ref: LRef) -> list[int]:
        """The registers of all cells of a node."""
        if self.blocks:
            return self.blocks[ref].ravel().tolist()
        return [(self.scalar if self.graph.vector_dim[ref] is None else self.vector)[ref]]


def _multiply(node: Product, state: Reading, out: int) -> Instruction:
    return Multiply(node.matrix, node.transpose, state.vectors([node.vector]), (out,))


def _map(node: Nonlin, state: Reading, out: int) -> Instruction:
    scalars = state.scalars_of(node.scalars)
    if not node.vectors:
        return ScalarMap(node.fn, scalars, out)
    return Map(node.fn, state.vectors(node.vectors), scalars, out)


def _draw(node: Input, state: Reading, out: int) -> Instruction:
    return DrawScalar(float(node.family.means[0]), float(node.family.std), out)


def _sum(node: LinComb, state: Reading, out: int) -> Instruction:
    scalars = tuple(None if s is None else state.scalar[s] for s in node.scalars)
    numbers = tuple(float(number) for number in node.numbers)
    return Sum(numbers, scalars, state.vectors(node.vectors), out)


def _mean(node: Expect, state: Reading, out: int) -> Instruction:
    return Mean(node.fn, state.vectors(node.vectors), state.scalars_of(node.scalars), out)


def _outer(node: OuterExpect, state: Reading, out: int) -> Instruction:
    return Outer(
        node.fn,
        state.vectors(node.rows),
        state.vectors(node.cols),
        state.scalars_of(node.scalars),
        (state.vector[node.vector],),
        (out,),
        node.forms,
        COLUMNS,
    )


def _noise(node: Fluctuation, state: Reading, out: int) -> Instruction:
    matrices = {name: (rows, cols) for name, rows, cols, _ in state.graph.drawn}
    name, weights = family(node.root, state.graph.groups, state.graph.dims, matrices)
    return Noise(name, weights, state.vectors(node.vectors), out)


INSTRUCTIONS: Table[Instruction] = Table(
    {
        Product: _multiply,
        Nonlin: _map,
        LinComb: _sum,
        Expect: _mean,
        OuterExpect: _outer,
        Fluctuation: _noise,
        Number: lambda node, state, out: ScalarMap(Fn(const(node.value), 0, 0), (), out),
        Input: _draw,
    }
)
"""The instruction of a node, ``INSTRUCTIONS(node, reading, out)``."""
