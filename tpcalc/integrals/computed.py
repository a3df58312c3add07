"""A number or an array of numbers with a bound on its error."""

from __future__ import annotations

from typing import Any, NamedTuple


class Computed(NamedTuple):
    """Values of an expectation, and how far they may be off.

    Args:
        value: float64, of shape () or of the shape that the covariances broadcast to.
        error: A bound on |value - truth|, of a shape that broadcasts to that of ``value``:
            rounding and truncation, for covariances that are exactly the floats given.

    Example:
        >>> Computed(0.5, 1e-16).value
        0.5
    """

    value: Any
    error: Any
