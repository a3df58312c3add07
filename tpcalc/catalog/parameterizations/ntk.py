"""The neural tangent parameterization: the limit is a kernel method."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.catalog.parameterization import Exponents, ParameterizationFamily, layers
from tpcalc.orders import as_ex
from tpcalc.sources import Source


def exponents(depth: int, step: int) -> Exponents:
    """The table of NTK: a = (0, 1/2, ..., 1/2) for weights, 0 for biases, c = 0.

    Source: Hajjar, Chizat, Giraud, section 2.2; Jacot, Gabriel, Hongler, section 3, for biases.
    """
    half, zero = as_ex(Fraction(1, 2)), as_ex(0)
    flat = layers(depth, zero, zero, zero)
    return Exponents(layers(depth, zero, half, half), flat, flat, flat)


ENTRY = ParameterizationFamily(
    "ntk",
    make=lambda: exponents,
    text="a = (0, 1/2, ..., 1/2), c = 0: a kernel method in the limit",
    source=Source("Jacot, Gabriel, Hongler, Neural tangent kernel", "section 3", "1806.07572"),
    aliases=("ntp",),
)
