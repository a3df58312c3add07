"""``Input``: what is drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.family import Family
from tpcalc.program.types import Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Input:
    """A random array, or one cell of it: start vectors, matrices, random numbers.

    Args:
        family: What is drawn.
        cell: The cell; None: the whole.
    """

    family: Family
    cell: int | None = None

    grammar: ClassVar[str] = "input <family><cell>"

    @property
    def name(self) -> str:
        """The name of what it is: ``x[1]``, or ``x`` of a family of one."""
        return self.family.cell_name(self.cell)

    @property
    def index(self) -> int:
        """The number of the cell among those of its family."""
        return self.cell or 0

    def type(self, before: Typing) -> Type:
        """The type of the family, without its axes for one cell."""
        if self.cell is None:
            return self.family.type
        if not self.family.axes or not 0 <= self.cell < self.family.size:
            raise before.fail(
                f"{self.family.name!r} has {self.family.size} members; there is no {self.cell}."
            )
        return Type(self.family.width)


def members(family: Family) -> tuple[Input, ...]:
    """A node for each cell of a family; of a family of one the whole.

    Example:
        >>> [node.name for node in members(Family.group("x", "n", (0, 0)))]
        ['x[0]', 'x[1]']
    """
    return (
        tuple(Input(family, cell) for cell in range(family.size))
        if family.axes
        else (Input(family),)
    )
