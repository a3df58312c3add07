"""GELU in its exact form z * Phi(z), not the approximation by tanh."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.catalog.activations.normal import NORMAL_CDF, NORMAL_PDF
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _evaluate(xp: Any, z: Any) -> Any:
    return z * NORMAL_CDF.evaluate(xp, z)


def _slope(z: Expr) -> Expr:
    return NORMAL_CDF(z) + z * NORMAL_PDF(z)


def _sympy(z: Any) -> Any:
    import sympy

    return z * (1 + sympy.erf(z / sympy.sqrt(2))) / 2


GELU = Atom(
    "gelu",
    evaluate=_evaluate,
    derivative=_slope,
    facts=Facts(growth=Fraction(1), slope_at_zero=0.5),
    sympy=_sympy,
    pieces=lambda z: z * NORMAL_CDF(z),
)

ENTRY = ActivationFamily(
    "gelu",
    make=lambda: GELU,
    text="z times the distribution function of N(0, 1)",
    source=Source("Hendrycks, Gimpel, Gaussian error linear units", "section 2", "1606.08415"),
)
