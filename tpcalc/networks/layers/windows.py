"""Windows: the neighbours of every position, as a block with an axis of offsets."""

from __future__ import annotations

from typing import TypeVar

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.operands import misuse
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.networks.layers.given import size_of, whole, word

Block = TypeVar("Block", Vector, Scalar)
PADDINGS = ("zero", "none", "circular")


def windows(
    x: Block,
    axis: str,
    size: int,
    stride: int = 1,
    padding: str = "zero",
    offsets: str = "k",
    dilation: int = 1,
) -> Block:
    """The cells around every position of an axis.

    Args:
        x: A block with the axis.
        axis: The axis; in the result it has a cell for each window.
        size: How many cells a window has.
        stride: How far one window starts after the last.
        padding: ``"zero"``: a window around every position, with zeros outside (of an even window
            the longer side is to the right); ``"circular"``: the same on a ring; ``"none"``:
            windows inside alone.
        offsets: The name of the axis along a window.
        dilation: How far the cells of a window are from each other.

    Returns:
        The block with an axis more: entry k of window p is x at place
        p stride + k dilation - margin.

    Raises:
        TraceError: There is no such axis, a number is no count, or no window fits.

    Source: LeCun et al., Gradient-based learning applied to document recognition (1998), section
        II.A.

    Example:
        >>> from tpcalc.dsl.trace import program
        >>> @program
        ... def around(t):
        ...     x = t.data("x", [1, 2, 3], ("p",))
        ...     t.output("pairs", windows(x, "p", 2, padding="none"))
        >>> str(around.types[-1])
        '[k:2,p:2]'
    """
    places, what = size_of(x, axis, "a window"), "a window"
    size, stride = whole(size, "the size", what), whole(stride, "the stride", what)
    padded = word(padding, "the padding", what, PADDINGS) != "none"
    wide = (size - 1) * whole(dilation, "the dilation", what) + 1
    if offsets in x.axes:
        raise misuse(
            f"the offsets of a window along {axis!r} would be a second axis {offsets!r}.",
            "Rename that of the block: x.renamed(k='m').",
        )
    if wide > places and not padded:
        raise misuse(
            f"a window of {wide} cells does not fit along {axis!r}, which has {places}.",
            "Take a smaller one, or padding='zero'.",
        )
    cells = _cells(places, size, dilation, padding == "circular", padded)
    t, twin = Tracer(x.recorder), f"{axis}'"
    chosen = t.constant([step[::stride] for step in cells], (offsets, axis, twin), "window")
    return t.sum(chosen * x.renamed(**{axis: twin}), twin)


def _cells(places: int, size: int, apart: int, ring: bool, padded: bool) -> list[list[list[int]]]:
    """Of each step along a window and each start, which cell it is."""
    wide = (size - 1) * apart + 1
    margin = (size - 1) // 2 * apart if padded else 0
    starts = range(-margin, places - (margin + 1 if padded else wide) + 1)
    turn = places if ring else wide + places  # beyond all of them
    return [
        [
            [int(place == (start + step * apart) % turn) for place in range(places)]
            for start in starts
        ]
        for step in range(size)
    ]
