"""Expressions that are polynomials of their argument: their exact coefficients."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isfinite

from tpcalc.functions import Call, Const, Expr, Fn, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.tape import evaluate

Coefficients = tuple[Fraction, ...]
HIGHEST = 40  # degree


@lru_cache(maxsize=4096)
def coefficients(expr: Expr) -> Coefficients | None:
    """The coefficients of a polynomial in ``Var(0)``, constant term first.

    Example:
        >>> [str(c) for c in coefficients((Var(0) - 1) ** 2)]
        ['1', '-2', '1']
    """
    if isinstance(expr, Const):
        return (Fraction(expr.value),)
    if isinstance(expr, Var):
        return (Fraction(0), Fraction(1)) if expr.index == 0 else None
    if isinstance(expr, Add):
        return _sum(expr)
    if isinstance(expr, Mul):
        total: Coefficients | None = (Fraction(1),)
        for factor in expr.factors:
            found = coefficients(factor)
            total = None if found is None or total is None else _times(total, found)
        return total
    if isinstance(expr, Pow):
        return _power(expr)
    if isinstance(expr, Call):
        inner = coefficients(expr.arg)
        return _constant(expr) if inner is not None and len(inner) == 1 else None
    return None


def _constant(expr: Expr) -> Coefficients | None:
    value = float(evaluate(Fn(expr, 1), [0.0]))
    return (Fraction(value),) if isfinite(value) else None


def _sum(expr: Add) -> Coefficients | None:
    total: list[Fraction] = []
    for term in expr.terms:
        found = coefficients(term)
        if found is None:
            return None
        total.extend([Fraction(0)] * (len(found) - len(total)))
        for degree, number in enumerate(found):
            total[degree] += number
    return _trimmed(total)


def _power(expr: Pow) -> Coefficients | None:
    base = coefficients(expr.base)
    if base is None:
        return None
    if len(base) == 1:
        return _constant(expr)
    if expr.exponent.denominator != 1 or not 0 <= expr.exponent <= HIGHEST:
        return None
    total: Coefficients | None = (Fraction(1),)
    for _ in range(int(expr.exponent)):
        total = None if total is None else _times(total, base)
    return total


def _times(left: Coefficients, right: Coefficients) -> Coefficients | None:
    if len(left) + len(right) - 2 > HIGHEST:
        return None
    out = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            out[i + j] += a * b
    return _trimmed(out)


def _trimmed(numbers: list[Fraction]) -> Coefficients:
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def shifted(numbers: Coefficients, x: Fraction) -> Coefficients:
    """The coefficients around another point: p(x + t) in powers of t."""
    out = list(numbers)
    for start in range(len(out)):
        for k in range(len(out) - 2, start - 1, -1):
            out[k] += x * out[k + 1]
    return tuple(out)
