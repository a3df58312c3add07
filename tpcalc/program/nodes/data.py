"""``Data``: numbers that are given."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tpcalc.functions.numbers import Number, is_finite
from tpcalc.program.types import Axes, Type, check_axes
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Data:
    """Given numbers, one for each cell in the order of the axes: a learning rate, the inputs.

    Without values it is a slot, to be filled by a run.
    """

    name: str
    values: tuple[Number, ...] = (0,)
    axes: Axes = ()

    grammar: ClassVar[str] = "data <name><axes><values? >"

    def type(self, before: Typing) -> Type:
        """A scalar, or a block of scalars."""
        check_axes(self.axes, repr(self.name), before.place)
        if self.values and len(self.values) != prod(size for _, size in self.axes):
            raise before.fail(f"{self.name!r} of type {Type((), self.axes)} needs one number for "
                              f"each cell; {len(self.values)} are given.")  # fmt: skip
        if not all(is_finite(value) for value in self.values):
            raise before.fail(f"a value of {self.name!r} is not a finite number.")
        return Type((), self.axes)
