"""The logistic sigmoid 1 / (1 + exp(-z))."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.activations.activation import ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source


def _evaluate(xp: Any, z: Any) -> Any:
    # No exponential is of a positive number, so that none leaves the range of any precision.
    return xp.exp(xp.minimum(z, 0.0)) / (1.0 + xp.exp(-xp.abs(z)))


SIGMOID: Atom = Atom(
    "sigmoid",
    evaluate=_evaluate,
    derivative=lambda z: SIGMOID(z) * (1 - SIGMOID(z)),
    facts=Facts(growth=Fraction(0), value_at_zero=0.5, slope_at_zero=0.25, least=0.0, tame=True),
    sympy=in_sympy(lambda sp, z: 1 / (1 + sp.exp(-z))),
)

ENTRY = ActivationFamily.of(
    SIGMOID,
    "1 / (1 + exp(-z))",
    Source(
        "Rumelhart, Hinton, Williams, Learning representations by back-propagating errors", "eq. 2"
    ),
    aliases=("logistic",),
)
