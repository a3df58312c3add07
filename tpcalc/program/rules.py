"""Interpretations as tables of rules keyed by node type, and the one loop that walks a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from tpcalc.doors.budget import paced
from tpcalc.errors import Exploded, ProgramError, TpcalcError
from tpcalc.program.nodes import NODE_TYPES, Carry, Rename, Repeat, RowNonlin, Stack
from tpcalc.program.program import Program
from tpcalc.program.types import Ref

T = TypeVar("T")
C = TypeVar("C")


class Level(Enum):
    """What a reading understands; what it does not is lowered first, by a pass."""

    REPEATS = "blocks of nodes that are repeated along the depth"
    BLOCKS = "values with finite axes"
    VECTORS = "single vectors, matrices and scalars"


LOWERED: Mapping[Level, frozenset[type]] = {
    Level.REPEATS: frozenset(),
    Level.BLOCKS: frozenset({Carry, Repeat}),
    Level.VECTORS: frozenset({Carry, Repeat, Rename, RowNonlin, Stack}),
}
"""Node types that are gone at a level: ``passes.depth`` and ``passes.split`` leave none of them."""


@dataclass(frozen=True)
class Rules(Generic[T, C]):
    """An interpretation of programs."""

    name: str  # what it is called in messages
    # for each node type rule(node, ref, values, context)
    table: Mapping[type, Callable[[Any, Ref, list[T], C], T]]
    # node types without a rule, each with the reason a reader needs
    gaps: Mapping[type, str] = field(default_factory=dict)
    refusal: type[TpcalcError] = ProgramError  # the error raised at a node without a rule
    level: Level = Level.VECTORS  # what it reads
    # what stands for a node whose rule raises, lost(error, ref, context); without it the error ends
    # the walk
    lost: Callable[[TpcalcError, Ref, C], T] | None = None

    @property
    def missing(self) -> set[type]:
        """Node types that have neither a rule nor a reason."""
        return set(NODE_TYPES) - set(self.table) - set(self.gaps) - LOWERED[self.level]

    def rule(self, kind: type, place: str) -> Callable[[Any, Ref, list[T], C], T]:
        """The rule of a node type."""
        if kind not in self.table:
            why = self.gaps.get(kind, "it is not a node of the language.")
            raise self.refusal(f"{kind.__name__} has no rule in {self.name!r}: {why}", where=place)
        return self.table[kind]


def interpret(program: Program, rules: Rules[T, C], context: C) -> list[T]:
    """Walk the nodes in order; returns one value for each."""
    values: list[T] = []
    for _ in interpret_from(program, rules, context, values):
        pass
    return values


def interpret_from(
    program: Program, rules: Rules[T, C], context: C, values: list[T]
) -> Iterator[Ref]:
    """Walk the nodes in order, filling ``values``; yields each node once its value is there."""
    if rules.level is not Level.REPEATS and program.repeats:
        raise ProgramError(
            f"{rules.name!r} reads programs of a depth that is a number; this one repeats a block.",
            where=program.place(program.repeats[0]),
            hint="Give it a depth: tp.at_depth(program, 8), or write ResNet(8, ...).",
        )
    if rules.level is Level.VECTORS and program.has_blocks:
        raise ProgramError(
            f"{rules.name!r} reads {Level.VECTORS.value}, and the program has values with finite "
            "axes.",
            hint="Lower it first: tpcalc.passes.split.split(program).",
        )
    for ref, node in enumerate(paced(program.nodes, f"a program of {len(program.nodes)} nodes")):
        rule = rules.table.get(type(node)) or rules.rule(type(node), program.place(ref))
        try:
            value = rule(node, ref, values, context)
        except TpcalcError as error:
            if rules.lost is None:
                raise
            value = rules.lost(error, ref, context)
        except OverflowError as error:  # of exact numbers, once they meet a float
            raise Exploded("a number is beyond floats.", where=program.place(ref)) from error
        values.append(value)
        yield ref
