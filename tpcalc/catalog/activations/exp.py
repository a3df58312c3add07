"""The exponential."""

from __future__ import annotations

from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _slope(z: Expr) -> Expr:
    return EXP(z)


def _sympy(z: Any) -> Any:
    import sympy

    return sympy.exp(z)


EXP = Atom(
    "exp",
    evaluate=lambda xp, z: xp.exp(z),
    derivative=_slope,
    facts=Facts(growth=None, value_at_zero=1.0, slope_at_zero=1.0, least=0.0, tame=True),
    sympy=_sympy,
)

ENTRY = ActivationFamily(
    "exp",
    make=lambda: EXP,
    text="exp(z); grows faster than every power, so no theorem covers a vector of it",
    source=Source("NIST Digital Library of Mathematical Functions", "4.2.19"),
)
