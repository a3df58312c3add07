"""Quotients m / sqrt(v) in series: v is a sum of squares of what m is a sum of.

The factors of such a quotient have no bound one by one: where v is small, the inverse of its root
is large. Together they are of degree 0 and bounded, and vary as a jump does where all vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tpcalc.functions.expr import Const, Expr, mul
from tpcalc.functions.indicator import AT_ZERO, hidden
from tpcalc.functions.reciprocal import Quotient, reciprocal
from tpcalc.limit.algebra import ZERO, Asked, Setting, Terms, summed
from tpcalc.limit.series import Rest, Series
from tpcalc.limit.taylor import flips
from tpcalc.orders.chamber import Power, minus, times

__all__ = ["divided"]

HALF = Fraction(1, 2)


def divided(found: Quotient, expand: Callable[[Expr], Terms], setting: Setting) -> Terms | None:
    """The series of a quotient; None where what is added to the root is not small beside it.

    Args:
        found: The quotient.
        expand: The series of an expression.
        setting: Comparisons and facts about the arguments.
    """
    ranking = setting.ranking
    sign = ranking.chamber.sign
    below, above = expand(found.squares), expand(found.linear)
    shifted = found.shift != Const(ZERO)
    if below.is_zero:
        return Series(())
    if not below.terms:
        return None if shifted else Series((), Rest(ZERO))
    size = times(HALF, below.terms[0][0])  # of the largest argument
    if shifted and sign(size) <= 0:
        return None
    leading = [(power, item) for power, item in above.terms if sign(minus(power, size)) == 0]
    others = tuple(term for term in above.terms if term not in leading)
    moved = ranking.larger(
        ranking.bound(Series(others, above.rest, above.soft).shift(minus(ZERO, size))),
        ranking.bound(
            Series(below.terms[1:], below.rest, below.soft).shift(minus(ZERO, below.terms[0][0]))
        ),
    )
    if shifted:
        moved = ranking.larger(moved, Rest(minus(ZERO, size)))
    drift = ranking.larger(
        above.shift(minus(ZERO, size)).drift, below.shift(minus(ZERO, below.terms[0][0])).drift
    )
    clear = _clear(found, size, expand, setting)
    squares = below.terms[0][1]
    inverse = reciprocal(HALF)(squares)
    terms = [(ZERO, mul((item, inverse))) for _, item in leading]
    soft, drift = (
        None if own is None else flips(own, clear or 1, setting) for own in (moved, drift)
    )
    value: Terms = Series(tuple(terms), None, soft, drift)
    if clear or moved is None:
        return value
    setting.ask(Asked("told", squares))  # there the next order decides
    gate = mul((AT_ZERO(squares), hidden(next(setting.fresh))(squares)))
    return summed([value, Series(((ZERO, gate),))], setting)


def _clear(found: Quotient, size: Power, expand: Callable[[Expr], Terms], setting: Setting) -> int:
    """Whether some leading argument is 0 with probability 0, and how sure that is."""
    for root in found.roots:
        series = expand(root)
        if series.terms and setting.ranking.chamber.sign(minus(series.terms[0][0], size)) == 0:
            clear = setting.ask(Asked("clear", series.terms[0][1]))
            if clear:
                return clear
    return 0
