"""Density and distribution function of N(0, 1): the derivatives of GELU are made of them."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt

from tpcalc.activations.activation import DLMF, ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy

PEAK = 1.0 / sqrt(2.0 * pi)
ROOT_HALF = sqrt(0.5)


NORMAL_PDF: Atom = Atom(
    "normal_pdf",
    evaluate=lambda xp, z: PEAK * xp.exp(-0.5 * (z * z)),
    derivative=lambda z: -z * NORMAL_PDF(z),
    facts=Facts(
        parity="even", growth=Fraction(0), value_at_zero=PEAK, slope_at_zero=0.0, least=0.0
    ),
    sympy=in_sympy(lambda sp, z: sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)),
)
NORMAL_CDF = Atom(
    "normal_cdf",
    evaluate=lambda xp, z: 0.5 + 0.5 * xp.erf(ROOT_HALF * z),
    derivative=NORMAL_PDF,
    facts=Facts(growth=Fraction(0), value_at_zero=0.5, slope_at_zero=PEAK, least=0.0),
    sympy=in_sympy(lambda sp, z: (1 + sp.erf(z / sp.sqrt(2))) / 2),
)

ENTRIES = (
    ActivationFamily.of(NORMAL_CDF, "the distribution function of N(0, 1)", DLMF.at("7.20(iii)")),
    ActivationFamily.of(NORMAL_PDF, "the density of N(0, 1)", DLMF.at("7.20(iii)")),
)
