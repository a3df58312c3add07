"""Sine and cosine: each is the other's derivative, so they share a file."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

SIN = Atom(
    "sin",
    evaluate=lambda xp, z: xp.sin(z),
    derivative=lambda z: COS(z),
    facts=Facts(parity="odd", growth=Fraction(0), slope_at_zero=1.0, least=-1.0),
    sympy=in_sympy(lambda sp, z: sp.sin(z)),
)
COS: Atom = Atom(
    "cos",
    evaluate=lambda xp, z: xp.cos(z),
    derivative=lambda z: -SIN(z),
    facts=Facts(
        parity="even", growth=Fraction(0), value_at_zero=1.0, slope_at_zero=0.0, least=-1.0
    ),
    sympy=in_sympy(lambda sp, z: sp.cos(z)),
)

SOURCE = Source(
    "Sitzmann, Martel, Bergman, Lindell, Wetzstein, Implicit neural representations with periodic "
    "activation functions",
    arxiv="2006.09661",
)

ENTRIES = (
    ActivationFamily.of(SIN, "the sine", SOURCE),
    ActivationFamily.of(COS, "the cosine", SOURCE),
)
