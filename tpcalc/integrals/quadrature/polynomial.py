"""Expressions that are polynomials of their argument: their coefficients."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isfinite

from tpcalc.functions import Const, Expr
from tpcalc.integrals.exact.piece import PLAIN, Unsupported, level
from tpcalc.integrals.exact.pieces import decompose

Coefficients = tuple[Fraction, ...]


@lru_cache(maxsize=4096)
def coefficients(expr: Expr) -> Coefficients | None:
    """The coefficients of a polynomial in ``Var(0)``, constant term first; None where it is none.

    Example:
        >>> from tpcalc.functions import Var
        >>> [str(c) for c in coefficients((Var(0) - 1) ** 2)]
        ['1', '-2', '1']
    """
    try:
        pieces = decompose(expr)
    except Unsupported:
        return None
    found = pieces.get(PLAIN, {})
    numbers = [_number(found.get(degree)) for degree in range(max(found, default=0) + 1)]
    if set(pieces) - {PLAIN} or not all(map(isfinite, numbers)):
        return None
    return tuple(Fraction(number) for number in numbers)


def _number(coefficient: Expr | None) -> Fraction | float:
    if coefficient is None:
        return 0.0
    return coefficient.value if isinstance(coefficient, Const) else level(coefficient)


def shifted(numbers: Coefficients, x: Fraction) -> Coefficients:
    """The coefficients around another point: p(x + t) in powers of t."""
    out = list(numbers)
    for start in range(len(out)):
        for k in range(len(out) - 2, start - 1, -1):
            out[k] += x * out[k + 1]
    return tuple(out)
