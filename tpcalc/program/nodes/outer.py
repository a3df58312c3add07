"""``OuterNonlin``: a nonlinear outer product times a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions import Fn
from tpcalc.program.types import Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class OuterNonlin:
    """z_a = (1/d) sum_b psi(a, b) x_b, d the size of the column dimension.

    The vector arguments of ``fn`` are the row vectors, then the column vectors. With ``forms`` they
    are bilinear forms, G_s(a, b) = sum of row_k(a) col_k(b) over the k with forms[k] = s, in blocks
    also over those of the axes ``over`` that they have.
    """

    fn: Fn
    rows: tuple[Ref, ...]
    cols: tuple[Ref, ...]
    scalars: tuple[Ref, ...]
    vector: Ref
    forms: tuple[int, ...] = ()
    over: tuple[str, ...] = ()

    grammar: ClassVar[str] = (
        "outer <fn> (<rows>; <cols><scalars?; >)<forms? forms |><over? over |> <vector>"
    )

    def type(self, before: Typing) -> Type:
        """On the dimension class of the rows."""
        if self.forms and not len(self.forms) == len(self.rows) == len(self.cols):
            raise before.fail(
                f"{len(self.rows)} rows and {len(self.cols)} columns for {len(self.forms)} places.",
                hint="A form is a sum of products of one row and one column each.",
            )
        if self.over and not self.forms:
            raise before.fail("only the forms of an outer function are summed over axes.")
        given = max(self.forms) + 1 if self.forms else len(self.rows) + len(self.cols)
        before.arity(self.fn, given, len(self.scalars))
        before.scalars(self.scalars)
        before.common_dim((*self.cols, self.vector))
        width = (before.common_dim(self.rows),)
        every = before.axes((*self.rows, *self.cols, *self.scalars, self.vector))
        lost = set(self.over) - {name for name, _ in before.axes((*self.rows, *self.cols))}
        if lost or set(self.over) & {name for name, _ in before.axes((self.vector,))}:
            raise before.fail(
                f"forms are summed over {', '.join(self.over)}: axes of rows or columns, and not "
                "of the vector."
            )
        return Type(width, tuple(pair for pair in every if pair[0] not in self.over))
