"""The Gaussian bump exp(-a z^2); exp(-z^2) by default."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily, Parameter
from tpcalc.activations.entries.exp import EXP
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

GAUSSIAN: Atom = Atom(
    "gaussian",
    evaluate=lambda xp, z: xp.exp(-(z * z)),
    derivative=lambda z: -2 * z * GAUSSIAN(z),
    facts=Facts(parity="even", growth=Fraction(0), value_at_zero=1.0, slope_at_zero=0.0, least=0.0),
    sympy=in_sympy(lambda sp, z: sp.exp(-(z**2))),
    pieces=lambda z: EXP(-(z**2)),
)


def gaussian(rate: Fraction) -> Atom:
    """The bump exp(-rate z^2).

    Source: Broomhead, Lowe, Multivariable functional interpolation and adaptive networks.
    """
    if rate == 1:
        return GAUSSIAN
    number = float(rate)

    return Atom(
        "gaussian",
        lambda xp, z: xp.exp(-number * (z * z)),
        lambda z: -2 * rate * z * gaussian(rate)(z),
        GAUSSIAN.facts,
        (rate,),
        in_sympy(lambda sp, z: sp.exp(-sp.Rational(rate) * z**2)),
        lambda z: EXP(-rate * z**2),
    )


ENTRY = ActivationFamily(
    "gaussian",
    make=gaussian,
    text="exp(-rate z^2), with rate 1 by default",
    source=Source("Broomhead, Lowe, Multivariable functional interpolation and adaptive networks"),
    parameters=(Parameter("rate", "rate of decay", default=Fraction(1), above=Fraction(0)),),
)
