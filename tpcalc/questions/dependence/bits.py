"""Sets of Gaussians as the bits of whole numbers, and the cells of nodes that have one each."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.limit.graph import LRef

Bits = NDArray[Any]  # of ints, with the axes of a node
Cell = tuple[int, ...]
Home = tuple[LRef, Cell]  # a cell of a node
Weights = tuple[tuple[tuple[str, int], Fraction], ...]  # members of groups with their numbers


def united_bits(sets: Iterable[int] | Bits) -> int:
    """All of several sets."""
    bits = 0
    for one in sets.flat if isinstance(sets, np.ndarray) else sets:
        bits |= one
    return bits
