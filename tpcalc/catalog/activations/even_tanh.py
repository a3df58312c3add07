"""Even tanh: the hyperbolic tangent of |z|."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.catalog.activations.sign import SIGN
from tpcalc.catalog.activations.tanh import TANH
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _slope(z: Expr) -> Expr:
    return SIGN(z) * (1 - TANH(z) ** 2)


def _sympy(z: Any) -> Any:
    import sympy

    return sympy.tanh(sympy.Abs(z))


EVEN_TANH = Atom(
    "even_tanh",
    evaluate=lambda xp, z: xp.abs(xp.tanh(z)),
    derivative=_slope,
    facts=Facts(parity="even", kinks=(0.0,), growth=Fraction(0)),
    sympy=_sympy,
)

ENTRY = ActivationFamily(
    "even_tanh",
    make=lambda: EVEN_TANH,
    text="tanh |z|",
    source=Source("Schoenherr, The Nonlinearity Coefficient", "Table 2.1"),
)
