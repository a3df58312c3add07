"""Nodes of two limit graphs that are the same random variable, term by term."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, Literal

from tpcalc.limit.graph import Fluctuation, LimitGraph, LRef, Product, Rows, Start, Twice
from tpcalc.program.base import Table, renumbered
from tpcalc.program.nodes import Family, Input, LinComb

Sameness = Literal["same", "both 0", "another power", "not shown"]
_Terms = dict[tuple[LRef | None, LRef], Fraction]


def same_targets(left: LimitGraph, right: LimitGraph) -> dict[str, Sameness]:
    """For each target that two graphs share: whether they are shown to be the same.

    The graphs are written over one table of nodes, sums with their terms collected; the same
    number then is the same variable, a function of the same start vectors and of products with the
    same matrices. Two targets may be equal without being shown so (other forms of one function).

    Example:
        >>> from tpcalc.limit.graph import Number, Target
        >>> node = Target(Fraction(0), 0)
        >>> one = LimitGraph((Number(Fraction(1)),), (("a", node),), (None,), (), (), ())
        >>> same_targets(one, LimitGraph((Number(1.0),), (("a", node),), (None,), (), (), ()))
        {'a': 'same'}
    """
    table: dict[Hashable, int] = {}
    found = []
    for graph in (left, right):
        numbers = _numbered(graph, table)
        found.append(
            {
                name: (target.power, None if target.node is None else numbers[target.node])
                for name, target in graph.targets
            }
        )
    mine, other = found
    return {name: _equal(mine[name], other[name]) for name in mine if name in other}


def _equal(mine: tuple[Fraction, int | None], other: tuple[Fraction, int | None]) -> Sameness:
    if mine[1] is None and other[1] is None:
        return "both 0"
    if mine[0] != other[0]:
        return "another power"
    return "same" if mine == other else "not shown"


def _numbered(graph: LimitGraph, table: dict[Hashable, int]) -> dict[LRef, int]:
    """Every node of a graph with its number in a table that graphs share."""
    given = _Given(graph)
    new: dict[LRef, int] = {}
    for ref, node in enumerate(graph.nodes):
        plain = _PLAIN(renumbered(node, new.__getitem__))
        if isinstance(plain, int):
            new[ref] = plain
            continue
        dim = graph.vector_dim[ref]
        full = (plain, _LAWS(plain, given), None if dim is None else given.ratios[dim])
        new[ref] = table.setdefault(full, len(table))
    return new


class _Given:
    """What the names in a graph stand for."""

    def __init__(self, graph: LimitGraph) -> None:
        self.groups: dict[str, Family] = {group.name: group for group in graph.groups}
        self.ratios = {dim.name: dim.ratio for dim in graph.dims}
        self.sides = {
            name: (self.ratios[row], self.ratios[col], name in graph.orthogonal)
            for name, row, col in graph.matrices
        }


# What the name in a node, or in the root of a fluctuation, stands for.
_LAWS: Table[Any] = Table(
    {
        Start: lambda node, given: given.groups[node.group],
        Rows: lambda root, given: given.ratios[root.dim],
        Product: lambda node, given: given.sides[node.matrix],
        Twice: lambda root, given: given.sides[root.matrix],
        str: lambda root, given: given.sides[root],
        Fluctuation: lambda node, given: _LAWS(node.root, given),
    },
    lambda node, given: None,
)


def _plain_sum(node: LinComb) -> Hashable:
    """A sum of one term with the factor 1 is that term."""
    terms: _Terms = {}
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        terms[scalar, vector] = terms.get((scalar, vector), Fraction(0)) + Fraction(number)
    kept = {key: number for key, number in terms.items() if number != 0}
    if len(kept) == 1:
        ((scalar, vector), number) = next(iter(kept.items()))
        if scalar is None and number == 1:
            return vector
    return (LinComb, frozenset(kept.items()))


# A node in one form.
_PLAIN: Table[Any] = Table(
    {LinComb: _plain_sum, Input: lambda node: (node.name, node.family.means, node.family.std)},
    lambda node: node,
)
