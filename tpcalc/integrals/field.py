"""What a closure computes with: numbers with errors, or formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from tpcalc.functions import Expr
from tpcalc.limit.graph import LimitGraph, LRef

T = TypeVar("T")


class Arithmetic(Protocol[T]):
    """Sums, products and functions of scalars."""

    def number(self, value: Fraction | float) -> T:
        """A given number."""

    def total(self, terms: Sequence[Sequence[T]]) -> T:
        """The sum of products."""

    def function(self, expr: Expr, scalars: Mapping[int, T]) -> T:
        """A function of scalars; ``Par(i)`` stands for ``scalars[i]``."""


class Field(Arithmetic[T], Protocol[T]):
    """Operations on the scalars of a limit graph.

    ``numeric.Numeric`` computes with arrays and error bounds, ``symbolic.Symbolic`` with sympy.
    Each operation raises ``Unknown`` where it has no answer.

    Example:
        >>> from tpcalc.integrals.numeric import Numeric
        >>> Numeric().number(Fraction(1, 2)).value
        0.5
    """

    def is_zero(self, value: T) -> bool:
        """Whether a value is 0 by structure, not by rounding."""

    def integral(self, factors: Sequence[Expr], mean: Sequence[T], cov: Sequence[Sequence[T]]) -> T:
        """E of a product of functions of one Gaussian each."""


class Values(Protocol[T]):
    """The scalars of a limit graph that do not stay random, as ``closure.Closure`` has them."""

    graph: LimitGraph

    @property
    def field(self) -> Arithmetic[T]:
        """What they are computed with."""

    def scalar(self, ref: LRef) -> T:
        """The value of a scalar node."""

    def inner(self, left: LRef, right: LRef) -> T:
        """E Z^x Z^y of two vector nodes."""
