"""The exponential."""

from __future__ import annotations

from tpcalc.activations.activation import DLMF, ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy

EXP: Atom = Atom(
    "exp",
    evaluate=lambda xp, z: xp.exp(z),
    derivative=lambda z: EXP(z),
    facts=Facts(growth=None, order=1, value_at_zero=1.0, slope_at_zero=1.0, least=0.0, tame=True),
    sympy=in_sympy(lambda sp, z: sp.exp(z)),
)

ENTRY = ActivationFamily.of(
    EXP,
    "exp(z); grows faster than every power, so no theorem covers a vector of it",
    DLMF.at("4.2.19"),
)
