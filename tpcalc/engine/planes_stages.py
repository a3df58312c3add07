"""Networks over positions, as convolutions are: the stages of which ``planes`` has the kernels.

Each stage has vectors at its positions: the inputs, sums of products of earlier vectors with
weights and of biases, with a function applied to them, or averages of earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_series import Smooth
from tpcalc.engine.chains_tables import PLAIN

Known = tuple[str, float, float, tuple[float, ...]]
"""The family of a function, and its numbers a, b and shape (see ``Chain``)."""
Bend = Known | Smooth
IDENTITY: Known = ("abrelu", 0.0, 1.0, PLAIN)
INPUTS = 0  # the number of the stage that inputs are
TAPS = 2**32  # more than a stage has


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
    tilt: float = 0.0  # what parameters add to tangent kernels before the function
    lift: float = 0.0  # and after it, in units of kernels, or of those of a function of the sum
    lifted: Smooth | None = None
    # of a product of the sources: mean squares of a factor, of one place of an input, and of two
    times: tuple[float, float] | None = None

    @property
    def shape(self) -> Known:
        """The family of its function, and the numbers of that."""
        if isinstance(self.bend, Smooth):
            return "smooth", 1.0, 1.0, PLAIN
        return self.bend or IDENTITY

    @property
    def dilation(self) -> float:
        """The b of f(b z)."""
        return 1.0 if self.shape[0] == "abrelu" else self.shape[2]

    @property
    def turns(self) -> bool:
        """Whether it is a|z| + bz with a corner, after which no vectors are opposite."""
        family, a, b, _ = self.shape
        return self.bend is not None and family == "abrelu" and a * a > 1e-3 * (a * a + b * b)

    @property
    def followed(self) -> bool:
        """Whether it needs covariances with their errors."""
        return (
            self.shape[0] != "abrelu"
            or self.tilt > 0
            or self.times is not None
            or self.lifted is not None
        )


def rated(stages: list[Stage]) -> tuple[Stage, ...]:
    """The same stages, with a copy for each rate of weights that read one: planes contain it."""
    needs: list[set[float]] = [set() for _ in stages]
    for s in range(len(stages) - 1, 0, -1):
        for source in stages[s].sources:
            rate = source.rate or 0.0
            if stages[s].mean is not None:
                rate = min(needs[s]) if len(needs[s]) == 1 else 0.0
            needs[source.stage].add(rate)
    found: list[Stage] = []
    new: list[dict[float, int]] = []
    for s, stage in enumerate(stages):
        first = min(needs[s], default=0.0) if len(needs[s]) < 2 else 0.0
        sources = []
        for source in stage.sources:
            read = new[source.stage]
            rate = first if stage.mean is not None else source.rate or 0.0
            sources.append(replace(source, stage=read[rate]))
        found.append(replace(stage, sources=tuple(sources)))
        new.append({first: len(found) - 1})
        for rate in sorted(needs[s] - {first}):
            places, ones = np.arange(stage.size)[:, None], np.ones((stage.size, 1))
            copied = Source(new[s][first], places, ones, None)
            new[s][rate] = len(found)
            found.append(Stage((copied,), size=stage.size))
    return tuple(found)


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
