"""The identity: a network without nonlinearity."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily, Composite
from tpcalc.functions import Facts
from tpcalc.sources import Source

IDENTITY = Composite(
    "identity",
    build=lambda z: z,
    facts=Facts(
        parity="odd",
        homogeneity=Fraction(1),
        growth=Fraction(1),
        value_at_zero=0.0,
        slope_at_zero=1.0,
    ),
    sympy=lambda z: z,
)

ENTRY = ActivationFamily.of(
    IDENTITY,
    "z",
    Source(
        "Saxe, McClelland, Ganguli, Exact solutions to the nonlinear dynamics of "
        "learning in deep linear neural networks",
        arxiv="1312.6120",
    ),
    aliases=("linear",),
)
