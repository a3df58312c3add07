"""Rows of samples in block layout, and linear combinations of them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SampleSpace:
    """Where vectors live: a number of samples and the ratio of its dimension to n.

    Args:
        size: Number of samples N (of coordinates, at finite width).
        ratio: Dimension divided by n.
        block: Samples in a block.
    """

    size: int
    ratio: float = 1.0
    block: int = 512

    @property
    def padded(self) -> int:
        """Length of a vector: the size, rounded up to whole blocks."""

    def zeros(self) -> Vector:
        """A new vector of zeros."""


class Store:
    """A growing list of rows over one space, as ``data[blocks, capacity, block]``.

    Entries beyond ``size`` are and stay 0.

    Args:
        size: Number of samples.
        capacity: Largest number of rows.
        dtype: float64 or float32.
        block: Samples in a block.

    Attributes:
        data: The array.
        rows: Number of rows in use.
    """

    def row_view(self, row: int) -> NDArray[np.floating]:
        """Row number ``row`` as a (blocks, block) view."""

    def append(self, vector: Vector) -> int:
        """Copy a vector into the next row; returns its number."""

    def reserve(self) -> int:
        """Take the next row without writing it; returns its number."""

    def clear(self) -> None:
        """Forget all rows, keep the memory."""

    def dots(self, vectors: Sequence[Vector]) -> NDArray[np.float64]:
        """Sums over the samples of row i times vector j, shape (rows, B)."""


def materialise(out, terms) -> None:
    """Write linear combinations of rows: out_j = sum over terms, sum_i coefficients[j, i] row_i.

    One pass over ``out`` for every two stores. Coefficients may be shorter than the store
    has rows (the rest counts as 0).

    Args:
        out: A vector, or a list of B vectors.
        terms: Pairs (store or basis, coefficients); coefficients have shape (k,) for one vector,
            (B, k) for a list.
    """


def accumulate(out, terms) -> None:
    """Like ``materialise``, but adds to ``out``."""
