"""``Stack``: values one after the other along a new axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.types import Kind, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Stack:
    """Values of one kind as the cells of a new axis; what lacks an axis is the same along it."""

    of: tuple[Ref, ...]
    axis: str

    grammar: ClassVar[str] = "stack <of> along <axis>"

    def type(self, before: Typing) -> Type:
        """The width of the values, all their axes, and the new one."""
        if not self.of:
            raise before.fail("a stack of nothing has no type.")
        kinds = {before.types[ref].kind for ref in self.of}
        if len(kinds) > 1 or Kind.MATRIX in kinds:
            raise before.fail("a stack is of vectors or of scalars, all of one kind.")
        width = () if kinds == {Kind.SCALAR} else (before.common_dim(self.of),)
        axes = before.axes(self.of)
        if self.axis in dict(axes):
            raise before.fail(
                f"what is stacked along {self.axis!r} has this axis already.",
                hint="Give the new axis another name.",
            )
        return Type(width, ((self.axis, len(self.of)), *axes))
