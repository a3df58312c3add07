"""The registers of a script while it runs, whether arrays or tensors hold their numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tpcalc.engine.directions_store import SampleSpace
from tpcalc.engine.draws import Draws, PlainDraws, SobolDraws
from tpcalc.engine.instructions import (
    Dot,
    DrawScalar,
    Gram,
    Map,
    Matrix,
    Mean,
    Multiply,
    Noise,
    Outer,
    Panel,
    ScalarMap,
    Starts,
    Sum,
)
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Outcome, Setting
from tpcalc.engine.vectors import Key


def streams(plan: Plan, setting: Setting, seeds: Sequence[Sequence[int]]) -> list[Draws]:
    """The normal draws of each group of vectors with joint samples, for the seeds of replicates.

    Pseudorandom ones are as good from one stream for each space.
    """
    spaces = {space.name: (i, space.ratio) for i, space in enumerate(plan.script.spaces)}

    def own(i: int) -> list[tuple[int, ...]]:
        return [(*seed, 1 + i) for seed in seeds]

    if setting.mode == "finite":
        plain = {
            name: PlainDraws(setting.size(ratio), *own(i)) for name, (i, ratio) in spaces.items()
        }
        return [plain[name] for name in plan.joint.spaces]
    sizes = [setting.size(spaces[name][1]).bit_length() - 1 for name in plan.joint.spaces]
    return [
        SobolDraws(count, size, *own(i))
        for i, (count, size) in enumerate(zip(plan.normals, sizes, strict=True))
    ]


def generators(seeds: Sequence[Sequence[int]]) -> list[np.random.Generator]:
    """For each replicate the generator of single numbers.

    A fourth word of a seed draws coordinates anew beside the same numbers.
    """
    return [np.random.default_rng((*seed[:3], 0)) for seed in seeds]


class Registers(ABC):
    """What runs of a script have in common: which vectors are formed when, and let go."""

    batch: ClassVar[int]  # vectors formed in one pass over the stores

    def __init__(self, plan: Plan, setting: Setting, replicates: int) -> None:
        self.plan, self.setting, self.replicates = plan, setting, replicates
        self._spaces: dict[str, SampleSpace] = {}
        self._matrices: dict[str, Any] = {}
        self._vectors: dict[int, Any] = {}
        self._waiting: dict[tuple[str, frozenset[Key]], list[int]] = {}
        self._scalars: Any = None

    @abstractmethod
    def _dense(self, register: int) -> Any:
        """The coordinates of a vector, formed now if they were not yet."""

    @abstractmethod
    def _form_together(self, register: int, group: Sequence[Any]) -> None:
        """Form vectors that live where the one of a register does, and combine the same stores."""

    @abstractmethod
    def _normals(self) -> Any:
        """One N(0, 1) draw of each replicate, beside those of spaces."""

    def _space_of(self, register: int) -> SampleSpace:
        return self._spaces[self.plan.script.vector_space[register]]

    def _lines(self, register: int) -> Any:
        """The coordinates of a vector, one replicate in each row."""
        lines = self._dense(register).reshape(self.replicates, -1)
        return lines[:, : self._space_of(register).size]

    def _class_of(self, register: int, vector: Any) -> tuple[str, frozenset[Key]]:
        return self.plan.script.vector_space[register], frozenset(vector.form or ())

    def _form(self, register: int, vector: Any) -> None:
        """Form a vector, and in the same pass those that wait for the same stores.

        A batch is then a matrix product: its stores are read once for all of its vectors.
        """
        group = [vector]
        for other in self._waiting.pop(self._class_of(register, vector), []):
            sibling = self._vectors.get(other)
            if sibling is not None and sibling is not vector and sibling.dense is None:
                group.append(sibling)
        for start in range(0, len(group), self.batch):
            self._form_together(register, group[start : start + self.batch])

    def _release(self, index: int) -> None:
        ended = [self._vectors.pop(register) for register in self.plan.ends[index]]
        thinned = [self._vectors[register] for register in self.plan.thins[index]]
        for vector in (*ended, *thinned):
            if vector.has_spare:  # multiples of an ended vector may refer to it still
                vector.dense = None

    def _outcomes(self, scalars: Any, vectors: Sequence[Any]) -> list[Outcome]:
        """What a run leaves of each replicate: numbers (replicates, results), and vectors."""
        ratios = np.ones(self.replicates)
        for matrix in self._matrices.values():
            ratios = np.minimum(ratios, matrix.min_ratios)
        return [
            Outcome(tuple(own), tuple(v[r] for v in vectors), float(ratio), self.setting.storage)
            for r, (own, ratio) in enumerate(zip(scalars, ratios, strict=True))
        ]

    def _sides(self, given: Matrix) -> tuple[tuple[SampleSpace, SampleSpace], tuple[int, int]]:
        """The spaces of a matrix, and how many directions each of its sides meets."""
        forward, transposed = (
            self.plan.directions.get((given.name, side), 0) for side in (False, True)
        )
        if given.law == "orthogonal":  # what it was applied to and what came out share one basis
            forward = transposed = forward + transposed
        return (self._spaces[given.rows], self._spaces[given.cols]), (forward, transposed)

    def _draw_scalar(self, step: DrawScalar) -> None:
        self._scalars[step.out] = step.value + step.std * self._normals()


def handlers(workspace: Any) -> dict[type, Callable[[Any, Any], None]]:
    """The method of a class that executes each instruction."""
    return {
        Starts: workspace._starts,
        Multiply: workspace._multiply,
        Map: workspace._map,
        Sum: workspace._sum,
        Panel: workspace._panel,
        Gram: workspace._gram,
        Mean: workspace._mean,
        Dot: workspace._dot,
        Outer: workspace._outer,
        ScalarMap: workspace._scalar_map,
        DrawScalar: workspace._draw_scalar,
        Noise: workspace._noise_draw,
    }
