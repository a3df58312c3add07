"""Homogeneity read off an expression: tau(c s) = c^p tau(s) for every c > 0."""

from __future__ import annotations

from fractions import Fraction
from numbers import Rational

from tpcalc.functions import Call, Expr, Var
from tpcalc.functions.expr import Add, Const, Mul, Pow, add

__all__ = ["degree", "varying"]


def degree(expr: Expr) -> Fraction | None:
    """The p with f(c s) = c^p f(s) for every c > 0; None where none is seen.

    Args:
        expr: A function of ``Var(0)``.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> degree(2 * lookup("relu").fn.expr), degree(lookup("tanh").fn.expr)
        (Fraction(1, 1), None)
    """
    if isinstance(expr, Var):
        return Fraction(1)
    if isinstance(expr, Const):
        return Fraction(0)
    if isinstance(expr, Call):
        own, inner = expr.atom.facts.homogeneity, degree(expr.arg)
        if not isinstance(own, Rational) or inner is None or inner == 0:
            return None
        return Fraction(int(own.numerator), int(own.denominator)) * inner
    if isinstance(expr, Pow):
        below = degree(expr.base)
        return None if below is None else below * expr.exponent
    if isinstance(expr, Mul):
        return _sum([degree(factor) for factor in expr.factors])
    if isinstance(expr, Add):
        found = {degree(term) for term in expr.terms}
        return found.pop() if len(found) == 1 else None
    return None


def varying(tau: Expr) -> Expr:
    """A function without its constant term.

    Args:
        tau: A function of ``Var(0)``.

    Example:
        >>> varying(Var(0) ** 2 - 1).text
        'x0**2'
    """
    if not isinstance(tau, Add):
        return tau
    return add(term for term in tau.terms if not isinstance(term, Const))


def _sum(parts: list[Fraction | None]) -> Fraction | None:
    total = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total
