"""The dense layer: an activation of a linear map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.networks.layers.given import activation, part, tracer
from tpcalc.networks.maps import Side
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer


class Dense(Layer):
    """An activation of a linear map: act(W x + b).

    Args:
        t: The tracer of the network.
        out: What the map goes to: a width (``t.n``).
        into: What it comes from: a width, or the name of a finite axis (``"in"``).
        act: The activation, ``tp.relu`` or its name; None: none.
        bias: Whether a bias is added; ``"zero"``: one that starts at 0.
        name: Its name, where no class keeps it.

    Source: Rumelhart, Hinton, Williams, Learning representations by back-propagating errors
        (1986), equations (1) and (2).

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = tp.layers.Dense(t, t.n, "in", tp.tanh, name="u")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(h)
        >>> [mark.label for mark in net.marks]
        ['u.map', 'v']
    """

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
        self.act = None if act is None else activation(act, "Dense")
        self.map = tracer(t, "Dense").linear(out, into, bias, name=part(name, "map"))

    def __call__(self, x: Any) -> Any:
        """The layer applied.

        Args:
            x: What its map takes; every cell of its other axes is mapped alike.
        """
        h = self.map(x)
        return h if self.act is None else self.act(h)
