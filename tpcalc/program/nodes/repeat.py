"""``Carry`` and ``Repeat``: a block of nodes that is repeated along the depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.types import Count, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Carry:
    """What enters a repetition of a block: ``start`` the first, what the one before gave the next.

    The block is what is computed of it, with the inputs that are drawn anew along the depth, up to
    its ``Repeat``.

    Args:
        start: What enters the first repetition.
        layer: The name of the number of a repetition, from 1.
        count: How often the block is repeated; 0: the symbol L.
    """

    start: Ref
    layer: str = "l"
    count: Count = 0

    grammar: ClassVar[str] = "carry <start> over <layer>:<count>"

    def type(self, before: Typing) -> Type:
        """The type of what enters first."""
        before.vector(self.start)
        return before.types[self.start]


@dataclass(frozen=True, slots=True)
class Repeat:
    """What leaves the last repetition of a block."""

    carry: Ref
    next: Ref

    grammar: ClassVar[str] = "repeat <carry> to <next>"

    def type(self, before: Typing) -> Type:
        """The type of the carry, which the block keeps."""
        found, wanted = before.types[self.next], before.types[self.carry]
        if (found.width, set(found.axes)) != (wanted.width, set(wanted.axes)):
            raise before.fail(
                f"a repetition takes {wanted} (%{self.carry}) and gives {found} (%{self.next}): "
                "the next one cannot take that.",
                hint="A repeated block keeps the dimension and the axes of what it carries.",
            )
        return wanted
