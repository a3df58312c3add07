"""Finite axes in a limit graph: a node that has some is a block, with a Z (a number) for each cell.

What is known of a block holds for each of its cells. A coefficient need not have all axes of the
node of the program that it is of: along those that it lacks it is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from tpcalc.limit.graph import Fluctuation, LNode, OuterExpect, Product, Starts, Total, twice_of
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Family, Input, Rename, Stack
from tpcalc.program.types import Axes


class NeedsCells(Exception):
    """Blocks are not followed here; a program with a node for each cell may be."""


class CellsDiffer(NeedsCells):
    """Outputs whose powers of n differ from cell to cell; each cell can be one of its own."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        super().__init__(f"powers of n differ between the cells of {names[0]}")


def united(axes: Iterable[Axes]) -> Axes:
    """All axes of several values."""
    found: dict[str, int] = {}
    for own in axes:
        for name, size in own:
            if found.setdefault(name, size) != size:
                raise NeedsCells(f"the axis {name!r} has {found[name]} and {size} cells")
    return tuple(found.items())


def along(cells: NDArray[Any], own: Axes, axes: Axes) -> NDArray[Any]:
    """What a value has in its cells as that of one with more axes, to be broadcast along these."""
    names = [name for name, _ in own]
    held = [names.index(name) for name, _ in axes if name in names]
    sizes = dict(zip(names, cells.shape, strict=True))
    return cells.transpose(held).reshape([sizes.get(name, 1) for name, _ in axes])


_Families = Mapping[str, Family]


def _of_sum(node: Total, axes: Sequence[Axes], families: _Families) -> Axes:
    terms = zip(node.scalars, node.vectors, node.over, strict=True)
    kept = (
        tuple(pair for pair in united(axes[r] for r in (s, v) if r is not None) if pair[0] not in o)
        for s, v, o in terms
    )
    return united(kept)


def _of_outer(node: OuterExpect, axes: Sequence[Axes], families: _Families) -> Axes:
    every = united(axes[ref] for ref in references(node))
    return tuple(pair for pair in every if pair[0] not in node.over)


def _of_product(node: Product, axes: Sequence[Axes], families: _Families) -> Axes:
    return united((axes[node.vector], _of_matrix(node.matrix, families)))


def _of_fluctuation(node: Fluctuation, axes: Sequence[Axes], families: _Families) -> Axes:
    twice = twice_of(node.root)
    matrix = node.root if twice is None else twice.matrix
    own = _of_matrix(matrix, families) if isinstance(matrix, str) else ()
    return united((*(axes[ref] for ref in node.vectors), own))


def _of_matrix(name: str, families: _Families) -> Axes:
    return families[name].axes if name in families else ()  # a cell has a name of its own


def _of_rename(node: Rename, axes: Sequence[Axes], families: _Families) -> Axes:
    new = dict(node.names)
    return tuple((new.get(name, name), size) for name, size in axes[node.of])


def _of_stack(node: Stack, axes: Sequence[Axes], families: _Families) -> Axes:
    return ((node.axis, len(node.of)), *united(axes[ref] for ref in node.of))


def _of_others(node: LNode, axes: Sequence[Axes], families: _Families) -> Axes:
    first, *more = dict.fromkeys(axes[ref] for ref in references(node)) or ((),)
    return united((first, *more)) if more else first


axes_of: Table[Axes] = Table(
    {
        Starts: lambda node, axes, families: families[node.group].axes,
        Data: lambda node, axes, families: node.axes,
        Input: lambda node, axes, families: node.family.axes if node.cell is None else (),
        Product: _of_product,
        Fluctuation: _of_fluctuation,
        Rename: _of_rename,
        Stack: _of_stack,
        Total: _of_sum,
        OuterExpect: _of_outer,
    },
    _of_others,
)
"""The axes of a node, given those of all before it and what is drawn at random, by name."""
