"""The variance of the weights that the commands about signals take where none is typed."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpcalc.functions import Expr

_DIGITS = 12


def kept(tau: Expr, biases: Fraction, share: Fraction) -> Fraction:
    """The variance with which a layer keeps preactivations of the second moment 1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> kept(lookup("relu").fn.expr, Fraction(0), Fraction(1, 4))
        Fraction(8, 1)
    """
    from tpcalc.errors import UsageError
    from tpcalc.meanfield.maps.layer_map import LayerMap

    if biases >= 1:
        raise UsageError(
            "--weights: no weights keep a second moment of 1 with such biases.",
            hint="Give the variance of the weights.",
        )
    second = LayerMap(tau, 1.0).length(1.0).value
    return Fraction(f"{float((1 - biases) / share) / second:.{_DIGITS}g}")
