"""Softplus log(1 + exp(z)), the integral of the sigmoid."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

from tpcalc.activations.activation import ActivationFamily
from tpcalc.activations.entries.sigmoid import SIGMOID
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source


def _evaluate(xp: Any, z: Any) -> Any:
    # The part that grows is split off, so exp never overflows.
    return xp.maximum(z, 0.0) + xp.log1p(xp.exp(-xp.abs(z)))


SOFTPLUS = Atom(
    "softplus",
    evaluate=_evaluate,
    derivative=SIGMOID,
    facts=Facts(
        growth=Fraction(1), value_at_zero=log(2.0), slope_at_zero=0.5, least=0.0, tame=True
    ),
    sympy=in_sympy(lambda sp, z: sp.log(1 + sp.exp(z))),
)

ENTRY = ActivationFamily.of(
    SOFTPLUS,
    "log(1 + exp(z))",
    Source(
        "Dugas, Bengio, Belisle, Nadeau, Garcia, Incorporating second-order functional "
        "knowledge for better option pricing",
        "the softplus",
    ),
)
