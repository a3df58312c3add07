"""Lower bounds on functions by their form alone."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

from tpcalc.functions.expr import Add, Call, Const, Expr, Mul, Pow

__all__ = ["is_tame", "least"]


def least(expr: Expr) -> float:
    """A number that an expression is nowhere below; minus infinity where its form shows none.

    Args:
        expr: The expression.

    Example:
        >>> from tpcalc.functions import Var
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


def is_tame(expr: Expr, linear: Callable[[Expr], bool]) -> bool:
    """Whether an expression is positive and its inverse has all moments, by its form.

    Args:
        expr: The expression.
        linear: Whether an expression grows at most linearly in Gaussians.

    Example:
        >>> from tpcalc.functions import Var
        >>> is_tame(2 + Var(0) ** 2, lambda part: True), is_tame(Var(0) ** 2, lambda part: True)
        (True, False)
    """
    if least(expr) > 0:
        return True
    if isinstance(expr, Add):
        return least(expr) >= 0 and any(is_tame(term, linear) for term in expr.terms)
    if isinstance(expr, Mul):
        return all(is_tame(factor, linear) for factor in expr.factors)
    if isinstance(expr, Call):
        return expr.atom.facts.tame and linear(expr.arg)
    return isinstance(expr, Pow) and is_tame(expr.base, linear)
