"""Networks over positions, as convolutions are: the stages of which ``planes`` has the kernels.

Each stage has vectors at its positions: the inputs, sums of products of earlier vectors with
weights and of biases, with a function applied to them, or averages of earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tpcalc.arrays import Array, Index

Bend = tuple[str, float, float, float]
"""The family of a function, and its numbers a, b and cos 2c (see ``Chain``)."""
INPUTS = 0  # the number of the stage that inputs are


@dataclass(frozen=True, eq=False)
class Source:
    """What a sum reads of one stage: of each tap the place in each position, -1 for none."""

    stage: int
    places: Index  # (positions, taps)
    factors: Array  # (positions, taps)
    rate: float | None  # of the weights that multiply it, one for each tap; None: there are none


@dataclass(frozen=True, eq=False)
class Stage:
    """Vectors at positions."""

    sources: tuple[Source, ...] = ()
    biases: tuple[tuple[Array, float], ...] = ()  # factors at the positions, and the rate
    bend: Bend | None = None  # what is applied to the sum
    mean: Any = None  # a sparse matrix: averages of the positions of the one source
    size: int = 1
    norm: float | None = None  # of vectors divided by sqrt(square + norm)
