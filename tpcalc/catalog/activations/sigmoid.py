"""The logistic sigmoid 1 / (1 + exp(-z))."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

# exp of this is finite in single precision too; the sigmoid of -88 is 6e-39.
LARGEST = 88.0


SIGMOID: Atom = Atom(
    "sigmoid",
    evaluate=lambda xp, z: 1.0 / (1.0 + xp.exp(xp.minimum(-z, LARGEST))),
    derivative=lambda z: SIGMOID(z) * (1 - SIGMOID(z)),
    facts=Facts(growth=Fraction(0), value_at_zero=0.5, slope_at_zero=0.25, least=0.0, tame=True),
    sympy=in_sympy(lambda sp, z: 1 / (1 + sp.exp(-z))),
)

ENTRY = ActivationFamily(
    "sigmoid",
    make=lambda: SIGMOID,
    text="1 / (1 + exp(-z))",
    source=Source(
        "Rumelhart, Hinton, Williams, Learning representations by back-propagating errors", "eq. 2"
    ),
    aliases=("logistic",),
)
