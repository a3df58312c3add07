"""Formulas: the same rules with sympy expressions, under a size budget, and floats recognised.

Floats stand for what they are: the constants of activations, and short decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from tpcalc.functions import Call, Const, Expr, Par, const
from tpcalc.functions.expr import substitute, walk
from tpcalc.functions.symbolic import to_sympy
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.exact import formula, supported

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

    if not isfinite(value):
        raise Unknown(f"a number of it leaves the range of floats ({value})")
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


BUDGET = 120  # operations of a formula: what a page can show
DIGITS = 16  # of the numerator and denominator of a number


@dataclass(frozen=True, slots=True)
class Symbolic:
    """Arithmetic of sympy expressions.

    Example:
        >>> half = Symbolic().number(Fraction(1, 2))
        >>> Symbolic().total([[half, half], [half]])
        3/4
    """

    budget: int = BUDGET  # largest number of operations of a formula

    def number(self, value: Fraction | float) -> Any:
        """A given number, exactly."""
        import sympy

        if isinstance(value, float):
            return recognised(value)
        found = Fraction(value)
        if len(str(found)) > 2 * DIGITS:
            raise Unknown(f"the number {value} has too many digits for a formula")
        return sympy.Rational(found.numerator, found.denominator)

    def is_zero(self, value: Any) -> bool:
        """Whether a formula is the number 0."""
        return bool(value == 0)

    def total(self, terms: Sequence[Sequence[Any]]) -> Any:
        """The sum of products."""
        import sympy

        return self._fitting(sympy.Add(*(sympy.Mul(*factors) for factors in terms)))

    def function(self, expr: Expr, scalars: Mapping[int, Any]) -> Any:
        """A function of scalars.

        Args:
            expr: The function; ``Par(i)`` stands for ``scalars[i]``.
            scalars: The formulas.

        Raises:
            Unknown: It is too large, or has no sympy form.
        """
        own = [part for part in dict.fromkeys(walk(expr)) if isinstance(part, Par)]
        if any(isinstance(part, Call) and part.atom.sympy is None for part in walk(expr)):
            raise Unknown(f"{expr.text} has no formula")
        plain = substitute(expr, {part: Par(i) for i, part in enumerate(own)})
        found = to_sympy(plain, [], [scalars[part.index] for part in own])
        return self._fitting(exactly(found))

    def integral(
        self, factors: Sequence[Expr], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
    ) -> Any:
        """E of a product of functions of one Gaussian each."""
        if not supported(tuple(factors)):
            raise Unknown("an integral without closed form")
        found = formula([with_fractions(factor) for factor in factors], mean, cov)
        if found is None:
            raise Unknown("an integral without closed form")
        return self._fitting(exactly(found))

    def _fitting(self, found: Any) -> Any:
        if found.is_Rational:
            return self.number(Fraction(int(found.p), int(found.q)))
        if found.count_ops() > self.budget:
            raise Unknown("a formula that does not fit")
        return found
