"""Density and distribution function of N(0, 1): the derivatives of GELU are made of them."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source

PEAK = 1.0 / sqrt(2.0 * pi)
ROOT_HALF = sqrt(0.5)


def _density(xp: Any, z: Any) -> Any:
    return PEAK * xp.exp(-0.5 * (z * z))


def _distribution(xp: Any, z: Any) -> Any:
    return 0.5 + 0.5 * xp.erf(ROOT_HALF * z)


def _slope_of_density(z: Expr) -> Expr:
    return -z * NORMAL_PDF(z)


def _sympy_density(z: Any) -> Any:
    import sympy

    return sympy.exp(-(z**2) / 2) / sympy.sqrt(2 * sympy.pi)


def _sympy_distribution(z: Any) -> Any:
    import sympy

    return (1 + sympy.erf(z / sympy.sqrt(2))) / 2


NORMAL_PDF = Atom(
    "normal_pdf",
    evaluate=_density,
    derivative=_slope_of_density,
    facts=Facts(
        parity="even", growth=Fraction(0), value_at_zero=PEAK, slope_at_zero=0.0, least=0.0
    ),
    sympy=_sympy_density,
)
NORMAL_CDF = Atom(
    "normal_cdf",
    evaluate=_distribution,
    derivative=NORMAL_PDF,
    facts=Facts(growth=Fraction(0), value_at_zero=0.5, slope_at_zero=PEAK, least=0.0),
    sympy=_sympy_distribution,
)

ENTRIES = (
    ActivationFamily(
        "normal_cdf",
        make=lambda: NORMAL_CDF,
        text="the distribution function of N(0, 1)",
        source=Source("NIST Digital Library of Mathematical Functions", "7.20(iii)"),
    ),
    ActivationFamily(
        "normal_pdf",
        make=lambda: NORMAL_PDF,
        text="the density of N(0, 1)",
        source=Source("NIST Digital Library of Mathematical Functions", "7.20(iii)"),
    ),
)
