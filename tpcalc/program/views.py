"""Nodes of a program as one class, for readings that ask a single node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tpcalc.program.base import Table
from tpcalc.program.nodes import (
    Carry,
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Rename,
    Repeat,
    Scale,
)

N = TypeVar("N")


def _itself(node: Any) -> Any:
    return node


def _none(node: Any) -> None:
    return None


def only(kind: type[N]) -> Table[N]:
    """A table that gives the nodes of a class back; there are to be no others.

    Example:
        >>> only(MatMul)(MatMul(1, 2))
        MatMul(matrix=1, vector=2, transpose=False)
    """
    return Table({kind: _itself})


def view(kind: type[N]) -> Table[N | None]:
    """A table that gives the nodes of a class back, and None for all others.

    Example:
        >>> view(MatMul)(MatMul(1, 2)), view(Scale)(MatMul(1, 2))
        (MatMul(matrix=1, vector=2, transpose=False), None)
    """
    return Table({kind: _itself}, _none)


carry_of: Table[Carry | None] = view(Carry)
data_of: Table[Data | None] = view(Data)
input_of: Table[Input | None] = view(Input)
lincomb_of: Table[LinComb | None] = view(LinComb)
matmul_of: Table[MatMul | None] = view(MatMul)
moment_of: Table[Moment | None] = view(Moment)
nonlin_of: Table[Nonlin | None] = view(Nonlin)
rename_of: Table[Rename | None] = view(Rename)
repeat_of: Table[Repeat | None] = view(Repeat)
scale_of: Table[Scale | None] = view(Scale)
leaf_of: Table[Data | Input | None] = Table({Data: _itself, Input: _itself}, _none)
applied_of: Table[Nonlin | Moment | OuterNonlin | None] = Table(
    {Nonlin: _itself, Moment: _itself, OuterNonlin: _itself}, _none
)
the_matmul: Table[MatMul] = only(MatMul)
_the_input: Table[Input] = only(Input)


def matrix_of(nodes: Sequence[Node], product: MatMul) -> Input:
    """The random matrix of a product."""
    return _the_input(nodes[product.matrix])
