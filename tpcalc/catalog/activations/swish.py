"""Swish (SiLU): z times its sigmoid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.catalog.activations.sigmoid import SIGMOID
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _evaluate(xp: Any, z: Any) -> Any:
    return z * SIGMOID.evaluate(xp, z)


def _slope(z: Expr) -> Expr:
    return SIGMOID(z) * (1 + z * (1 - SIGMOID(z)))


def _sympy(z: Any) -> Any:
    import sympy

    return z / (1 + sympy.exp(-z))


SWISH = Atom(
    "swish",
    evaluate=_evaluate,
    derivative=_slope,
    facts=Facts(growth=Fraction(1), slope_at_zero=0.5),
    sympy=_sympy,
)

ENTRY = ActivationFamily(
    "swish",
    make=lambda: SWISH,
    text="z / (1 + exp(-z))",
    source=Source("Ramachandran, Zoph, Le, Searching for activation functions", "", "1710.05941"),
    aliases=("silu",),
)
