"""Polynomials of several numbers with exact coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

from tpcalc.functions import Const, Expr, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul

Powers = tuple[int, ...]
Polynomial = dict[Powers, Fraction]  # no coefficient is 0

MOST_TERMS = 20_000


def terms(expr: Expr, size: int) -> Polynomial | None:
    """The coefficients of a formula of x0, ..., x_{size-1}; None where it is no polynomial."""
    if isinstance(expr, Const):
        return added({}, {(0,) * size: Fraction(expr.value)})
    if isinstance(expr, Var):
        return {unit(size, expr.index): Fraction(1)}
    if isinstance(expr, Add):
        parts = [terms(term, size) for term in expr.terms]
        total: Polynomial = {}
        for part in parts:
            if part is None:
                return None
            total = added(total, part)
        return total
    if isinstance(expr, Mul):
        return _product([terms(factor, size) for factor in expr.factors], size)
    if isinstance(expr, Pow) and expr.exponent.denominator == 1 and 0 < expr.exponent <= 64:
        return _product([terms(expr.base, size)] * int(expr.exponent), size)
    return None


def _product(factors: Sequence[Polynomial | None], size: int) -> Polynomial | None:
    total: Polynomial = {(0,) * size: Fraction(1)}
    for factor in factors:
        if factor is None or len(total) * len(factor) > MOST_TERMS:
            return None
        total = multiplied(total, factor)
    return total


def expanded(expr: Expr, size: int) -> Expr:
    """A polynomial written as a sum of monomials; another formula as it is."""
    found = terms(expr, size)
    if found is None:
        return expr
    return add(
        mul((const(value), *(Var(i) ** power for i, power in enumerate(powers))))
        for powers, value in found.items()
    )


def unit(size: int, index: int) -> Powers:
    """The powers of one of the numbers."""
    return tuple(int(place == index) for place in range(size))


def added(left: Mapping[Powers, Fraction], right: Mapping[Powers, Fraction]) -> Polynomial:
    """A sum."""
    out = dict(left)
    for powers, value in right.items():
        out[powers] = out.get(powers, Fraction(0)) + value
    return {powers: value for powers, value in out.items() if value}


def multiplied(left: Mapping[Powers, Fraction], right: Mapping[Powers, Fraction]) -> Polynomial:
    """A product."""
    out: Polynomial = {}
    for (p, a), (q, b) in product(left.items(), right.items()):
        powers = tuple(i + j for i, j in zip(p, q, strict=True))
        out[powers] = out.get(powers, Fraction(0)) + a * b
    return {powers: value for powers, value in out.items() if value}


def composed(poly: Mapping[Powers, Fraction], forms: Sequence[Polynomial]) -> Polynomial:
    """A polynomial of other polynomials."""
    out: Polynomial = {}
    for powers, value in poly.items():
        term: Polynomial = {(0,) * len(forms): value}
        for form, power in zip(forms, powers, strict=True):
            for _ in range(power):
                term = multiplied(term, form)
        out = added(out, term)
    return out
