"""``OuterNonlin``: a nonlinear outer product times a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions import Fn
from tpcalc.program.types import Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class OuterNonlin:
    """z_a = (1/d) sum_b psi(rows_a; cols_b; scalars) x_b, d the size of the column dimension.

    The vector arguments of ``fn`` are the row vectors, then the column vectors.
    """

    fn: Fn
    rows: tuple[Ref, ...]
    cols: tuple[Ref, ...]
    scalars: tuple[Ref, ...]
    vector: Ref

    grammar: ClassVar[str] = "outer <fn> (<rows>; <cols><scalars?; >) <vector>"

    def type(self, before: Typing) -> Type:
        """On the dimension class of the rows."""
        before.arity(self.fn, len(self.rows) + len(self.cols), len(self.scalars))
        before.scalars(self.scalars)
        before.common_dim((*self.cols, self.vector))
        width = (before.common_dim(self.rows),)
        return Type(width, before.axes((*self.rows, *self.cols, *self.scalars, self.vector)))
