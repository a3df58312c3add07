"""Standard normal draws in block layout: scrambled Sobol, or plain pseudorandom."""
from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws", "PlainDraws", "SobolDraws"]

Seed = int | np.random.SeedSequence


class Draws(Protocol):
    """A source of rows of N(0, 1) draws, and of single ones."""

    def fill(self, row: NDArray[np.floating], scale: float = 1.0) -> None:
        """Write the next row of normals times ``scale`` into a (blocks, block) view.

        Only the first N entries are written; float64 and float32 rows are possible.
        """

    def scalar(self) -> float:
        """One N(0, 1) draw, from a stream of its own."""


class SobolDraws:
    """Normals from a scrambled Sobol sequence: one dimension for each row, in order of use.

    Args:
        dimensions: Rows that are taken from the sequence; later ones are plain draws (as are all
            beyond dimension 21201, where the sequence ends).
        log2_samples: Rows have N = 2^log2_samples entries (at most 2^30).
        seed: Of the scramble; another seed gives an independent replicate.
    """


class PlainDraws:
    """Pseudorandom normals (PCG64).

    Args:
        size: Entries of a row.
        seed: An integer or a numpy SeedSequence.
    """
