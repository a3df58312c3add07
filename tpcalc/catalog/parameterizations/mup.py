"""The maximal update parameterization: every layer learns features in the limit."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.catalog.parameterization import Exponents, ParameterizationFamily, layers, shared
from tpcalc.orders import as_ex
from tpcalc.sources import Source


def exponents(depth: int, step: int) -> Exponents:
    """The table of muP: a = (0, 1/2, ..., 1/2, 1), c = -1.

    Source: Hajjar, Chizat, Giraud, section 2.2; Yang and Hu, Definition 5.1 after Remark 2.1.
    """
    zero, half, one = as_ex(0), as_ex(Fraction(1, 2)), as_ex(1)
    return shared(layers(depth, zero, half, one), layers(depth, -one, -one, -one))


ENTRY = ParameterizationFamily(
    "mup",
    make=lambda: exponents,
    text="a = (0, 1/2, ..., 1/2, 1), c = -1: feature learning in every layer",
    source=Source(
        "Yang, Hu, Feature learning in infinite-width neural networks", "Table 1", "2011.14522"
    ),
    aliases=("maximal-update",),
)
