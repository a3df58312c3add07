"""How many sums of Gaussians are independent, as far as rounding tells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.limit.building import Building
from tpcalc.limit.graph import Total, starts_of
from tpcalc.program.base import data_of

SINGULAR = 1e-12  # of the largest: an eigenvalue of a covariance that may be rounding
Weights = dict[tuple[str, int], float]  # of independent Gaussians: group and number of each


def rank(rows: Sequence[Weights]) -> int:
    """How many of some sums are independent."""
    columns = sorted({place for row in rows for place in row})
    if not columns:
        return 0
    table = np.array([[row.get(place, 0.0) for place in columns] for row in rows])
    table /= np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)
    return int(np.linalg.matrix_rank(table, tol=SINGULAR**0.5))


def root(cov: Sequence[Sequence[Fraction | float]]) -> Any:
    """A matrix whose product with its transpose is a covariance."""
    values, vectors = np.linalg.eigh(np.array(cov, dtype=float))
    kept = np.where(values > SINGULAR * values.max(initial=0.0), values, 0.0)
    return vectors * np.sqrt(kept)


def is_full(context: Building, node: Total) -> bool:
    """Whether every cell of a sum is a Gaussian that varies."""
    (vector, *more), scalar, over = node.vectors, node.scalars[0], node.over[0]
    starts = starts_of(context.nodes[vector])
    data = None if scalar is None else data_of(context.nodes[scalar])
    if more or starts is None or data is None:
        return False
    group, sizes = context.program.group[starts.group], dict(data.axes)
    summed = {name for name, _ in group.axes} == set(over) <= sizes.keys()
    if not summed or group.cov is not None:
        return False
    cells = np.array([number != 0 for number in data.values]).reshape([*sizes.values()])
    rows = cells.any(axis=tuple(place for place, name in enumerate(sizes) if name in over))
    return bool(rows.all())
