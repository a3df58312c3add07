"""Even tanh: the hyperbolic tangent of |z|."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import NONLINEARITY, ActivationFamily
from tpcalc.activations.entries.sign import SIGN
from tpcalc.activations.entries.tanh import TANH
from tpcalc.functions import Atom, Facts, in_sympy

EVEN_TANH = Atom(
    "even_tanh",
    evaluate=lambda xp, z: xp.abs(xp.tanh(z)),
    derivative=lambda z: SIGN(z) * (1 - TANH(z) ** 2),
    facts=Facts(parity="even", kinks=(0.0,), growth=Fraction(0)),
    sympy=in_sympy(lambda sp, z: sp.tanh(sp.Abs(z))),
)

ENTRY = ActivationFamily.of(EVEN_TANH, "tanh |z|", NONLINEARITY.at("Table 2.1"))
