"""Quotients m / sqrt(v) in series: v is a sum of squares of what m is a sum of.

The factors of such a quotient have no bound one by one: where v is small, the inverse of its root
is large. Together they are of degree 0 and bounded, and vary as a jump does where all vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tpcalc.exponents.chamber import minus, plus
from tpcalc.functions.expr import Const, Expr, Var, add, const, mul, walk
from tpcalc.functions.form import Quotient, reciprocal
from tpcalc.functions.indicator import AT_ZERO, hidden
from tpcalc.limit.series import (
    DENSE,
    ZERO,
    Asked,
    Rest,
    Series,
    Setting,
    Terms,
    is_null,
    multiplied,
    summed,
)
from tpcalc.limit.taylor import flips

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _Part:
    """An argument, its series, and the numbers in front of it and of its square."""

    root: Expr
    series: Terms
    linear: Expr
    square: Expr

    def after(self, leading: bool, setting: Setting) -> _Part:
        """What is left of it where the leading term is 0: of a gate that is shut no rest."""
        terms = self.series.terms[1:] if leading else self.series.terms
        rest = self.series.rest
        if rest is not None and isinstance(self.root, Var):
            rest = None if setting.ask(Asked("gated", self.root)) else rest
        return replace(self, series=Series(terms, rest))


def divided(quotient: Quotient, expand: Callable[[Expr], Terms], setting: Setting) -> Terms | None:
    """The series of a quotient; None where what is added to the root is not small beside it."""
    parts = [_Part(root, expand(root), const(b), const(a)) for root, b, a in quotient.parts]
    sizes = [part.series.lead for part in parts if not part.series.is_zero]
    if quotient.shift == const(0):
        return _ratio(parts, None, setting)
    sign = setting.ranking.chamber.sign
    if any(size is None for size in sizes):
        return Series((), Rest(ZERO))
    if not any(size is not None and sign(size) > 0 for size in sizes):
        return None
    return _ratio(parts, Rest(ZERO), setting)


def _ratio(parts: Sequence[_Part], beside: Rest | None, setting: Setting) -> Terms:
    """The quotient of some series, of which the largest ones lead."""
    ranking = setting.ranking
    sign = ranking.chamber.sign
    parts = [part for part in parts if not part.series.is_zero]
    if not parts:
        return Series(())
    if not all(part.series.terms for part in parts):
        return Series((), Rest(ZERO))  # it is bounded
    size = parts[0].series.terms[0][0]
    for part in parts[1:]:
        power = part.series.terms[0][0]
        size = power if sign(minus(power, size)) > 0 else size
    parts = [replace(part, series=part.series.shift(minus(ZERO, size))) for part in parts]
    first = [part for part in parts if sign(part.series.terms[0][0]) == 0]
    drift: Rest | None = None
    moved = None if beside is None else beside.shift(minus(ZERO, size))
    for part in parts:
        left = Series(part.series.terms[part in first :], part.series.rest)
        moved = ranking.larger(moved, ranking.larger(ranking.bound(left), part.series.soft))
        drift = ranking.larger(drift, part.series.drift)
    leading = [(part, part.series.terms[0][1]) for part in first]
    clear = _clear([own for _, own in leading], setting)
    soft, drift = (None if b is None else flips(b, clear or 1, setting) for b in (moved, drift))
    squares = add(mul((part.square, own, own)) for part, own in leading)
    above = add(mul((part.linear, own)) for part, own in leading)
    value = mul((above, reciprocal(HALF)(squares)))
    terms = () if value == const(0) else ((ZERO, value),)
    whole: Terms = Series(terms, None, soft, drift)
    if clear:
        return whole
    later = [part.after(part in first, setting) for part in parts]
    hard: Rest | None = None
    for part in later:
        hard = ranking.larger(hard, ranking.bound(part.series))
    if hard is None:
        return whole
    for _, own in leading:  # where all are 0 the next order decides
        setting.ask(Asked("told", own))
    deep = ranking.depth and any(part.series.terms for part in later)
    there = None if beside is None or hard.power is None else sign(plus(hard.power, size))
    if there is not None and there < 0:  # what is added to the root is larger there
        return summed([whole, Series((), hard.shift(size))], setting)
    if not deep or there == 0:
        gate = mul((AT_ZERO(squares), hidden(next(setting.fresh))(squares)))
        return summed([whole, Series(((ZERO, gate),))], setting)
    near = None if beside is None else beside.shift(minus(ZERO, size))
    gated = multiplied(Series(((ZERO, AT_ZERO(squares)),)), _ratio(later, near, setting), setting)
    return summed([whole, *([] if is_null(gated) else [gated])], setting)


def _clear(leading: Sequence[Expr], setting: Setting) -> int:
    """Whether some leading argument is 0 with probability 0, and how sure that is."""
    for own in leading:
        varies = any(isinstance(part, Var) for part in walk(own))
        if not varies and not isinstance(own, Const):
            setting.ask(Asked("away", own))
        clear = setting.ask(Asked("clear", own)) if varies else DENSE
        if clear:
            return clear
    return 0
