"""Copying nodes with their references renamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpcalc.program.nodes import (
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)

if TYPE_CHECKING:
    from tpcalc.program.program import Program

__all__ = ["rename", "with_refs"]


def with_refs(node: Node, to: Callable[[Ref], Ref]) -> Node:
    """The node with every reference passed through ``to``."""
    if isinstance(node, MatMul):
        return replace(node, matrix=to(node.matrix), vector=to(node.vector))
    if isinstance(node, Nonlin | Moment):
        return replace(
            node,
            vectors=tuple(to(ref) for ref in node.vectors),
            scalars=tuple(to(ref) for ref in node.scalars),
        )
    if isinstance(node, LinComb):
        return replace(
            node,
            scalars=tuple(None if ref is None else to(ref) for ref in node.scalars),
            vectors=tuple(to(ref) for ref in node.vectors),
        )
    if isinstance(node, OuterNonlin):
        return replace(
            node,
            rows=tuple(to(ref) for ref in node.rows),
            cols=tuple(to(ref) for ref in node.cols),
            scalars=tuple(to(ref) for ref in node.scalars),
            vector=to(node.vector),
        )
    if isinstance(node, ScalarFn):
        return replace(node, scalars=tuple(to(ref) for ref in node.scalars))
    if isinstance(node, Scale):
        return replace(node, of=to(node.of))
    return node


def rename(program: Program, keep: Sequence[bool]) -> Program:
    """The program with only the nodes marked in ``keep`` (closed under references)."""
    new_index: dict[Ref, Ref] = {}
    nodes: list[Node] = []
    where: list[str | None] = []
    for ref, node in enumerate(program.nodes):
        if keep[ref]:
            new_index[ref] = len(nodes)
            nodes.append(with_refs(node, new_index.__getitem__))
            where.append(program.where[ref] if ref < len(program.where) else None)
    used = {node.group for node in nodes if isinstance(node, InputVector)}
    renamed = type(program)(
        program.dims,
        tuple(group for group in program.groups if group.name in used),
        tuple(nodes),
        tuple((name, new_index[ref]) for name, ref in program.outputs),
        tuple(where),
        (*program.unused, *(name for name, ref in program.inputs.items() if not keep[ref])),
    )
    types = tuple(type_ for type_, kept in zip(program.types, keep, strict=True) if kept)
    renamed.__dict__["types"] = types  # a type does not depend on indices
    return renamed
