"""Gated linear units: one linear map times a function of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.activations.entries.gelu import GELU
from tpcalc.activations.entries.sigmoid import SIGMOID
from tpcalc.activations.entries.swish import SWISH
from tpcalc.dsl.elementwise import elementwise
from tpcalc.networks.layers.given import activation, part, tracer
from tpcalc.networks.maps import Side
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer


class GLU(Layer):
    """A gated linear unit: act(W x + b) * (V x + c), coordinate by coordinate.

    Args:
        t: The tracer of the network.
        out: What the maps go to: a width (``t.n``).
        into: What they come from: a width, or the name of a finite axis.
        act: The function of the gate; by default the sigmoid.
        bias: Whether the maps have biases.
        name: Its name, where no class keeps it.

    Source: Dauphin, Fan, Auli, Grangier, Language modeling with gated convolutional networks
        (2017), equation (1); Shazeer, GLU variants improve transformer (2020), equations (3)-(5).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.GLU(t, t.n, "in", tp.tanh, name="glu")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> [mark.label for mark in net.marks]
        ['glu.gate', 'glu.up', 'v']
    """

    default = SIGMOID

    def __init__(
        self,
        t: NetworkTracer,
        out: Side,
        into: Side,
        act: Callable[[Any], Any] | str | None = None,
        bias: bool | str = False,
        *,
        name: str = "",
    ) -> None:
        kind = type(self).__name__
        t = tracer(t, kind)
        self.act = activation(elementwise(self.default) if act is None else act, kind)
        self.gate = t.linear(out, into, bias, name=part(name, "gate"))
        self.up = t.linear(out, into, bias, name=part(name, "up"))

    def __call__(self, x: Any) -> Any:
        """The unit applied.

        Args:
            x: What its maps take; every cell of its other axes is mapped alike.
        """
        return self.act(self.gate(x)) * self.up(x)


class SwiGLU(GLU):
    """A gated linear unit whose gate is z * sigmoid(z).

    Args:
        t: The tracer of the network.
        out: What the maps go to.
        into: What they come from.
        act: The function of the gate; by default ``tp.swish``.
        bias: Whether the maps have biases.
        name: Its name, where no class keeps it.

    Source: Shazeer, GLU variants improve transformer (2020), equation (5).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.SwiGLU(t, t.n, "in", name="glu")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> net.hidden
        1
    """

    default = SWISH


class GEGLU(GLU):
    """A gated linear unit whose gate is GELU.

    Args:
        t: The tracer of the network.
        out: What the maps go to.
        into: What they come from.
        act: The function of the gate; by default ``tp.gelu``.
        bias: Whether the maps have biases.
        name: Its name, where no class keeps it.

    Source: Shazeer, GLU variants improve transformer (2020), equation (5).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.GEGLU(t, t.n, "in", name="glu")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> net.hidden
        1
    """

    default = GELU
