"""Jointly Gaussian scalars with a covariance of inner products, drawn one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import kernels

_Place = tuple[Array, Sequence[tuple[Array, int]]]


class NoiseFamily:
    """Draws that are linear in weights w and in vectors x: E g(w, x) g(v, y) = w.v average(x y).

    The covariance of the draws so far is kept as a Cholesky factor; what depends on earlier ones
    gets the value that linearity gives it.
    """

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._rows: list[Array] = []
        self._draws: list[float] = []

    def draw(
        self,
        weights: Sequence[float],
        vectors: Sequence[tuple[Array, int]],
        normal: float,
    ) -> float:
        """The value for weights and vectors."""
        place = np.array(weights), vectors
        overlaps = [_overlap(place, other) for other in self._places]
        row = np.zeros(len(overlaps) + 1)
        for index, overlap in enumerate(overlaps):
            known = self._rows[index]
            row[index] = (overlap - float(np.dot(known[:index], row[:index]))) / known[index]
        square = _overlap(place, place)
        residual = square - float(np.dot(row, row))
        value = float(np.dot(row[:-1], np.array(self._draws)))
        if residual > 1e-12 * square:
            row[-1] = np.sqrt(residual)
            value += float(row[-1]) * normal
            self._places.append((place[0], [(vector.copy(), size) for vector, size in vectors]))
            self._rows.append(row)
            self._draws.append(normal)
        return value


def _overlap(a: _Place, b: _Place) -> float:
    """The covariance of two draws."""
    total = float(np.dot(a[0], b[0]))
    for (x, size), (y, _) in zip(a[1], b[1], strict=True):
        total *= float(kernels.dot(x, y)[0]) / size
    return total
