"""Periods of functions by their form alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Pow, Var


def period(expr: Expr) -> float | None:
    """A period of a function of ``Var(0)``; 0 for a constant, None where its form shows none.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> from tpcalc.functions.expr import substitute
        >>> wave = lookup("sawtooth").fn.expr
        >>> period(wave), period(2 - substitute(wave, {Var(0): 8 * Var(0) + 1})), period(Var(0))
        (4.0, 0.5, None)
    """
    if isinstance(expr, Const):
        return 0.0
    if isinstance(expr, Add | Mul):
        return _common(expr.terms if isinstance(expr, Add) else expr.factors)
    if isinstance(expr, Pow):
        return period(expr.base)
    if isinstance(expr, Call):
        own, inner, slope = expr.atom.facts.period, period(expr.arg), _slope(expr.arg)
        return own / abs(slope) if inner is None and own is not None and slope else inner
    return None


def _common(parts: Iterable[Expr]) -> float | None:
    found = {period(part) for part in parts} - {0.0}
    return found.pop() if len(found) == 1 else None if found else 0.0


def _slope(expr: Expr) -> float:
    """Of d s + h; 0 where an expression is not of this form."""
    if isinstance(expr, Var):
        return 1.0
    if isinstance(expr, Add):
        moving = [term for term in expr.terms if not isinstance(term, Const)]
        return _slope(moving[0]) if len(moving) == 1 else 0.0
    if isinstance(expr, Mul):
        moving = [factor for factor in expr.factors if not isinstance(factor, Const)]
        if len(moving) != 1:
            return 0.0
        scale = prod(float(factor.value) for factor in expr.factors if isinstance(factor, Const))
        return scale * _slope(moving[0])
    return 0.0
