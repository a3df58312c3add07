"""Derivations that follow terms down to a depth with symbols in it.

Where a small update and the fluctuations have powers that are independent symbols, no number of
powers of n takes in the update and leaves out its many copies of higher order: near the wall where
the update is no longer small their number grows without bound. The size of the update itself,
with its symbols, does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber, Power
from tpcalc.limit.claims import Record
from tpcalc.limit.context import Context
from tpcalc.limit.scales import Scales
from tpcalc.limit.series import Ranking, Rest
from tpcalc.program.program import Program


def follow(
    program: Program,
    values: Mapping[str, Fraction],
    at: Mapping[str, Fraction],
    depth: Power,
    record: Record | None = None,
) -> Scales:
    """Derive the size of outputs, as ``scales``.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4 and Theorem B.1.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layer(t):
        ...     g = t.gaussian("g")
        ...     h = g + tp.n ** -tp.symbol("a") * tp.relu(g)
        ...     t.output("change", h - g)
        >>> a = {"a": Fraction(1, 100)}
        >>> str(follow(layer.build(), {}, a, Ex.symbol("a")).scale("change").power)
        '-a'
    """
    chamber = Chamber(at)
    ranking = (
        Ranking(chamber, depth)
        if isinstance(depth, Fraction)
        else _Ranking(chamber, cast("Fraction", _Depth(depth.terms)))
    )
    context = Context(program, ranking=ranking, values=dict(values), record=record or Record())
    return Scales(program, context)


@dataclass(frozen=True)
class _Depth(Ex):
    """A positive power with symbols."""

    def __gt__(self, other: object) -> bool:
        return True


class _Ranking(Ranking):
    """Numbers are compared with a depth that is none through the chamber."""

    def _numbers(self, terms: Iterable[Power]) -> tuple[list[list[Power]], Rest | None]:
        return self._symbols(terms)
