"""Bounds: of which degree a limit variable is in Gaussians of finite variance.

A variable that has one has finite moments of every order; an infinite degree says that it has them,
though no polynomial bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import inf

from tpcalc.exponents import Ex
from tpcalc.functions import Call, Const, Expr, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, walk
from tpcalc.functions.form import is_bounded, least, quotient

Degree = Fraction | float | None  # None: no bound is known; inf: all moments exist
ZERO = Fraction(0)


def degree_of(
    expr: Expr,
    vectors: Sequence[Degree],
    scalars: Sequence[Degree],
    number: Callable[[Ex], Fraction | None] = lambda power: power.constant,
) -> Degree:
    """The degree of a function of variables whose degrees are known.

    Example:
        >>> degree_of(Var(0) ** 2 * Var(1), [Fraction(1), Fraction(3)], [])
        Fraction(5, 1)
    """
    if isinstance(expr, Const):
        return ZERO
    if isinstance(expr, Var | Par):
        return vectors[expr.index] if isinstance(expr, Var) else scalars[expr.index]
    if isinstance(expr, Add):
        return largest_degree(degree_of(term, vectors, scalars, number) for term in expr.terms)
    if isinstance(expr, Mul):
        bounded = quotient(expr)
        if bounded is not None:
            return degree_sum(degree_of(p, vectors, scalars, number) for p in bounded.others)
        return degree_sum(degree_of(part, vectors, scalars, number) for part in expr.factors)
    assert isinstance(expr, Pow | Call)

    def of(part: Expr) -> Degree:
        return degree_of(part, vectors, scalars, number)

    inside = expr.base if isinstance(expr, Pow) else expr.arg
    own = [part for part in walk(inside) if isinstance(part, Var | Par)]
    if all(isinstance(part, Par) and scalars[part.index] == 0 for part in own):
        return ZERO  # of a number any function is a number
    if isinstance(expr, Pow):
        return _power(expr, of)
    growth = expr.atom.facts.growth
    found = number(growth) if isinstance(growth, Ex) else growth
    return _times(of(inside), found) if isinstance(found, Fraction) else _without_growth(expr, of)


def _times(inner: Degree, growth: Fraction) -> Degree:
    return ZERO if growth == 0 else None if inner is None or growth < 0 else inner * growth


def _power(expr: Pow, of: Callable[[Expr], Degree]) -> Degree:
    """Powers below 0 are taken of what is not near 0 alone, so that all their moments exist."""
    if expr.exponent > 0:
        return _times(of(expr.base), expr.exponent)
    return ZERO if least(expr.base) > 0 else inf


def _without_growth(expr: Call, of: Callable[[Expr], Degree]) -> Degree:
    """The degree of a function that is bounded by no power of its argument."""
    if is_bounded(expr):
        return ZERO
    inner, order = of(expr.arg), expr.atom.facts.order
    if order == 0:
        return inner if least(expr.arg) > 0 else None
    return inf if order and inner is not None and order * inner < 2 else None


def of_forms(rows: Sequence[Degree], cols: Sequence[Degree], forms: Sequence[int]) -> list[Degree]:
    """The degrees of the arguments of an outer function: of rows and columns, or of forms."""
    if not forms:
        return [*rows, *cols]
    pairs = [degree_sum(pair) for pair in zip(rows, cols, strict=True)]
    return [
        largest_degree(degree for degree, own in zip(pairs, forms, strict=True) if own == form)
        for form in range(max(forms) + 1)
    ]


def largest_degree(degrees: Iterable[Degree]) -> Degree:
    """The degree of a sum.

    Example:
        >>> largest_degree([Fraction(1), Fraction(2)])
        Fraction(2, 1)
    """
    found: Fraction | float = ZERO
    for degree in degrees:
        if degree is None:
            return None
        found = max(found, degree)
    return found


def degree_sum(degrees: Iterable[Degree]) -> Degree:
    """The degree of a product.

    Example:
        >>> degree_sum([Fraction(1), Fraction(2)])
        Fraction(3, 1)
    """
    found: Fraction | float = ZERO
    for degree in degrees:
        if degree is None:
            return None
        found += degree
    return found
