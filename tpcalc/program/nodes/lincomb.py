"""``LinComb``: a linear combination."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tpcalc.functions.numbers import Number, is_finite
from tpcalc.program.types import Axes, Kind, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class LinComb:
    """Sum of number * scalar * vector; where ``scalars`` holds None the scalar is 1.

    Args:
        numbers: One for each term.
        scalars: One for each term, or None.
        vectors: One for each term. They are scalars instead where a term is summed; without a sum
            a combination of scalars is a function of them, a ``Nonlin``.
        over: For each term the finite axes that it is summed over; ``()`` where none is.
    """

    numbers: tuple[Number, ...]
    scalars: tuple[Ref | None, ...]
    vectors: tuple[Ref, ...]
    over: tuple[tuple[str, ...], ...] = ()

    grammar: ClassVar[str] = "sum <numbers><scalars>*<vectors><over> + ..."

    def type(self, before: Typing) -> Type:
        """On the dimension class of the vectors, with the axes that no term is summed over."""
        if not len(self.numbers) == len(self.scalars) == len(self.vectors) or (
            self.over and len(self.over) != len(self.numbers)
        ):
            raise before.fail("a linear combination needs as many coefficients as vectors.")
        if self.over and not any(self.over):
            raise before.fail("no term is summed; then the axes of sums are left out.")
        if not all(is_finite(number) for number in self.numbers):
            raise before.fail("a coefficient of the linear combination is not finite.")
        before.scalars([scalar for scalar in self.scalars if scalar is not None])
        if self.vectors and before.types[self.vectors[0]].kind is Kind.SCALAR:
            before.scalars(self.vectors)
            if not self.over:
                raise before.fail(
                    "a combination of scalars none of which is summed is a function of them.",
                    hint="Write that function: map {s0 + 2*s1} (; %0, %1), a Nonlin of scalars.",
                )
            width: tuple[str, ...] = ()
        else:
            width = (before.common_dim(self.vectors),)
        if not self.over:
            return Type(width, before.axes((*self._factors(), *self.vectors)))
        return Type(width, self._left(before))

    def _left(self, before: Typing) -> Axes:
        """The axes that are not summed over."""
        kept: dict[str, int] = {}
        for scalar, vector, over in zip(self.scalars, self.vectors, self.over, strict=True):
            axes = dict(before.axes((vector,) if scalar is None else (scalar, vector)))
            for name in over:
                if axes.pop(name, None) is None:
                    raise before.fail(
                        f"a sum over {name!r}, which the term with %{vector} "
                        f"({before.types[vector]}) does not have.",
                        hint="Sum each term over axes of its own.",
                    )
            for name, size in axes.items():
                if kept.setdefault(name, size) != size:
                    raise before.fail(
                        f"the axis {name!r} has {kept[name]} cells in one term and {size} in the "
                        f"term with %{vector}.",
                        hint="Axes meet by name: give one of the two another name.",
                    )
        return tuple(kept.items())

    @property
    def terms(self) -> Iterable[tuple[Number, Ref | None, Ref, tuple[str, ...]]]:
        """Of each term its number, scalar and vector, and the axes that it is summed over."""
        over = self.over or ((),) * len(self.numbers)
        return zip(self.numbers, self.scalars, self.vectors, over, strict=True)

    def _factors(self) -> tuple[Ref, ...]:
        return tuple(scalar for scalar in self.scalars if scalar is not None)
