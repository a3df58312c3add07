"""Closed forms of the paper, with their places in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from tpcalc.exponents import Ex
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.theorems.closed import ClosedForm
from tpcalc.theorems.integrable.paper import paper


class Told:
    """Records of closed forms and exponents, printed a line for each field."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = []
        for item in fields(self):  # type: ignore[arg-type]  # dataclasses inherit from this
            value = getattr(self, item.name)
            rows = value if isinstance(value, tuple) else (value,)
            if any(isinstance(row, Ex) for row in rows):
                lines.append(f"{item.name}: {', '.join(map(str, rows))}")
            else:
                lines += [str(row) for row in rows]
        return "\n".join(lines)


def closed(name: str, value: Bounded | float, formula: str, item: str) -> ClosedForm:
    """A number with its formula and its place in the paper."""
    return ClosedForm(name, bounded(value).estimate(), formula, paper(item))


def per_layer(
    name: str, values: Iterable[Bounded], formula: str, item: str, first: int = 1
) -> tuple[ClosedForm, ...]:
    """One number for each layer."""
    return tuple(
        closed(f"{name}_{layer}", value, formula, item) for layer, value in enumerate(values, first)
    )
