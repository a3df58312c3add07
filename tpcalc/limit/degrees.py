"""Polynomial bounds: of which degree a limit variable is in Gaussians of finite variance.

Such a variable has finite moments of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from tpcalc.functions import Call, Const, Expr, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.reciprocal import quotient
from tpcalc.limit.expand import is_positive
from tpcalc.orders import Ex

__all__ = ["Degree", "degree_of", "degree_sum", "largest_degree", "of_forms"]

Degree = Fraction | None  # None: no polynomial bound is known
ZERO = Fraction(0)


def degree_of(
    expr: Expr,
    vectors: Sequence[Degree],
    scalars: Sequence[Degree],
    number: Callable[[Ex], Fraction | None] = lambda power: power.constant,
) -> Degree:
    """The degree of a function of variables whose degrees are known.

    Args:
        expr: The function.
        vectors: Degrees of ``Var(0)``, ``Var(1)``, ...
        scalars: Degrees of ``Par(0)``, ...
        number: The value of a power that holds symbols.

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
    inside = expr.base if isinstance(expr, Pow) else expr.arg
    if isinstance(expr, Pow) and expr.exponent < 0 and is_positive(inside):
        return ZERO
    inner = degree_of(inside, vectors, scalars, number)
    if inner is None or inner == 0:  # of a number any function is a number
        return inner
    if isinstance(expr, Pow):
        return inner * expr.exponent if expr.exponent > 0 else None
    growth = expr.atom.facts.growth
    if isinstance(growth, Ex):
        growth = number(growth)
    if isinstance(growth, Fraction):
        return inner * growth
    return ZERO if _decays(expr) else None


def _decays(expr: Call) -> bool:
    """Whether this is exp of minus an even power."""
    if expr.atom.name != "exp" or not isinstance(expr.arg, Mul):
        return False
    numbers = [f for f in expr.arg.factors if isinstance(f, Const)]
    powers = [f for f in expr.arg.factors if isinstance(f, Pow) and f.exponent % 2 == 0]
    negative = len(numbers) == 1 and numbers[0].value < 0
    return negative and len(powers) + 1 == len(expr.arg.factors)


def of_forms(rows: Sequence[Degree], cols: Sequence[Degree], forms: Sequence[int]) -> list[Degree]:
    """The degrees of the arguments of an outer function: of rows and columns, or of forms.

    Args:
        rows: The degrees of its rows.
        cols: Of its columns.
        forms: For each pair the form; () where rows and columns are the arguments themselves.
    """
    if not forms:
        return [*rows, *cols]
    pairs = [degree_sum(pair) for pair in zip(rows, cols, strict=True)]
    return [
        largest_degree(degree for degree, own in zip(pairs, forms, strict=True) if own == form)
        for form in range(max(forms) + 1)
    ]


def largest_degree(degrees: Iterable[Degree]) -> Degree:
    """The degree of a sum.

    Args:
        degrees: Of its terms.

    Example:
        >>> largest_degree([Fraction(1), Fraction(2)])
        Fraction(2, 1)
    """
    found = ZERO
    for degree in degrees:
        if degree is None:
            return None
        found = max(found, degree)
    return found


def degree_sum(degrees: Iterable[Degree]) -> Degree:
    """The degree of a product.

    Args:
        degrees: Of its factors.

    Example:
        >>> degree_sum([Fraction(1), Fraction(2)])
        Fraction(3, 1)
    """
    found = ZERO
    for degree in degrees:
        if degree is None:
            return None
        found += degree
    return found
