"""Normalisations over the coordinates: what a layer does to a vector before its activation."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.dsl.operands import misuse, noun, number
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import Number
from tpcalc.networks.layers.given import part, tracer
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer


def layer_norm(
    h: Vector, eps: Number = 0, gain: Vector | None = None, bias: Vector | None = None
) -> Vector:
    """The vector less its mean, divided by its standard deviation over the coordinates.

    Args:
        h: A vector.
        eps: Added to the variance.
        gain: Multiplies the result, coordinate by coordinate: ``t.gain("g")``.
        bias: Added to it: ``t.vector("b")``.

    Returns:
        (h - E h) / sqrt(E (h - E h)^2 + eps), E the mean over coordinates.

    Source: Ba, Kiros, Hinton, Layer normalization (2016), equations (3) and (4).

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def normed(t):
        ...     t.output("x", layer_norm(t.gaussian("h")))
        >>> [type(node).__name__ for node in normed.nodes]
        ['Input', 'Moment', 'Nonlin', 'Moment', 'Nonlin', 'LinComb']
    """
    _check(h, "layer norm")
    return rms_norm(h - Tracer(h.recorder).mean(h), eps, gain, bias)


def rms_norm(
    h: Vector, eps: Number = 0, gain: Vector | None = None, bias: Vector | None = None
) -> Vector:
    """The vector divided by the root of its mean square.

    Args:
        h: A vector.
        eps: Added to the mean square.
        gain: Multiplies the result, coordinate by coordinate.
        bias: Added to it.

    Returns:
        A vector with the axes of ``h``.

    Source: Zhang, Sennrich, Root mean square layer normalization (2019), equation (4).

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def normed(t):
        ...     t.output("x", rms_norm(t.gaussian("h"), eps=1))
        >>> [type(node).__name__ for node in normed.nodes]
        ['Input', 'Moment', 'Nonlin', 'Nonlin', 'LinComb']
    """
    _check(h, "RMS norm")
    square = Tracer(h.recorder).inner(h, h)
    added = number(eps, "eps")
    return scaled((square + added if added else square) ** Fraction(-1, 2) * h, gain, bias)


def scaled(x: Vector, gain: Vector | None, bias: Vector | None) -> Vector:
    """A vector times a gain plus a bias, where they are there."""
    x = x if gain is None else gain * x
    return x if bias is None else x + bias


def _check(h: object, what: str) -> None:
    if not isinstance(h, Vector):
        raise misuse(f"{what} is taken of a vector, not of {noun(h)}.")


class Norm(Layer):
    """A normalisation with a trained gain and bias."""

    def __init__(
        self,
        t: NetworkTracer,
        gain: bool = True,
        bias: bool = True,
        eps: Number = 0,
        *,
        name: str = "",
    ) -> None:
        what, self.eps = type(self).__name__, eps
        self.gain = tracer(t, what).parameter(part(name, "gain"), start=0) if gain else None
        self.bias = tracer(t, what).parameter(part(name, "bias"), start=0) if bias else None

    def _scaled(self, x: Vector) -> Vector:
        gain, bias = (None if one is None else one.vector(x.dim) for one in (self.gain, self.bias))
        return scaled(x, None if gain is None else 1 + gain, bias)


class LayerNorm(Norm):
    """Layer norm with a trained gain, which starts at 1, and a bias, which starts at 0.

    Args:
        t: The tracer of the network.
        gain: Whether there is a gain.
        bias: Whether there is a bias.
        eps: Added to the variance.
        name: Its name, where no class keeps it.

    Source: Ba, Kiros, Hinton, Layer normalization (2016), equation (4).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.LayerNorm(t, name="norm")(t.linear(t.n, "in", name="u")(x))
        ...     return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))
        >>> [mark.label for mark in net.marks]
        ['u', 'norm.gain', 'norm.bias', 'v']
    """

    def __call__(self, h: Vector) -> Vector:
        """The normalised vector.

        Args:
            h: A vector, or a block of vectors, each of which is normalised.
        """
        return self._scaled(layer_norm(h, self.eps))


class RMSNorm(Norm):
    """RMS norm with a trained gain, which starts at 1, and without a bias unless asked for.

    Args:
        t: The tracer of the network.
        gain: Whether there is a gain.
        bias: Whether there is a bias.
        eps: Added to the mean square.
        name: Its name, where no class keeps it.

    Source: Zhang, Sennrich, Root mean square layer normalization (2019), equation (4).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.RMSNorm(t, name="norm")(t.linear(t.n, "in", name="u")(x))
        ...     return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))
        >>> [mark.label for mark in net.marks]
        ['u', 'norm.gain', 'v']
    """

    def __init__(
        self,
        t: NetworkTracer,
        gain: bool = True,
        bias: bool = False,
        eps: Number = 0,
        *,
        name: str = "",
    ) -> None:
        super().__init__(t, gain, bias, eps, name=name)

    def __call__(self, h: Vector) -> Vector:
        """The normalised vector.

        Args:
            h: A vector, or a block of vectors, each of which is normalised.
        """
        return self._scaled(rms_norm(h, self.eps))
