"""Normalisations: what a layer does to a vector before its activation."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import Number

__all__ = ["layer_norm", "rms_norm"]


def layer_norm(h: Vector, eps: Number = 0) -> Vector:
    """The vector less its mean, divided by its standard deviation over the coordinates.

    Args:
        h: A vector.
        eps: Added to the variance.

    Returns:
        (h - E h) / sqrt(E (h - E h)^2 + eps), E the mean over coordinates.

    Source: Ba, Kiros, Hinton, Layer normalization (2016), equation (3).

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def normed(t):
        ...     t.output("x", layer_norm(t.gaussian("h")))
        >>> [type(node).__name__ for node in normed.nodes]
        ['Input', 'Moment', 'Nonlin', 'Moment', 'Nonlin', 'LinComb']
    """
    return rms_norm(h - Tracer(h.recorder).mean(h), eps)


def rms_norm(h: Vector, eps: Number = 0) -> Vector:
    """The vector divided by the root of its mean square.

    Args:
        h: A vector.
        eps: Added to the mean square.

    Source: Zhang, Sennrich, Root mean square layer normalization (2019), equation (4).

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def normed(t):
        ...     t.output("x", rms_norm(t.gaussian("h"), eps=1))
        >>> [type(node).__name__ for node in normed.nodes]
        ['Input', 'Moment', 'Nonlin', 'Nonlin', 'LinComb']
    """
    square = Tracer(h.recorder).inner(h, h)
    return (square if eps == 0 else square + eps) ** Fraction(-1, 2) * h
