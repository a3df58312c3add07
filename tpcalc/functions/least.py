"""Lower bounds on functions by their form alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from math import inf, isfinite

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Par, Pow, Var, const
from tpcalc.functions.fn import Fn
from tpcalc.functions.tape import evaluate

Range = tuple[float, float]
HERE = Var(0)


def least(expr: Expr) -> float:
    """A number that an expression is nowhere below; minus infinity where its form shows none.

    Example:
        >>> from tpcalc.functions import Var
        >>> least(2 * Var(0) ** 2 + 3), least(Var(0) ** 3)
        (3.0, -inf)
    """
    return _range(expr)[0]


def is_bounded(expr: Expr) -> bool:
    """Whether the form of an expression shows that it is bounded."""
    low, high = _range(expr)
    return isfinite(low) and isfinite(high)


@lru_cache(maxsize=2**12)
def _range(expr: Expr) -> Range:
    """Numbers that an expression is nowhere below and nowhere above."""
    if isinstance(expr, Const):
        return float(expr.value), float(expr.value)
    if isinstance(expr, Add):
        lows, highs = zip(*map(_range, expr.terms), strict=True)
        return sum(lows), sum(highs)
    if isinstance(expr, Mul):
        return reduce(_product, map(_range, expr.factors))
    if isinstance(expr, Pow):
        return _power(*_range(expr.base), float(expr.exponent))
    return _call(expr) if isinstance(expr, Call) else (-inf, inf)


def _product(left: Range, right: Range) -> Range:
    ends = [x * y if x and y else 0.0 for x in left for y in right]
    return min(ends), max(ends)


def _power(low: float, high: float, exponent: float) -> Range:
    if low < 0:
        if exponent % 2:
            return -inf, inf
        low, high = 0.0, max(-low, high)
    ends = sorted(_raised(end, exponent) for end in (low, high))
    return ends[0], ends[1]


def _raised(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return inf


def _call(expr: Call) -> Range:
    """Of a function by what is known of it; of one that rises also by the range of its argument."""
    facts, (low, high) = expr.atom.facts, _range(expr.arg)
    least, most = facts.least, -facts.least if facts.parity == "odd" else inf
    rises = (isfinite(low) or isfinite(high)) and expr.atom.derivative is not None
    if rises and facts.analytic and _range(expr.atom.differentiate(HERE))[0] >= 0:
        ends = [float(evaluate(Fn(expr.atom(const(x)), 0), [])) if isfinite(x) else x
                for x in (low, high)]  # fmt: skip
        least, most = max(least, ends[0]), min(most, ends[1])
    return least, most


def is_tame(
    expr: Expr,
    linear: Callable[[Expr], bool],
    known: Callable[[Var | Par], bool] = lambda argument: False,
) -> bool:
    """Whether an expression is positive and its inverse has all moments, by its form.

    Example:
        >>> from tpcalc.functions import Var
        >>> is_tame(2 + Var(0) ** 2, lambda part: True), is_tame(Var(0) ** 2, lambda part: True)
        (True, False)
    """
    if least(expr) > 0:
        return True
    if isinstance(expr, Add):
        tame = [is_tame(term, linear, known) for term in expr.terms]
        return any(tame) and all(map(lambda own, term: own or least(term) >= 0, tame, expr.terms))
    if isinstance(expr, Mul):
        return all(is_tame(factor, linear, known) for factor in expr.factors)
    if isinstance(expr, Call):
        return expr.atom.facts.tame and linear(expr.arg)
    if isinstance(expr, Pow):
        return is_tame(expr.base, linear, known)
    return isinstance(expr, Var | Par) and known(expr)
