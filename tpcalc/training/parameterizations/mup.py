"""The maximal update parameterization: every layer learns features in the limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tpcalc.exponents import as_ex
from tpcalc.sources import Source
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, layers


def exponents(depth: int, step: int) -> Exponents:
    """The table of muP: a = (0, 1/2, ..., 1/2, 1), c = -1; biases 0 with rates (-1, ..., -1, 0).

    A hidden bias is a vector as the input weights are, and an output's bias is a number: all are
    of order one and move by order one.

    Source: Hajjar, Chizat, Giraud, section 2.2; Yang and Hu, Definition 5.1 after Remark 2.1; for
        biases Yang, Hu and others, Tensor Programs V (2203.03466), Table 3.
    """
    zero, half, one = as_ex(0), as_ex(Fraction(1, 2)), as_ex(1)
    return Exponents(
        layers(depth, zero, half, one),
        layers(depth, -one, -one, -one),
        layers(depth, zero, zero, zero),
        layers(depth, -one, -one, zero),
    )


def entrywise(depth: int, step: int) -> Exponents:
    """The same for Adam and sign: c = (0, 1/2, ..., 1/2, 0), biases 0.

    A step of w changes W = n^(-a) w by n^(-a-c), which is n^-1 where a product sums over the width.

    Source: Yang, Hu and others, Tensor Programs V (2203.03466), Table 3, in this gauge.
    """
    zero, half = as_ex(0), as_ex(Fraction(1, 2))
    found = exponents(depth, step)
    flat = layers(depth, zero, zero, zero)
    return replace(found, c=layers(depth, zero, half, zero), bias_c=flat)


ENTRY = ParameterizationFamily(
    "mup",
    make=lambda: exponents,
    text="a = (0, 1/2, ..., 1/2, 1), c = -1: feature learning in every layer",
    source=Source(
        "Yang, Hu, Feature learning in infinite-width neural networks", "Table 1", "2011.14522"
    ),
    entrywise=lambda: entrywise,
    aliases=("maximal-update",),
)
