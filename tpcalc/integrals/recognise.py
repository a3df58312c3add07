"""Floats in formulas: the constants of activations, and short decimals, as what they stand for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.functions import Const, Expr, const
from tpcalc.functions.expr import substitute, walk
from tpcalc.integrals.demand import Unknown

SHORT = 8  # digits of a decimal that was written by hand
CLOSE = 8 * 2.0**-52  # relative: a product of a few rounded constants
COUNTS = 24  # numerators and denominators in front of a constant


def recognised(value: float) -> Any:
    """A float as a sympy number.

    A dyadic number of few bits and a short decimal stand for themselves; otherwise a small rational
    times sqrt(2), sqrt(3), pi and its roots, which derivatives of erf and of the normal
    distribution function bring in as floats.

    Example:
        >>> recognised(0.1), recognised(2 / 3.141592653589793**0.5)
        (1/10, 2/sqrt(pi))
    """
    import sympy

    dyadic = Fraction(value)
    if dyadic.denominator <= 2**12 and abs(dyadic.numerator) < 2**24:
        return sympy.Rational(dyadic.numerator, dyadic.denominator)
    digits = repr(value).split("e")[0].replace(".", "").strip("-0")
    if len(digits) <= SHORT:
        return sympy.Rational(repr(value))
    two, three, pi = sympy.sqrt(2), sympy.sqrt(3), sympy.pi
    for root in (sympy.Integer(1), two, three):
        for power in (0, 1, -1, 2, -2, 4, -4):
            constant = root * sympy.sqrt(pi) ** power
            ratio = value / float(constant)
            near = Fraction(ratio).limit_denominator(COUNTS)
            # A rational must be hit exactly: 1 - 1e-15 may be a correlation, and is not 1.
            close = 0.0 if constant == 1 else CLOSE * abs(ratio)
            small = abs(near.numerator) <= COUNTS and near != 0
            if small and abs(float(near) - ratio) <= close:
                return constant * sympy.Rational(near.numerator, near.denominator)
    raise Unknown(f"the number {value} has too many digits for a formula")


def exactly(expression: Any) -> Any:
    """A sympy expression with its floats recognised."""
    import sympy

    floats = expression.atoms(sympy.Float)
    return expression.xreplace({number: recognised(float(number)) for number in floats})


def with_fractions(expr: Expr) -> Expr:
    """An expression in which floats that stand for rational numbers are these.

    Example:
        >>> from tpcalc.functions import Var
        >>> with_fractions(0.3 * Var(0)).text
        '3/10*x0'
    """
    numbers: dict[Expr, Expr] = {}
    for part in walk(expr):
        if isinstance(part, Const) and isinstance(part.value, float):
            found = recognised(part.value)
            if found.is_Rational:
                numbers[part] = const(Fraction(int(found.p), int(found.q)))
    return substitute(expr, numbers) if numbers else expr
