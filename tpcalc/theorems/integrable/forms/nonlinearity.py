"""What the formulas ask of an activation: its degree and sides, or its value and slope at 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tpcalc.errors import UsageError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Expr, Fn, Var, const, derivative
from tpcalc.functions.expr import substitute, walk
from tpcalc.functions.form import degree
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architecture import activation_of, named

Activation = str | Callable[[Any], Any]


@dataclass(frozen=True)
class Nonlinearity:
    """An activation with its derivative.

    Args:
        text: Its name, for messages.
        expr: The function, of ``Var(0)``.

    Example:
        >>> square = Nonlinearity("square", Var(0) ** 2)
        >>> square.degree, square.right, square.left, square.slope.text
        (Fraction(2, 1), 1.0, 1.0, '2*x0')
    """

    text: str
    expr: Expr

    @cached_property
    def slope(self) -> Expr:
        """Its derivative, of ``Var(0)``."""
        return derivative(self.expr, Var(0))

    @cached_property
    def degree(self) -> Fraction | None:
        """The p with sigma(cz) = c^p sigma(z) for all c > 0; None where there is none."""
        return degree(self.expr)

    @cached_property
    def right(self) -> float:
        """sigma(1): alpha of alpha z_+^p + beta |z_-|^p."""
        return number_at(self.expr, 1.0)

    @cached_property
    def left(self) -> float:
        """sigma(-1): beta of the same."""
        return number_at(self.expr, -1.0)

    @cached_property
    def at_zero(self) -> float:
        """sigma(0)."""
        return number_at(self.expr, 0.0)

    @cached_property
    def slope_at_zero(self) -> float | None:
        """sigma'(0); None where sigma has a kink there, or where none is known not to be there."""
        if self.degree is not None and self.degree > 1:
            return 0.0
        if self.degree is not None:
            linear = self.degree == 1 and self.right == -self.left
            return self.right if linear else None
        if isinstance(self.expr, Call) and self.expr.arg == Var(0):
            return self.expr.atom.facts.slope_at_zero
        if any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(self.expr)):
            return None
        return number_at(self.slope, 0.0)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Where it may have kinks: those of its parts, as far as they are of ``Var(0)`` itself."""
        calls = [part for part in walk(self.expr) if isinstance(part, Call)]
        return tuple(sorted({kink for part in calls for kink in part.atom.facts.kinks}))

    @property
    def linearizable(self) -> bool:
        """Whether sigma(z) is close to sigma'(0) z near 0, and is no power."""
        return self.degree is None and self.at_zero == 0 and bool(self.slope_at_zero)

    def __call__(self, z: Expr) -> Expr:
        return substitute(self.expr, {Var(0): z})


def nonlinearity(act: Activation | Nonlinearity) -> Nonlinearity:
    """An activation as networks take it.

    Args:
        act: A catalogue name, or a function of an expression.

    Raises:
        StudyError: It is neither.
        UnknownName: No such activation.
        UsageError: A power that is a symbol: it has no values.
    """
    if isinstance(act, Nonlinearity):
        return act
    found = Nonlinearity(named(act), activation_of(act, "the closed form"))
    for part in walk(found.expr):
        if isinstance(part, Call) and isinstance(part.atom.facts.homogeneity, Ex):
            raise UsageError(
                f"{found.text} has a symbol for its power, and no values.",
                hint="Name a number, as in 'relu^2'; exponents take symbols.",
            )
    return found


def linear(slope: float) -> Nonlinearity:
    """The map z -> slope * z."""
    return Nonlinearity("linear", const(slope) * Var(0))


def number_at(expr: Expr, z: float) -> float:
    """The value of an expression of ``Var(0)`` at a number."""
    return float(evaluate(Fn(substitute(expr, {Var(0): const(z)}), 0), []))
