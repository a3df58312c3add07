"""Convolutions over finite axes: one linear map for each offset of a window, summed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.dsl.operands import as_rational, misuse
from tpcalc.functions.numbers import Number, root
from tpcalc.networks.layers.given import axes_of, part, tracer, whole, word
from tpcalc.networks.layers.windows import PADDINGS, windows
from tpcalc.networks.maps import Side
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer


class Conv(Layer):
    """A convolution over one or several axes of positions, the same weights at all of them.

    y_p = sum_k W_k x_{p stride + k dilation - margin} + b. Entries of the weights are N(0, 1) like
    those of every map, so that a window of K cells has K times the variance; ``variance="1/K"``
    takes it out.

    Args:
        t: The tracer of the network.
        out: What it maps to: a width (``t.n``).
        into: What it maps from: a width, or the name of a finite axis of the input (``"in"``).
        axis: The axis of positions, or several: ``("y", "x")`` for images.
        size: How many cells a window has along each of them.
        stride: How far one window starts after the last.
        padding: ``"zero"``: a window around every position; ``"circular"``: on a ring;
            ``"none"``: windows inside alone.
        bias: Whether a bias is added.
        variance: Of the weights, as a factor in front of them.
        dilation: How far the cells of a window are from each other.
        name: Its name, where no class keeps it.

    Raises:
        TraceError: A number is no count, or there is no such padding.

    Source: Novak et al., Bayesian deep convolutional networks with many channels are Gaussian
        processes (2019), equation (1).

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 5}
        ...     def __init__(self, t):
        ...         self.conv = tp.layers.Conv(t, t.n, "in", size=3, stride=2)
        ...         self.read = t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.relu(self.conv(x)))
        >>> tp.network(Net).positions
        3
    """

    def __init__(
        self,
        t: NetworkTracer,
        out: Side,
        into: Side,
        axis: str | tuple[str, ...] = "p",
        size: int = 3,
        stride: int = 1,
        padding: str = PADDINGS[0],
        bias: bool | str = False,
        variance: Number | str = Fraction(1),
        dilation: int = 1,
        *,
        name: str = "",
    ) -> None:
        self.axes = axes_of(axis, "Conv")
        self.size = whole(size, "the size", "Conv")
        self.stride = whole(stride, "the stride", "Conv")
        self.padding = word(padding, "the padding", "Conv", PADDINGS)
        self.dilation = whole(dilation, "the dilation", "Conv")
        spread = as_rational(variance, "the variance of Conv")
        if spread <= 0:
            raise misuse(f"the variance of Conv is {variance}.", "It is larger than 0.")
        offsets = {f"k_{one}": self.size for one in self.axes}
        self.map = tracer(t, "Conv").linear(
            out, into, bias, axes=offsets, over=tuple(offsets), name=part(name, "map"),
            factors=(root(spread), Fraction(1)),
        )  # fmt: skip

    def __call__(self, x: Any) -> Any:
        """The convolution of a block.

        Args:
            x: A block with the axes of positions: data, or vectors.

        Raises:
            TraceError: An axis is not there, or no window fits.
        """
        for axis in self.axes:
            own = self.size, self.stride, self.padding, f"k_{axis}", self.dilation
            x = windows(x, axis, *own)
        return self.map(x)
