"""Labels of vectors at positions: equal ones are known, which covariances near them are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.planes_stages import Stage

TAPS = 2**32  # more than there are


def _mixed(numbers: Any) -> Any:
    """Numbers that look random, of 64 bits."""
    found = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return found ^ (found >> np.uint64(31))


def labels_of(stages: Sequence[Stage], inputs: Array) -> list[Index]:
    """Numbers of vectors (N, positions), equal where the same is computed of equal inputs."""
    count, size, length = inputs.shape
    _, data = np.unique(inputs.reshape(-1, length), axis=0, return_inverse=True)
    found: list[Any] = [_mixed(data.reshape(count, size).astype(np.uint64))]
    for stage in stages[1:]:
        total = np.zeros((count, stage.size), dtype=np.uint64)
        for source in stage.sources:
            read = found[source.stage]
            if stage.mean is not None:
                entries = stage.mean.tocoo()
                parts = _mixed(read[:, entries.col] ^ _mixed(entries.data.view(np.uint64)))
                np.add.at(total.T, entries.row, parts.T)
                continue
            first = source.stage * TAPS
            taps = _mixed(np.arange(first, first + source.places.shape[1], dtype=np.uint64))
            factors = _mixed(np.ascontiguousarray(source.factors).view(np.uint64) ^ _mixed(taps))
            parts = _mixed(read[:, np.maximum(source.places, 0)] ^ factors)
            total += np.where(source.places >= 0, parts, np.uint64(0)).sum(axis=2, dtype=np.uint64)
        for factors, _ in stage.biases:
            total += _mixed(np.ascontiguousarray(factors).view(np.uint64))
        if stage.times is not None and stage.times[0] != stage.times[1]:  # noise of its own
            total += _mixed(np.arange(total.size, dtype=np.uint64).reshape(total.shape))
        found.append(total)
    return [one.view(np.int64) for one in found]
