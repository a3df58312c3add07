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
from tpcalc.program.nodes import Dim, Family, Input, LinComb, Moment, Nonlin


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
class State(Writer):
    """A script under construction.

    Args:
        graph: What it is compiled from.
        single: The register of each node of a graph of single vectors.
        blocks: Of a graph of blocks the registers of each node, an array with its axes.
    """

    graph: LimitGraph
    single: dict[LRef, int] = field(default_factory=dict)
    blocks: dict[LRef, Index] = field(default_factory=dict)

    def cells(self, ref: LRef) -> list[int]:
        """The registers of all cells of a node."""
        return self.blocks[ref].ravel().tolist() if self.blocks else [self.single[ref]]


def _all(at: Registers, refs: Sequence[LRef]) -> tuple[int, ...]:
    return tuple([at[ref] for ref in refs])


def _multiply(node: Product, at: Registers, out: int, graph: LimitGraph) -> Instruction:
    return Multiply(node.matrix, node.transpose, (at[node.vector],), (out,))


def _map(node: Nonlin, at: Registers, out: int, graph: LimitGraph) -> Instruction:
    scalars = _all(at, node.scalars)
    if not node.vectors:
        return ScalarMap(node.fn, scalars, out)
    return Map(node.fn, _all(at, node.vectors), scalars, out)


def _draw(node: Input, at: Registers, out: int, graph: LimitGraph) -> Instruction:
    return DrawScalar(float(node.family.means[0]), float(node.family.std), out)


def _sum(node: LinComb, at: Registers, out: int, graph: LimitGraph | None) -> Instruction:
    scalars = tuple(None if scalar is None else at[scalar] for scalar in node.scalars)
    numbers = tuple(float(number) for number in node.numbers)
    return Sum(numbers, scalars, _all(at, node.vectors), out)


def _mean(node: Expect | Moment, at: Registers, out: int, graph: LimitGraph | None) -> Instruction:
    return Mean(node.fn, _all(at, node.vectors), _all(at, node.scalars), out)


def _outer(node: OuterExpect, at: Registers, out: int, graph: LimitGraph) -> Instruction:
    rows, cols, scalars = (_all(at, side) for side in (node.rows, node.cols, node.scalars))
    return Outer(node.fn, rows, cols, scalars, (at[node.vector],), (out,), node.forms, COLUMNS)


def _noise(node: Fluctuation, at: Registers, out: int, graph: LimitGraph) -> Instruction:
    matrices = {name: (rows, cols) for name, rows, cols, _ in graph.drawn}
    name, weights = family(node.root, graph.groups, graph.dims, matrices)
    return Noise(name, weights, _all(at, node.vectors), out)


INSTRUCTIONS: Table[Instruction] = Table(
    {
        Product: _multiply,
        Nonlin: _map,
        LinComb: _sum,
        Expect: _mean,
        Moment: _mean,
        OuterExpect: _outer,
        Fluctuation: _noise,
        Number: lambda node, at, out, graph: ScalarMap(Fn(const(node.value), 0, 0), (), out),
        Input: _draw,
    }
)
"""The instruction of a node at a cell, ``INSTRUCTIONS(node, registers, out, graph)``.

A program has no graph; of its nodes functions, sums and averages have rows.
"""
