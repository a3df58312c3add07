"""The square root, for z >= 0; a power, so it needs no atom."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

from tpcalc.catalog.activation import ActivationFamily, Composite
from tpcalc.functions import Facts
from tpcalc.sources import Source


def _sympy(z: Any) -> Any:
    import sympy

    return sympy.sqrt(z)


SQRT = Composite(
    "sqrt",
    build=lambda z: z ** Fraction(1, 2),
    facts=Facts(homogeneity=Fraction(1, 2), kinks=(0.0,), growth=Fraction(1, 2), least=0.0),
    sympy=_sympy,
)

ENTRY = ActivationFamily(
    "sqrt",
    make=lambda: SQRT,
    text="the square root, for z >= 0 (of scalars, say)",
    source=Source("NIST Digital Library of Mathematical Functions", "4.2.26"),
    domain=(0.0, inf),
)
