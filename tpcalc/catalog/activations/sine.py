"""Sine and cosine: each is the other's derivative, so they share a file."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def _slope_of_sin(z: Expr) -> Expr:
    return COS(z)


def _slope_of_cos(z: Expr) -> Expr:
    return -SIN(z)


def _sympy_sin(z: Any) -> Any:
    import sympy

    return sympy.sin(z)


def _sympy_cos(z: Any) -> Any:
    import sympy

    return sympy.cos(z)


SIN = Atom(
    "sin",
    evaluate=lambda xp, z: xp.sin(z),
    derivative=_slope_of_sin,
    facts=Facts(parity="odd", growth=Fraction(0), slope_at_zero=1.0, least=-1.0),
    sympy=_sympy_sin,
)
COS = Atom(
    "cos",
    evaluate=lambda xp, z: xp.cos(z),
    derivative=_slope_of_cos,
    facts=Facts(
        parity="even", growth=Fraction(0), value_at_zero=1.0, slope_at_zero=0.0, least=-1.0
    ),
    sympy=_sympy_cos,
)

SOURCE = Source(
    "Sitzmann, Martel, Bergman, Lindell, Wetzstein, Implicit neural representations with periodic "
    "activation functions",
    arxiv="2006.09661",
)

ENTRIES = (
    ActivationFamily("sin", make=lambda: SIN, text="the sine", source=SOURCE),
    ActivationFamily("cos", make=lambda: COS, text="the cosine", source=SOURCE),
)
