"""Jointly Gaussian scalars with a covariance of inner products, drawn one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine import kernels

__all__ = ["NoiseFamily"]


class NoiseFamily:
    """Draws g(x), Gaussian and linear in x, with E g(x) g(y) = average(x y).

    The covariance of the draws so far is kept as a Cholesky factor; vectors that depend on earlier
    ones get the value that linearity gives them.
    """

    def __init__(self) -> None:
        self._vectors: list[NDArray[np.float64]] = []
        self._rows: list[NDArray[np.float64]] = []
        self._draws: list[float] = []

    def draw(self, vector: NDArray[np.float64], size: int, normal: float) -> float:
        """The value for a vector.

        Args:
            vector: Flat, of padded length.
            size: Number of samples.
            normal: A fresh N(0, 1) draw.
        """
        overlaps = [kernels.dot(vector, other) / size for other in self._vectors]
        row = np.zeros(len(self._vectors) + 1)
        for index, overlap in enumerate(overlaps):
            known = self._rows[index]
            row[index] = (overlap - float(np.dot(known[:index], row[:index]))) / known[index]
        square = kernels.dot(vector, vector) / size
        residual = square - float(np.dot(row, row))
        value = float(np.dot(row[:-1], np.array(self._draws)))
        if residual > 1e-12 * square:
            row[-1] = np.sqrt(residual)
            value += float(row[-1]) * normal
            self._vectors.append(vector.copy())
            self._rows.append(row)
            self._draws.append(normal)
        return value
