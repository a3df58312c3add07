"""Odd square: z |z|, the square with the sign of its argument."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily
from tpcalc.catalog.activations.abs import ABS
from tpcalc.catalog.activations.step import STEP
from tpcalc.functions import Atom, Facts
from tpcalc.sources import Source


def _sympy(z: Any) -> Any:
    import sympy

    return z * sympy.Abs(z)


ODD_SQUARE = Atom(
    "odd_square",
    evaluate=lambda xp, z: z * xp.abs(z),
    derivative=lambda z: 2 * ABS(z),
    facts=Facts(
        parity="odd",
        homogeneity=Fraction(2),
        kinks=(0.0,),
        growth=Fraction(2),
        slope_at_zero=0.0,
    ),
    sympy=_sympy,
    pieces=lambda z: 2 * z**2 * STEP(z) - z**2,
)

ENTRY = ActivationFamily(
    "odd_square",
    make=lambda: ODD_SQUARE,
    text="z |z|",
    source=Source("Schoenherr, The Nonlinearity Coefficient", "Table 2.1"),
)
