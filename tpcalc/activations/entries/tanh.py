"""The hyperbolic tangent."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

TANH: Atom = Atom(
    "tanh",
    evaluate=lambda xp, z: xp.tanh(z),
    derivative=lambda z: 1 - TANH(z) ** 2,
    facts=Facts(parity="odd", growth=Fraction(0), slope_at_zero=1.0, least=-1.0),
    sympy=in_sympy(lambda sp, z: sp.tanh(z)),
)

ENTRY = ActivationFamily.of(
    TANH,
    "the hyperbolic tangent",
    Source("LeCun, Bottou, Orr, Mueller, Efficient backprop", "the sigmoid"),
)
