"""How many sums of Gaussians are independent, as far as rounding tells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["Weights", "rank", "root"]

SINGULAR = 1e-12  # of the largest: an eigenvalue of a covariance that may be rounding
Weights = dict[tuple[str, int], float]  # of independent Gaussians: group and number of each


def rank(rows: Sequence[Weights]) -> int:
    """How many of some sums are independent.

    Args:
        rows: The sums.
    """
    columns = sorted({place for row in rows for place in row})
    if not columns:
        return 0
    table = np.array([[row.get(place, 0.0) for place in columns] for row in rows])
    table /= np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)
    return int(np.linalg.matrix_rank(table, tol=SINGULAR**0.5))


def root(cov: Sequence[Sequence[Fraction | float]]) -> Any:
    """A matrix whose product with its transpose is a covariance.

    Args:
        cov: The covariance.
    """
    values, vectors = np.linalg.eigh(np.array(cov, dtype=float))
    kept = np.where(values > SINGULAR * values.max(initial=0.0), values, 0.0)
    return vectors * np.sqrt(kept)
