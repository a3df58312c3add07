"""Other arguments in an expression, which stays in its normal form where that is seen at once."""

from __future__ import annotations

from collections.abc import Mapping

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Pow, substitute


def renamed(expr: Expr, names: Mapping[Expr, Expr]) -> Expr:
    """Replace all arguments by other arguments, no two by one.

    Where these sort as the others did, nothing changes its place, and nothing is normalised again.

    Example:
        >>> from tpcalc.functions.expr import Var
        >>> renamed(Var(7) * Var(3), {Var(3): Var(0), Var(7): Var(1)}).text
        'x0*x1'
    """
    texts = [names[one].text for one in sorted(names, key=lambda one: one.text)]
    return _relabelled(expr, names) if texts == sorted(texts) else substitute(expr, names)


def _relabelled(expr: Expr, names: Mapping[Expr, Expr]) -> Expr:
    if isinstance(expr, Mul):
        return Mul(tuple([_relabelled(factor, names) for factor in expr.factors]))
    if isinstance(expr, Add):
        return Add(tuple([_relabelled(term, names) for term in expr.terms]))
    if isinstance(expr, Pow):
        return Pow(_relabelled(expr.base, names), expr.exponent)
    if isinstance(expr, Call):
        return expr.atom(_relabelled(expr.arg, names))
    return expr if isinstance(expr, Const) else names[expr]
