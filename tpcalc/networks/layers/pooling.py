"""Pooling: averages and maxima over windows of finite axes, or over all of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from typing import TypeVar

from tpcalc.activations.entries.relu import RELU
from tpcalc.dsl.elementwise import elementwise
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.networks.layers.given import axes_of, size_of
from tpcalc.networks.layers.windows import windows

Block = TypeVar("Block", Vector, Scalar)
POSITIVE = elementwise(RELU)


def average_pool(
    x: Block,
    axis: str | tuple[str, ...] = "p",
    size: int | None = None,
    stride: int | None = None,
) -> Block:
    """Averages over windows of finite axes, coordinate by coordinate.

    Args:
        x: A block with the axes.
        axis: The axis, or several.
        size: How many cells a window has along each axis; None: all, and the axis is gone.
        stride: How far one window starts after the last; None: as far as it is long.

    Returns:
        A block with as many cells along the axes as windows fit, or without the axes.

    Raises:
        TraceError: There is no such axis, a number is no count, or no window fits.

    Source: LeCun et al., Gradient-based learning applied to document recognition (1998), section
        II.B.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def pooled(t):
        ...     x = t.gaussian("x", axes={"p": 6})
        ...     t.output("halves", average_pool(x, size=3))
        ...     t.output("mean", average_pool(x))
        >>> [str(pooled.types[ref]) for _, ref in pooled.outputs]
        ['n[p:2]', 'n']
    """
    x, offsets, cells = _windowed(x, axis, size, stride, "average_pool")
    total = Tracer(x.recorder).sum(x, *offsets)
    mean: Block = total * Fraction(1, cells)
    return mean


def max_pool(
    x: Block,
    axis: str | tuple[str, ...] = "p",
    size: int | None = None,
    stride: int | None = None,
) -> Block:
    """Maxima over windows of finite axes, coordinate by coordinate.

    Args:
        x: A block with the axes.
        axis: The axis, or several.
        size: How many cells a window has along each axis; None: all, and the axis is gone.
        stride: How far one window starts after the last; None: as far as it is long.

    Returns:
        The maxima; one of two is b + relu(a - b), and of more a maximum of maxima.

    Raises:
        TraceError: There is no such axis, a number is no count, or no window fits.

    Source: Riesenhuber, Poggio, Hierarchical models of object recognition in cortex (1999).

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def pooled(t):
        ...     t.output("largest", max_pool(t.gaussian("x", axes={"p": 6}), size=3))
        >>> str(pooled.types[-1])
        'n[p:2]'
    """
    x, offsets, _ = _windowed(x, axis, size, stride, "max_pool")
    cells = product(*(range(x.axes[one]) for one in offsets))
    values = [x.at(**dict(zip(offsets, cell, strict=True))) for cell in cells]
    while len(values) > 1:  # in rounds, so that no function is nested deeper than it must be
        rest = values[len(values) // 2 * 2 :]
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [b + POSITIVE(a - b) for a, b in pairs] + rest
    return values[0]


def _windowed(
    x: Block, axis: str | tuple[str, ...], size: int | None, stride: int | None, what: str
) -> tuple[Block, tuple[str, ...], int]:
    """A block with its windows, their axes, and how many cells one has."""
    axes = axes_of(axis, what)
    sizes = [size_of(x, one, what) for one in axes]
    if size is None:
        return x, axes, prod(sizes)
    for one in axes:
        step = size if stride is None else stride
        x = windows(x, one, size, step, "none", f"k_{one}")
    return x, tuple(f"k_{one}" for one in axes), size ** len(axes)
