"""The sign, with sign(0) = 0: the derivative of |z|."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import DLMF, ActivationFamily
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Facts, in_sympy

SIGN = Atom(
    "sign",
    evaluate=lambda xp, z: xp.sign(z),
    derivative=None,
    facts=Facts(
        parity="odd", homogeneity=Fraction(0), kinks=(0.0,), growth=Fraction(0), least=-1.0
    ),
    sympy=in_sympy(lambda sp, z: sp.sign(z)),
    pieces=lambda z: 2 * STEP(z) - 1,
)

ENTRY = ActivationFamily.of(
    SIGN, "-1, 0 or 1 (the slope of abs)", DLMF.at("common notations: sign")
)
