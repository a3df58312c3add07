"""Leaky ReLU: slope 1 on the right of 0, another slope on the left (and at 0)."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import ActivationFamily, Parameter
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source


def leaky_relu(slope: Fraction) -> Atom:
    """Leaky ReLU: z for z > 0, slope * z for z <= 0.

    Source: Maas, Hannun, Ng, section 2.
    """
    left = float(slope)

    smooth = slope == 1
    facts = Facts(
        parity="odd" if smooth else "even" if slope == -1 else "none",
        homogeneity=Fraction(1),
        kinks=() if smooth else (0.0,),
        growth=Fraction(1),
        slope_at_zero=1.0 if smooth else None,
    )
    return Atom(
        "leaky_relu",
        lambda xp, z: xp.where(z > 0, z, left * z),
        lambda z: slope + (1 - slope) * STEP(z),
        facts,
        (slope,),
        in_sympy(lambda sp, z: sp.Piecewise((z, z > 0), (sp.Rational(slope) * z, True))),
        lambda z: slope * z + (1 - slope) * z * STEP(z),
    )


ENTRY = ActivationFamily(
    "leaky_relu",
    make=leaky_relu,
    text="z for z > 0, slope * z for z <= 0",
    source=Source(
        "Maas, Hannun, Ng, Rectifier nonlinearities improve neural network acoustic models",
        "section 2",
    ),
    parameters=(Parameter("slope", "slope for z <= 0", default=Fraction(1, 100)),),
)
