"""The logistic sigmoid 1 / (1 + exp(-z))."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source

# exp of this is finite in single precision too; the sigmoid of -88 is 6e-39.
LARGEST = 88.0


def _evaluate(xp: Any, z: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(xp.minimum(-z, LARGEST)))


def _slope(z: Expr) -> Expr:
    return SIGMOID(z) * (1 - SIGMOID(z))


def _sympy(z: Any) -> Any:
    import sympy

    return 1 / (1 + sympy.exp(-z))


SIGMOID = Atom(
    "sigmoid",
    evaluate=_evaluate,
    derivative=_slope,
    facts=Facts(growth=Fraction(0), value_at_zero=0.5, slope_at_zero=0.25, least=0.0, tame=True),
    sympy=_sympy,
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
