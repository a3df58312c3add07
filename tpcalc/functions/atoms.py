"""Atoms: named functions of one variable, with their derivative and declared facts.

An atom is defined once (in ``catalog/activations`` or by a user) and everything else reads it:
the backward pass its derivative, the engine its evaluation, the exponent calculus its facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from tpcalc.errors import NotDifferentiable
from tpcalc.functions.expr import Call, Expr, Number, number_text

__all__ = ["Atom", "Facts"]

Parity = Literal["even", "odd", "none"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a function of one variable.

    Args:
        parity: ``"even"``, ``"odd"`` or ``"none"``.
        homogeneity: The p with f(cz) = c^p f(z) for every c > 0, or None.
        kinks: Points where f or one of its first two derivatives jumps.
        growth: Degree of the smallest polynomial bound of |f|; None if f grows faster.
        value_at_zero: f(0).
        slope_at_zero: f'(0), or None where f has no derivative at 0.
    """

    parity: Parity = "none"
    homogeneity: Fraction | None = None
    kinks: tuple[float, ...] = ()
    growth: Fraction | None = Fraction(1)
    value_at_zero: float = 0.0
    slope_at_zero: float | None = None


@dataclass(frozen=True)
class Atom:
    """A named function of one variable.

    Two atoms are equal when name and parameters are.

    Args:
        name: The catalogue name, a Python identifier.
        evaluate: ``evaluate(xp, z)``: the function on an array, written with the array namespace
            ``xp`` (``exp, log, tanh, sin, cos, erf, abs, maximum, minimum, where, sqrt, sign``).
        derivative: The derivative as an expression of the argument; None where it is not a
            function (the derivative of a jump).
        facts: Declared facts.
        params: Parameters, such as the slope of a leaky ReLU.
        sympy: ``sympy(z)``: the function as a sympy expression, for display.

    Example:
        >>> from tpcalc.functions.expr import Var
        >>> square = Atom("square", lambda xp, z: z * z, lambda z: 2 * z)
        >>> square(Var(0)).text, square.differentiate(Var(0)).text
        ('square(x0)', '2*x0')
    """

    name: str
    evaluate: Callable[[Any, Any], Any] = field(compare=False, repr=False)
    derivative: Callable[[Expr], Expr] | None = field(compare=False, repr=False)
    facts: Facts = field(default=Facts(), compare=False, repr=False)
    params: tuple[Number, ...] = ()
    sympy: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    def __call__(self, arg: Expr) -> Expr:
        return Call(self, arg)

    def differentiate(self, arg: Expr) -> Expr:
        """The derivative at ``arg``.

        Raises:
            NotDifferentiable: Where the derivative is not a function.
        """
        if self.derivative is None:
            raise NotDifferentiable(
                f"{self.name} jumps, so its derivative is not a function.",
                hint="Correction terms take the Stein form and need no such derivative; "
                "a backward pass through it does. Use an activation without jumps.",
            )
        return self.derivative(arg)

    @property
    def text(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}[{', '.join(number_text(value) for value in self.params)}]"
