"""``RowFn``: a named function of a whole row of numbers, such as softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tpcalc.errors import TraceError
from tpcalc.functions.expr import Expr
from tpcalc.sources import Source

Block = TypeVar("Block")


@dataclass(frozen=True)
class RowFn:
    """A function that gives a row of the same length for every row.

    What holds of it (growth, where it is positive) is read off the expressions, as it is of any
    other function.
    """

    name: str  # its name; two row functions of one name are equal
    # for the entries of a row the entries of its image, as expressions
    cells: Callable[[Sequence[Expr]], Sequence[Expr]] = field(compare=False, repr=False)
    # for an entry y_i of the image, its adjoint b_i, and the sum of y_j b_j over the row, the
    # adjoint of the entry of the row
    adjoint: Callable[[Expr, Expr, Expr], Expr] = field(compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)  # what it is, in one line
    source: Source = field(default=Source(""), compare=False, repr=False)  # where it is defined
    aliases: tuple[str, ...] = field(default=(), compare=False, repr=False)  # other names

    def __call__(self, value: Block, along: str | None = None) -> Block:
        """The function of a block, along one of its axes; the only one if none is said."""
        rows = getattr(value, "rows", None)
        if not callable(rows):
            raise TraceError(
                f"{self.name} takes a block of a program.",
                hint=f"Several scalars are one: tp.{self.name}(t.stack([s, r], 'k')).",
            )
        found: Block = rows(self, along)
        return found
