"""The absolute value."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import NONLINEARITY, ActivationFamily
from tpcalc.activations.entries.sign import SIGN
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Facts, in_sympy

ABS = Atom(
    "abs",
    evaluate=lambda xp, z: xp.abs(z),
    derivative=SIGN,
    facts=Facts(
        parity="even", homogeneity=Fraction(1), kinks=(0.0,), growth=Fraction(1), least=0.0
    ),
    sympy=in_sympy(lambda sp, z: sp.Abs(z)),
    pieces=lambda z: 2 * z * STEP(z) - z,
)

ENTRY = ActivationFamily.of(ABS, "|z|", NONLINEARITY.at("Table 2.1"))
