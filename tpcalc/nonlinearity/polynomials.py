"""Polynomials of several numbers with exact coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from tpcalc.functions import Const, Expr, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul

MOST_TERMS = 20_000
MOST_POWER = 64


def polynomial(expr: Expr, size: int) -> Any:
    """A formula of x0, ... as an element of a ring of polynomials; None where it is none."""
    import sympy

    ring, *numbers = sympy.ring([f"x{index}" for index in range(size)], sympy.QQ)
    return _read(expr, ring, numbers)


def _read(expr: Expr, ring: Any, numbers: Sequence[Any]) -> Any:
    if isinstance(expr, Const):
        return ring(fraction(Fraction(expr.value)))
    if isinstance(expr, Var):
        return numbers[expr.index]
    if isinstance(expr, Add):
        parts = [_read(term, ring, numbers) for term in expr.terms]
        return None if any(part is None for part in parts) else sum(parts, ring.zero)
    if isinstance(expr, Mul):
        return _product((_read(factor, ring, numbers) for factor in expr.factors), ring.one)
    if isinstance(expr, Pow) and expr.exponent.denominator == 1 and 0 < expr.exponent <= MOST_POWER:
        return _product([_read(expr.base, ring, numbers)] * int(expr.exponent), ring.one)
    return None


def _product(factors: Iterable[Any], total: Any) -> Any:
    for factor in factors:
        if factor is None or len(total) * len(factor) > MOST_TERMS:
            return None
        total = total * factor
    return total


def fraction(value: Fraction) -> Any:
    """A number as coefficients have it."""
    import sympy

    return sympy.QQ(value.numerator, value.denominator)


def expanded(expr: Expr, size: int) -> Expr:
    """A polynomial written as a sum of monomials; another formula as it is."""
    found = polynomial(expr, size)
    if found is None:
        return expr
    return add(
        mul((const(exact(value)), *(Var(i) ** power for i, power in enumerate(powers))))
        for powers, value in found.terms()
    )


def exact(value: Any) -> Fraction:
    """A coefficient as a fraction."""
    return Fraction(int(value.numerator), int(value.denominator))
