"""Odd square: z |z|, the square with the sign of its argument."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import NONLINEARITY, ActivationFamily
from tpcalc.activations.entries.abs import ABS
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Facts, in_sympy

ODD_SQUARE = Atom(
    "odd_square",
    evaluate=lambda xp, z: z * xp.abs(z),
    derivative=lambda z: 2 * ABS(z),
    facts=Facts(
        parity="odd",
        homogeneity=Fraction(2),
        kinks=(0.0,),
        growth=Fraction(2),
        slope_at_zero=0.0,
    ),
    sympy=in_sympy(lambda sp, z: z * sp.Abs(z)),
    pieces=lambda z: 2 * z**2 * STEP(z) - z**2,
)

ENTRY = ActivationFamily.of(ODD_SQUARE, "z |z|", NONLINEARITY.at("Table 2.1"))
