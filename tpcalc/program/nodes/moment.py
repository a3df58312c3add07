"""``Moment``: an average over the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions import Fn
from tpcalc.program.types import Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Moment:
    """The average of a coordinatewise function over the coordinates."""

    fn: Fn
    vectors: tuple[Ref, ...]
    scalars: tuple[Ref, ...] = ()

    grammar: ClassVar[str] = "moment <fn> (<vectors><scalars?; >)"

    def type(self, before: Typing) -> Type:
        """A scalar for each cell."""
        before.arity(self.fn, len(self.vectors), len(self.scalars))
        before.scalars(self.scalars)
        before.common_dim(self.vectors)
        return Type((), before.axes((*self.vectors, *self.scalars)))
