"""The square root, for z >= 0; a power, so it needs no atom."""

from __future__ import annotations

from fractions import Fraction
from math import inf

from tpcalc.activations.activation import DLMF, ActivationFamily, Composite
from tpcalc.functions import Facts, in_sympy

SQRT = Composite(
    "sqrt",
    build=lambda z: z ** Fraction(1, 2),
    facts=Facts(homogeneity=Fraction(1, 2), kinks=(0.0,), growth=Fraction(1, 2), least=0.0),
    sympy=in_sympy(lambda sp, z: sp.sqrt(z)),
)

ENTRY = ActivationFamily.of(
    SQRT, "the square root, for z >= 0 (of scalars, say)", DLMF.at("4.2.26"), domain=(0.0, inf)
)
