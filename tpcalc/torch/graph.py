"""What a module computes, free of torch: operations whose numbers are known at several widths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tpcalc.program.base import reached

Sizes = tuple[int, ...]  # of a dimension, width by width


@dataclass(frozen=True, slots=True)
class Use:
    """The value of an earlier operation.

    Args:
        of: Its index.
        part: Of several results the one that is meant.
    """

    of: int


@dataclass(frozen=True, slots=True)
class Count:
    """A number in the arguments of an operation, width by width."""

    values: tuple[float, ...]

    @property
    def same(self) -> bool:
        """Whether it is one number at all widths."""
        return len(set(self.values)) == 1

    @property
    def whole(self) -> int:
        """The number where it is a whole one at all widths."""
        return int(self.values[0])


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation stands."""

    path: str = ""  # of its module
    line: str | None = None  # the user's line

    def __str__(self) -> str:
        named = f" ({self.path})" if self.path else ""
        return f"{self.line or 'the module'}{named}"


@dataclass(frozen=True, slots=True)
class Op:
    """An operation of a module."""

    name: str  # as torch calls it: ``aten.linear``; ``parameter``, ``input`` or ``given`` of a leaf
    args: tuple[Any, ...] = ()  # its arguments: uses, counts, lists of these, words
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # those by name
    shapes: tuple[tuple[Sizes, ...], ...] = ()  # of its results, a size for each dimension
    place: Place = Place()  # where it stands
    label: str = ""  # of a parameter or an input its name
    values: tuple[Any, ...] = ()  # of what is given its array at each width

    @property
    def shape(self) -> tuple[Sizes, ...]:
        """The sizes of its only result."""
        return self.shapes[0]

    @property
    def uses(self) -> list[int]:
        """The operations that it reads."""
        return _uses((self.args, tuple(self.kwargs.values())))


@dataclass(frozen=True)
class Graph:
    """What a family of modules computes."""

    name: str  # of the family
    widths: tuple[int, ...]  # the widths at which it was looked at
    ops: tuple[Op, ...]  # the operations in order
    output: int  # the operation that is the output
    notes: tuple[str, ...] = ()  # what a reader should know
    chosen: int = 0  # the number of the output among the tensors of floats that the modules return

    @cached_property
    def needed(self) -> frozenset[int]:
        """The operations that the output needs."""
        return self.behind(self.output)

    def behind(self, index: int) -> frozenset[int]:
        """An operation and all that it needs."""
        return frozenset(reached([index], lambda own: self.ops[own].uses))

    @cached_property
    def read_once(self) -> frozenset[int]:
        """The operations that one operation reads, once."""
        held = (self.ops[index] for index in self.needed)
        counts = Counter(use for op in held for use in op.uses)
        return frozenset(index for index, count in counts.items() if count == 1)


def _uses(value: Any) -> list[int]:
    if isinstance(value, Use):
        return [value.of]
    return [one for part in value for one in _uses(part)] if isinstance(value, tuple) else []
