"""A node of a limit graph as an instruction of the engine, given the registers of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from tpcalc.engine.starts import members_factor
from tpcalc.functions import Fn, const
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    LRef,
    Number,
    OuterExpect,
    Product,
    Root,
    Rows,
    Start,
    Twice,
    family_of,
)
from tpcalc.program.base import Table
from tpcalc.program.nodes import Dim, Family, Input, LinComb, Nonlin


def family(
    root: Root,
    groups: Iterable[Family],
    dims: Iterable[Dim],
    matrices: Mapping[str, tuple[str, str]],
) -> tuple[str, tuple[float, ...]]:
    """The name of the family of a fluctuation, and its weights there.

    The covariance of two of a family is the inner product of their weights, times E Z^x Z^y for
    each pair of their vectors.
    """
    ratio = {dim.name: float(dim.ratio) for dim in dims}
    named = {group.name: group for group in groups}
    return family_of(root, named), _WEIGHTS(root, ratio, named, matrices)


_Ratios = Mapping[str, float]
_Named = Mapping[str, Family]
_Matrices = Mapping[str, tuple[str, str]]


def _start(root: Start, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    group = named[root.group]
    scale = ratio[group.dim] ** -0.5
    factor = members_factor(group.cov, range(group.size), group.name)
    own = (1.0,) if factor is None else factor[root.index]
    return tuple(float(weight) * scale for weight in own)


def _rows(root: Rows, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    return (ratio[root.dim] ** -0.5,)


def _twice(root: Twice, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    out, read = matrices[root.matrix][:: -1 if root.transpose else 1]
    return (ratio[read] / (2 * ratio[out]) ** 0.5,)


def _matrix(root: str, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    rows, cols = matrices[root]
    return ((ratio[cols] / ratio[rows]) ** 0.5,)


_WEIGHTS: Table[tuple[float, ...]] = Table(
    {Start: _start, Rows: _rows, Twice: _twice, str: _matrix}
)


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
