"""GELU in its exact form z * Phi(z), not the approximation by tanh."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries.normal import NORMAL_CDF, NORMAL_PDF
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

GELU = Atom(
    "gelu",
    evaluate=lambda xp, z: z * NORMAL_CDF.evaluate(xp, z),
    derivative=lambda z: NORMAL_CDF(z) + z * NORMAL_PDF(z),
    facts=Facts(growth=Fraction(1), slope_at_zero=0.5),
    sympy=in_sympy(lambda sp, z: z * (1 + sp.erf(z / sp.sqrt(2))) / 2),
    pieces=lambda z: z * NORMAL_CDF(z),
)

ENTRY = ActivationFamily.of(
    GELU,
    "z times the distribution function of N(0, 1)",
    Source("Hendrycks, Gimpel, Gaussian error linear units", "section 2", "1606.08415"),
)
