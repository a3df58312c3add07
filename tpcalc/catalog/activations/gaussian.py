"""The Gaussian bump exp(-a z^2); exp(-z^2) by default."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily, Parameter
from tpcalc.catalog.activations.exp import EXP
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _slope(z: Expr) -> Expr:
    return -2 * z * GAUSSIAN(z)


def _sympy(z: Any) -> Any:
    import sympy

    return sympy.exp(-(z**2))


GAUSSIAN = Atom(
    "gaussian",
    evaluate=lambda xp, z: xp.exp(-(z * z)),
    derivative=_slope,
    facts=Facts(parity="even", growth=Fraction(0), value_at_zero=1.0, slope_at_zero=0.0, least=0.0),
    sympy=_sympy,
    pieces=lambda z: EXP(-(z**2)),
)


def gaussian(rate: Fraction) -> Atom:
    """The bump exp(-rate z^2).

    Args:
        rate: 1/2 gives the bump of standard deviation 1.

    Source: Broomhead, Lowe, Multivariable functional interpolation and adaptive networks.
    """
    if rate == 1:
        return GAUSSIAN
    number = float(rate)

    def derivative(z: Expr) -> Expr:
        return -2 * rate * z * gaussian(rate)(z)

    def display(z: Any) -> Any:
        import sympy

        return sympy.exp(-sympy.Rational(rate.numerator, rate.denominator) * z**2)

    return Atom(
        "gaussian",
        lambda xp, z: xp.exp(-number * (z * z)),
        derivative,
        GAUSSIAN.facts,
        (rate,),
        display,
        lambda z: EXP(-rate * z**2),
    )


ENTRY = ActivationFamily(
    "gaussian",
    make=gaussian,
    text="exp(-rate z^2), with rate 1 by default",
    source=Source("Broomhead, Lowe, Multivariable functional interpolation and adaptive networks"),
    parameters=(Parameter("rate", "rate of decay", default=Fraction(1), above=Fraction(0)),),
)
