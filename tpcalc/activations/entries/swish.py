"""Swish (SiLU): z times its sigmoid."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries.sigmoid import SIGMOID
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

SWISH = Atom(
    "swish",
    evaluate=lambda xp, z: z * SIGMOID.evaluate(xp, z),
    derivative=lambda z: SIGMOID(z) * (1 + z * (1 - SIGMOID(z))),
    facts=Facts(growth=Fraction(1), slope_at_zero=0.5),
    sympy=in_sympy(lambda sp, z: z / (1 + sp.exp(-z))),
)

ENTRY = ActivationFamily.of(
    SWISH,
    "z / (1 + exp(-z))",
    Source("Ramachandran, Zoph, Le, Searching for activation functions", "", "1710.05941"),
    aliases=("silu",),
)
