"""Formulas: the same rules with sympy expressions, under a size budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc.functions import Call, Expr, Par
from tpcalc.functions.expr import substitute, walk
from tpcalc.functions.symbolic import to_sympy
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.exact import formula, supported
from tpcalc.integrals.recognise import exactly, recognised, with_fractions

BUDGET = 120  # operations of a formula: what a page can show
DIGITS = 16  # of the numerator and denominator of a number


@dataclass(frozen=True, slots=True)
class Symbolic:
    """Arithmetic of sympy expressions.

    Args:
        budget: Largest number of operations of a formula.

    Example:
        >>> half = Symbolic().number(Fraction(1, 2))
        >>> Symbolic().total([[half, half], [half]])
        3/4
    """

    budget: int = BUDGET

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
