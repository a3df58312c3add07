"""``Nonlin``: a function, coordinate by coordinate and cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions import Fn
from tpcalc.program.types import Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Nonlin:
    """A coordinatewise function of vectors and scalars; of scalars alone it is a scalar."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()

    grammar: ClassVar[str] = "map <fn> (<vectors><scalars?; >)"

    def type(self, before: Typing) -> Type:
        """On the dimension class of the vectors."""
        before.arity(self.fn, len(self.vectors), len(self.scalars))
        before.scalars(self.scalars)
        width = (before.common_dim(self.vectors),) if self.vectors else ()
        return Type(width, before.axes((*self.vectors, *self.scalars)))
