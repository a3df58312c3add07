"""Interpretations as tables of rules keyed by node type, and the one loop that walks a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tpcalc.program.nodes import NODE_TYPES, Node, Ref
from tpcalc.program.program import Program

__all__ = ["Rules", "interpret"]

T = TypeVar("T")
C = TypeVar("C")


@dataclass(frozen=True)
class Rules(Generic[T, C]):
    """An interpretation of programs.

    Args:
        name: What it is called in messages.
        table: For each node type ``rule(node, ref, values, context)``.
        gaps: Node types without a rule, each with the reason a reader needs.
    """

    name: str
    table: Mapping[type, Callable[[Any, Ref, list[T], C], T]]
    gaps: Mapping[type, str] = field(default_factory=dict)

    @property
    def missing(self) -> set[type]:
        """Node types that have neither a rule nor a reason."""
        return set(NODE_TYPES) - set(self.table) - set(self.gaps)


def interpret(program: Program, rules: Rules[T, C], context: C) -> list[T]:
    """Walk the nodes in order; returns one value for each."""
    values: list[T] = []
    table = rules.table
    for ref, node in enumerate(program.nodes):
        values.append(_apply(table, node, ref, values, context))
    return values


def _apply(
    table: Mapping[type, Callable[[Any, Ref, list[T], C], T]],
    node: Node,
    ref: Ref,
    values: list[T],
    context: C,
) -> T:
    return table[type(node)](node, ref, values, context)
