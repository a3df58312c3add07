"""``RowNonlin``: a function of whole rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions.rows import RowFn
from tpcalc.program.types import Kind, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class RowNonlin:
    """A function of each row of cells along an axis, coordinate by coordinate: softmax."""

    row: RowFn
    of: Ref
    along: str

    grammar: ClassVar[str] = "rows <row>[<along>] <of>"

    def type(self, before: Typing) -> Type:
        """The type of what it is applied to, which must have the axis."""
        found = before.types[self.of]
        if found.kind is Kind.MATRIX:
            raise before.fail("a function of rows is taken of vectors or scalars, not of matrices.")
        if self.along not in dict(found.axes):
            names = ", ".join(name for name, _ in found.axes)
            raise before.fail(
                f"{self.row.name} along {self.along!r}, which %{self.of} ({found}) does not have.",
                hint=f"Its axes: {names or 'none'}.",
            )
        return found
