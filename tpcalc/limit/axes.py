"""Finite axes in a limit graph: a node that has some is a block, with a Z (a number) for each cell.

What is known of a block holds for each of its cells. A coefficient need not have all axes of the
node of the program that it is of: along those that it lacks it is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tpcalc.limit.graph import LNode, OuterExpect, Starts, Total
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Family, Rename, Stack
from tpcalc.program.types import Axes

__all__ = ["NeedsCells", "axes_of", "united"]


class NeedsCells(Exception):
    """Blocks are not followed here; a program with a node for each cell may be."""


def united(axes: Iterable[Axes]) -> Axes:
    """All axes of several values."""
    found: dict[str, int] = {}
    for own in axes:
        for name, size in own:
            if found.setdefault(name, size) != size:
                raise NeedsCells(f"the axis {name!r} has {found[name]} and {size} cells")
    return tuple(found.items())


def _of_sum(node: Total, axes: Sequence[Axes], groups: Mapping[str, Family]) -> Axes:
    terms = zip(node.scalars, node.vectors, node.over, strict=True)
    kept = (
        tuple(pair for pair in united(axes[r] for r in (s, v) if r is not None) if pair[0] not in o)
        for s, v, o in terms
    )
    return united(kept)


def _of_outer(node: OuterExpect, axes: Sequence[Axes], groups: Mapping[str, Family]) -> Axes:
    every = united(axes[ref] for ref in references(node))
    return tuple(pair for pair in every if pair[0] not in node.over)


def _of_rename(node: Rename, axes: Sequence[Axes], groups: Mapping[str, Family]) -> Axes:
    new = dict(node.names)
    return tuple((new.get(name, name), size) for name, size in axes[node.of])


def _of_stack(node: Stack, axes: Sequence[Axes], groups: Mapping[str, Family]) -> Axes:
    return ((node.axis, len(node.of)), *united(axes[ref] for ref in node.of))


def _of_others(node: LNode, axes: Sequence[Axes], groups: Mapping[str, Family]) -> Axes:
    first, *more = dict.fromkeys(axes[ref] for ref in references(node)) or ((),)
    return united((first, *more)) if more else first


axes_of: Table[Axes] = Table(
    {
        Starts: lambda node, axes, groups: groups[node.group].axes,
        Data: lambda node, axes, groups: node.axes,
        Rename: _of_rename,
        Stack: _of_stack,
        Total: _of_sum,
        OuterExpect: _of_outer,
    },
    _of_others,
)
"""The axes of a node, given those of all before it and the families of start vectors."""
