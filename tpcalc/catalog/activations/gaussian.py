"""The Gaussian bump exp(-z^2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
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
    facts=Facts(parity="even", growth=Fraction(0), value_at_zero=1.0, slope_at_zero=0.0),
    sympy=_sympy,
    pieces=lambda z: EXP(-(z**2)),
)

ENTRY = ActivationFamily(
    "gaussian",
    make=lambda: GAUSSIAN,
    text="exp(-z^2)",
    source=Source("Broomhead, Lowe, Multivariable functional interpolation and adaptive networks"),
)
