"""The error function (with the argument z itself, not z / sqrt(2))."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.normal import NORMAL_CDF
from tpcalc.functions import Atom, Facts, const, in_sympy
from tpcalc.sources import Source

SLOPE = 2.0 / sqrt(pi)
ROOT_TWO = const(2) ** Fraction(1, 2)


ERF = Atom(
    "erf",
    evaluate=lambda xp, z: xp.erf(z),
    derivative=lambda z: SLOPE * EXP(-(z**2)),
    facts=Facts(parity="odd", growth=Fraction(0), slope_at_zero=SLOPE, least=-1.0),
    sympy=in_sympy(lambda sp, z: sp.erf(z)),
    pieces=lambda z: 2 * NORMAL_CDF(ROOT_TWO * z) - 1,
)

ENTRY = ActivationFamily.of(
    ERF,
    "the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to z",
    Source("Williams, Computing with infinite networks", "the sigmoidal transfer function"),
)
