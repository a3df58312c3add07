"""Bounds on functions by their form alone."""

from __future__ import annotations

from math import inf, prod

from tpcalc.functions.expr import Add, Call, Const, Expr, Mul, Pow, Var

__all__ = ["grows_slowly", "least"]


def least(expr: Expr) -> float:
    """A number that an expression is nowhere below; minus infinity where its form shows none.

    Args:
        expr: The expression.

    Example:
        >>> least(2 * Var(0) ** 2 + 3), least(Var(0) ** 3)
        (3.0, -inf)
    """
    if isinstance(expr, Const):
        return float(expr.value)
    if isinstance(expr, Add):
        return sum(map(least, expr.terms))
    if isinstance(expr, Mul):
        factors = [least(factor) for factor in expr.factors]
        return prod(factors) if min(factors) >= 0 else -inf
    if isinstance(expr, Call):
        return expr.atom.facts.least
    if isinstance(expr, Pow):
        base = least(expr.base)
        if base >= 0 and expr.exponent > 0:
            return float(base**expr.exponent)
        return 0.0 if base >= 0 or expr.exponent % 2 == 0 else -inf
    return -inf


def grows_slowly(expr: Expr) -> bool:
    """Whether a function grows no faster than its arguments, so that its exponential has a mean.

    Args:
        expr: The function, of Gaussians.

    Example:
        >>> grows_slowly(2 * Var(0) + 1), grows_slowly(Var(0) ** 2)
        (True, False)
    """
    if isinstance(expr, Add):
        return all(map(grows_slowly, expr.terms))
    if isinstance(expr, Mul):
        rest = [factor for factor in expr.factors if not isinstance(factor, Const)]
        return len(rest) == 1 and grows_slowly(rest[0])
    if isinstance(expr, Pow):
        return 0 < expr.exponent <= 1 and grows_slowly(expr.base)
    if isinstance(expr, Call):
        growth = expr.atom.facts.growth
        return growth == 0 or (growth is not None and growth <= 1 and grows_slowly(expr.arg))  # type: ignore[operator]
    return isinstance(expr, Const | Var)
