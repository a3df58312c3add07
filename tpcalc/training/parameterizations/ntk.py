"""The neural tangent parameterization: the limit is a kernel method."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tpcalc.exponents import as_ex
from tpcalc.sources import Source
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, layers


def exponents(depth: int, step: int) -> Exponents:
    """The table of NTK: a = (0, 1/2, ..., 1/2) for weights, 0 for biases, c = 0.

    Source: Hajjar, Chizat, Giraud, section 2.2; Jacot, Gabriel, Hongler, section 3, for biases.
    """
    half, zero = as_ex(Fraction(1, 2)), as_ex(0)
    flat = layers(depth, zero, zero, zero)
    return Exponents(layers(depth, zero, half, half), flat, flat, flat)


def entrywise(depth: int, step: int) -> Exponents:
    """The same for Adam and sign, the operator regime: features move by n^(-1/2), outputs by 1.

    Source: Yang, Littwin, Tensor Programs IVb (2308.01814), the neural tangent parameterization.
    """
    half, one, zero = as_ex(Fraction(1, 2)), as_ex(1), as_ex(0)
    rates, shifts = layers(depth, half, one, half), layers(depth, half, half, zero)
    return replace(exponents(depth, step), c=rates, bias_c=shifts)


ENTRY = ParameterizationFamily(
    "ntk",
    make=lambda: exponents,
    text="a = (0, 1/2, ..., 1/2), c = 0: a kernel method in the limit",
    source=Source("Jacot, Gabriel, Hongler, Neural tangent kernel", "section 3", "1806.07572"),
    entrywise=lambda: entrywise,
    aliases=("ntp",),
)
