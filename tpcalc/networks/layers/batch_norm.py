"""Normalisation of each coordinate over a finite axis."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from tpcalc.dsl.operands import misuse, noun
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import Number
from tpcalc.networks.layers.given import axes_of, size_of
from tpcalc.networks.layers.norms import Norm, scaled
from tpcalc.networks.tracer import NetworkTracer


def batch_norm(
    x: Vector,
    axis: str | tuple[str, ...] = "b",
    eps: Number = 0,
    gain: Vector | None = None,
    bias: Vector | None = None,
) -> Vector:
    """Each coordinate less its mean over an axis, divided by its standard deviation over it.

    The samples of a training step are no axis: a network is a function of one input. Over samples
    it is taken where an input is a batch, ``axes = {"b": 4}``; over positions it is what is called
    instance norm.

    Args:
        x: A block of vectors.
        axis: The axis, or several.
        eps: Added to the variance.
        gain: Multiplies the result, coordinate by coordinate.
        bias: Added to it.

    Returns:
        A block with the axes of ``x``.

    Raises:
        TraceError: There is no such axis, or it has a single cell.

    Source: Ioffe, Szegedy, Batch normalization (2015), algorithm 1.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def normed(t):
        ...     t.output("x", batch_norm(t.gaussian("h", axes={"b": 4}), "b"))
        >>> str(normed.types[-1])
        'n[b:4]'
    """
    axes = axes_of(axis, "batch norm")
    count = prod(size_of(x, one, "batch norm") for one in axes)
    if not isinstance(x, Vector):
        raise misuse(f"batch norm is taken of vectors, not of {noun(x)}.")
    if count == 1:
        raise misuse(f"batch norm over {axis!r}, which has one cell, is 0 everywhere.")
    t, share = Tracer(x.recorder), Fraction(1, count)
    centred = x - share * t.sum(x, *axes)
    variance = share * t.sum(centred * centred, *axes)
    return scaled(centred * (variance + eps) ** Fraction(-1, 2), gain, bias)


class BatchNorm(Norm):
    """Batch norm with a trained gain, which starts at 1, and a bias, which starts at 0.

    Args:
        t: The tracer of the network.
        axis: The axis, or several.
        gain: Whether there is a gain.
        bias: Whether there is a bias.
        eps: Added to the variance.
        name: Its name, where no class keeps it.

    Source: Ioffe, Szegedy, Batch normalization (2015), algorithm 1.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"b": 4}
        ...     def __init__(self, t):
        ...         self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        ...         self.norm = tp.layers.BatchNorm(t)
        ...     def forward(self, x):
        ...         return self.v(tp.relu(self.norm(self.u(x))))
        >>> tp.network(Net).positions
        4
    """

    def __init__(
        self,
        t: NetworkTracer,
        axis: str | tuple[str, ...] = "b",
        gain: bool = True,
        bias: bool = True,
        eps: Number = 0,
        *,
        name: str = "",
    ) -> None:
        super().__init__(t, gain, bias, eps, name=name)
        self.axis = axes_of(axis, "batch norm")

    def __call__(self, x: Vector) -> Vector:
        """The normalised block.

        Args:
            x: A block of vectors.

        Raises:
            TraceError: There is no such axis, or it has a single cell.
        """
        return self._scaled(batch_norm(x, self.axis, self.eps))
