"""ReLU: max(z, 0). Its derivative is the step, which takes the value 0 at 0."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source

RELU = Atom(
    "relu",
    evaluate=lambda xp, z: xp.maximum(z, 0.0),
    derivative=STEP,
    facts=Facts(homogeneity=Fraction(1), kinks=(0.0,), growth=Fraction(1), least=0.0),
    sympy=in_sympy(lambda sp, z: sp.Max(z, 0)),
    pieces=lambda z: z * STEP(z),
)

ENTRY = ActivationFamily.of(
    RELU,
    "max(z, 0)",
    Source("Nair, Hinton, Rectified linear units improve restricted Boltzmann machines"),
)
