"""The hyperbolic tangent."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _slope(z: Expr) -> Expr:
    return 1 - TANH(z) ** 2


def _sympy(z: Any) -> Any:
    import sympy

    return sympy.tanh(z)


TANH = Atom(
    "tanh",
    evaluate=lambda xp, z: xp.tanh(z),
    derivative=_slope,
    facts=Facts(parity="odd", growth=Fraction(0), slope_at_zero=1.0, least=-1.0),
    sympy=_sympy,
)

ENTRY = ActivationFamily(
    "tanh",
    make=lambda: TANH,
    text="the hyperbolic tangent",
    source=Source("LeCun, Bottou, Orr, Mueller, Efficient backprop", "the sigmoid"),
)
