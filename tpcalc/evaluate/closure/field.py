"""What a closure computes with: numbers with errors, or formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from tpcalc.functions import Expr

__all__ = ["Field"]

T = TypeVar("T")


class Field(Protocol[T]):
    """Operations on the scalars of a limit graph.

    ``numeric.Numeric`` computes with arrays and error bounds, ``symbolic.Symbolic`` with sympy.
    Each operation raises ``Unknown`` where it has no answer.

    Example:
        >>> from tpcalc.evaluate.closure.numeric import Numeric
        >>> Numeric().number(Fraction(1, 2)).value
        0.5
    """

    def number(self, value: Fraction | float) -> T:
        """A given number."""
        ...

    def is_zero(self, value: T) -> bool:
        """Whether a value is 0 by structure, not by rounding."""
        ...

    def total(self, terms: Sequence[Sequence[T]]) -> T:
        """The sum of products."""
        ...

    def function(self, expr: Expr, scalars: Mapping[int, T]) -> T:
        """A function of scalars; ``Par(i)`` stands for ``scalars[i]``."""
        ...

    def integral(self, factors: Sequence[Expr], mean: Sequence[T], cov: Sequence[Sequence[T]]) -> T:
        """E of a product of functions of one Gaussian each."""
        ...
