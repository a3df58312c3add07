"""What all nodes share: references read off the annotations of fields, and tables by class.

A field that is annotated with ``Ref`` (alone, in a tuple, or ``Ref | None`` in a tuple) refers to
earlier nodes. So a new node needs no row here, in whichever of the graphs it stands. A reading asks
a node for what it is through a ``Table``, or a view of one class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

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
from tpcalc.program.types import Ref

H = TypeVar("H", bound=Hashable)
N = TypeVar("N")
R = TypeVar("R")


_FIELDS: dict[type, tuple[tuple[str, str], ...]] = {}


def _fields(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a class, each with what it holds: one reference, many, or something else."""
    if kind not in _FIELDS:
        texts = ((one.name, str(one.type)) for one in fields(kind))
        _FIELDS[kind] = tuple(
            (name, ("many" if text.startswith("tuple") else "one") if "Ref" in text else "")
            for name, text in texts
        )
    return _FIELDS[kind]


def references(node: Any) -> tuple[Ref, ...]:
    """The nodes that a node refers to, in the order of its fields.

    Example:
        >>> from tpcalc.program.nodes import LinComb
        >>> references(LinComb((1, 2), (None, 5), (3, 4)))
        (5, 3, 4)
    """
    found: list[Ref] = []
    for name, holds in _fields(type(node)):
        if not holds:
            continue
        value = getattr(node, name)
        if holds == "one":
            found.append(value)
        elif None in value:
            found += [ref for ref in value if ref is not None]
        else:
            found += value
    return tuple(found)


def reached(starts: Iterable[H], below: Callable[[H], Iterable[H]]) -> set[H]:
    """Nodes with all that lies below them.

    Example:
        >>> sorted(reached([5], lambda node: range(node // 2)))
        [0, 1, 5]
    """
    found, left = set[H](), list(starts)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += below(node)
    return found


def renumbered(node: N, to: Callable[[Ref], Ref]) -> N:
    """The node with every reference passed through ``to``.

    Example:
        >>> from tpcalc.program.nodes import MatMul
        >>> renumbered(MatMul(1, 2), lambda ref: ref + 7)
        MatMul(matrix=8, vector=9, transpose=False)
    """
    values: list[Any] = []  # not dataclasses.replace, which takes longer than all else here
    for name, holds in _fields(type(node)):
        value = getattr(node, name)
        if holds == "many":
            values.append(tuple([None if ref is None else to(ref) for ref in value]))
        else:
            values.append(to(value) if holds else value)
    return type(node)(*values)


def cone(nodes: Sequence[Any], tops: Iterable[Ref]) -> list[bool]:
    """For each node whether one of ``tops`` is or needs it."""
    needed = [False] * len(nodes)
    for top in tops:
        needed[top] = True
    for ref in range(len(nodes) - 1, -1, -1):
        if needed[ref]:
            for other in references(nodes[ref]):
                needed[other] = True
    return needed


class Table(Generic[R]):
    """What one question answers to each class of nodes, and to all others.

    A reading asks a node by its class through tables alone, so that a new class of nodes is a row
    in each of them, and what has no row is seen.

    Example:
        >>> from tpcalc.program.nodes import MatMul, Scale
        >>> operand = Table({MatMul: lambda node: node.vector, Scale: lambda node: node.of})
        >>> operand(MatMul(1, 2))
        2
    """

    def __init__(
        self,
        rows: Mapping[type, Callable[..., R]],
        other: Callable[..., R] | None = None,
    ) -> None:
        self.rows, self.other = rows, other

    def __call__(self, node: Any, *rest: Any) -> R:
        """The answer to a node."""
        rule = self.rows.get(type(node), self.other)
        if rule is None:
            raise TypeError(f"{type(node).__name__} has no row in this table")
        return rule(node, *rest)


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
