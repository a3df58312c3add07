"""Jointly Gaussian scalars with a covariance of inner products, of all replicates at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpcalc.engine.device.rows import Place


class NoiseFamily:
    """The law of ``noise.NoiseFamily``; a draw that earlier ones determine is a row of zeros.

    Args:
        replicates: How many.
        place: Where tensors are.
    """

    def __init__(self, replicates: int, place: Place) -> None:
        self._place = place
        self._weights: list[Any] = []
        self._vectors: list[list[Any]] = []
        self._factor = place.zeros(replicates, 0, 0, double=True)
        self._draws = place.zeros(replicates, 0, double=True)

    def draw(
        self, weights: Sequence[float], vectors: Sequence[tuple[Any, int]], normal: Any
    ) -> Any:
        """The values for weights and vectors."""
        torch, known = self._place.torch, self._draws.shape[1]
        self._weights.append(np.array(weights))
        self._vectors.append([vector.clone() for vector, _ in vectors])
        overlaps = torch.stack([self._overlap(k, vectors) for k in range(known + 1)], 1)
        square, pivots = overlaps[:, known], self._factor.diagonal(dim1=1, dim2=2)
        held = torch.where(pivots > 0, overlaps[:, :known], 0.0)
        whole = self._factor + torch.diag_embed((pivots == 0).double())
        row = torch.linalg.solve_triangular(whole, held[:, :, None], upper=False)[:, :, 0]
        row = torch.where(pivots > 0, row, 0.0)
        residual = square - (row * row).sum(1)
        last = torch.where(residual > 1e-12 * square, residual.clamp(min=0).sqrt(), 0.0)
        value = (row * self._draws).sum(1) + last * normal
        grown = self._place.zeros(len(row), known + 1, known + 1, double=True)
        grown[:, :known, :known] = self._factor
        grown[:, known, :known], grown[:, known, known] = row, last
        self._factor, self._draws = grown, torch.cat([self._draws, normal[:, None]], 1)
        return value

    def _overlap(self, index: int, vectors: Sequence[tuple[Any, int]]) -> Any:
        """The covariances of an earlier draw and the last one."""
        total = float(np.dot(self._weights[index], self._weights[-1]))
        found = self._place.zeros(len(self._draws), double=True) + total
        for x, (y, size) in zip(self._vectors[index], vectors, strict=True):
            found = found * (x * y).sum(1, dtype=self._place.torch.float64) / size
        return found
