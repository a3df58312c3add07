"""What the rules of integration ask of a number: floats with error bounds, and formulas.

The number 0 of Python stands for what is 0 whatever the covariances are: it takes part in sums and
products and is what ``x == 0`` asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from tpcalc.functions import Expr


class Numbers(Protocol):
    """Operations on numbers beside ``+``, ``-`` and ``*``; every argument may be the number 0.

    Weights are logarithms: a method that takes them gives exp(weights[0]) times the quantity. The
    others are the weights where the first, the second and both half-lines are at their edge
    (with the exponent of the density there), which may be far from the first: then two drifts.
    """

    def constant(self, expr: Expr) -> Any:
        """A constant expression."""

    def fraction(self, value: Fraction) -> Any:
        """A rational number."""

    def total(self, terms: Sequence[Any]) -> Any:
        """The sum."""

    def close_total(self, terms: Sequence[Any]) -> Any:
        """The sum, where terms are likely to cancel."""

    def over(self, x: Any, y: Any) -> Any:
        """The quotient x / y for y >= 0; 0 where y is 0."""

    def minor(self, a: Any, d: Any, b: Any, c: Any, definite: bool) -> Any:
        """The number a d - b c; ``definite`` says that it cannot be negative."""

    def tilted(self, square: Any, variance: Any) -> Any:
        """1 - 2 square variance, which must be positive."""

    def root(self, x: Any) -> Any:
        """The square root."""

    def exponential(self, weight: Any) -> Any:
        """exp(weight)."""

    def wave(self, kind: str, phase: Any) -> Any:
        """The cosine or sine."""

    def per_root_tau(self, count: int) -> Any:
        """(2 pi)^(-count / 2)."""

    def known_side(self, kind: str, mean: Any) -> Any:
        """A step or sign of a number; at 0 their mean from both sides."""

    def half(self, kind: str, weights: tuple[Any, Any], mean: Any, variance: Any) -> Any:
        """The mean of a step or sign of one Gaussian."""

    def quarter(
        self, kinds: tuple[str, str], weights: tuple[Any, ...], means: Any, entries: Any
    ) -> Any:
        """The mean of the product of two; ``entries`` are both variances, covariance, minor."""

    def ramps(self, entries: Any) -> Any:
        """The mean of x y step(x) step(y), both with mean 0."""

    def power(self, exponent: Fraction, variance: Any) -> Any:
        """The mean of max(x, 0)^p, with mean 0."""

    def powers(self, exponents: tuple[Fraction, Fraction], entries: Any) -> Any:
        """The mean of max(x, 0)^p max(y, 0)^q, both with mean 0."""
