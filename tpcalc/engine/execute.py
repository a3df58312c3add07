"""Execution on arrays, by compiled passes over samples: one thread, sums in a fixed order.

An instruction is executed for all replicates at once. What one gets is a function of its own
numbers, by the same passes for any number of others beside it: its bits are those it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import kernels
from tpcalc.engine.directions import FiniteMatrix, LimitMatrix, SampleSpace, Store, materialise
from tpcalc.engine.directions_haar import HaarMatrix
from tpcalc.engine.directions_store import Memory
from tpcalc.engine.draws import Draws
from tpcalc.engine.executor import Executor, Pair
from tpcalc.engine.instructions import Map, Matrix, Mean, Outer
from tpcalc.engine.kernels_functions import CHUNK, coordinatewise
from tpcalc.engine.needs import array_bytes
from tpcalc.engine.outer_loops import outer_average
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Setting, explosion
from tpcalc.engine.vectors import Host, Key, Pool, Vector
from tpcalc.functions.tape import numpy_space


class Workspace(Executor):
    """Memory of one thread, allocated once and used for one bundle of replicates after another."""

    batch = 16
    joins = False

    def __init__(self, plan: Plan, setting: Setting, replicates: int = 1) -> None:
        self._block = setting.block([space.ratio for space in plan.script.spaces])
        self._memory = Memory(replicates * array_bytes(plan, setting))
        super().__init__(plan, setting, replicates, Host(), numpy_space())
        self._pools = {name: Pool(space) for name, space in self._spaces.items()}

    def _space(self, size: int, ratio: float) -> SampleSpace:
        return SampleSpace(size, ratio, self._block, self.replicates, self._memory)

    def _store(self, space: SampleSpace, capacity: int) -> Store:
        common = self._block, self.replicates, self._memory
        return Store(space.size, capacity, np.float64, *common)

    def _matrix(
        self, given: Matrix, spaces: Pair, capacities: tuple[int, int], draws: Pair
    ) -> LimitMatrix | FiniteMatrix | HaarMatrix:
        options: dict[str, Any] = {"storage": self.setting.storage}
        if self.setting.tolerance is not None:
            options["tolerance"] = self.setting.tolerance
        if given.law == "orthogonal":
            return HaarMatrix(self.setting.mode, spaces, capacities[0], draws, **options)
        if self.setting.mode == "finite":
            return FiniteMatrix(spaces, capacities, draws, **options)
        return LimitMatrix(spaces, capacities, draws, adjoint=given.adjoint, **options)

    def _new(self, register: int) -> Pair:
        buffer = self._pools[self.plan.script.vector_space[register]].take()
        lines = buffer.array.reshape(self.replicates, -1)
        return buffer, lines[:, : self._space_of(register).size]

    def _dense(self, register: int) -> Array:
        array: Array = super()._dense(register).array
        return array

    def _fresh(self, key: Key, draws: Draws, count: int) -> int:
        store = self._stores[key]
        first: int = store.rows
        for _ in range(count):
            draws.fill(store.row_view(store.reserve()))
        return first

    def _form_together(
        self, register: int, group: Sequence[Vector], terms: Sequence[tuple[Any, Any]]
    ) -> None:
        pool = self._pools[self.plan.script.vector_space[register]]
        for vector in group:
            vector.dense = pool.take()
        outs = [vector.dense.array for vector in group]
        if terms:
            materialise(outs, terms)
        for out, vector in zip(outs, group, strict=True):
            if not terms:
                out[:] = 0.0
            for buffer, numbers in vector.others:
                kernels.axpy(out, numbers, buffer.array)

    def _set(self, register: int, values: Any, what: Callable[[], str]) -> None:
        found = np.empty(self.replicates)
        found[:] = values
        bad = found[~np.isfinite(found)]
        if len(bad):
            raise explosion(float(bad[0]), what())
        self._scalars[register] = found

    def _look(self) -> None:
        """All were looked at."""

    def _take(self, step: Map | Mean, take: Callable[[slice, slice, Any], None]) -> None:
        """Hand over the values of a function."""
        arrays = [self._lines(register) for register in step.vectors]
        numbers = [self._scalars[register][:, None] for register in step.scalars]
        coordinatewise(step.fn, arrays, numbers, take)

    def _fill(self, step: Map, lines: Array) -> None:
        def take(rows: slice, part: slice, values: Any) -> None:
            lines[rows, part] = values

        self._take(step, take)

    def _average(self, step: Mean) -> Array:
        size = self._space_of(step.vectors[0]).size
        if step.fn.vectors == 1 and step.fn.text == "x0":
            return kernels.total(self._dense(step.vectors[0]), self.replicates) / size
        parts = np.zeros((-(-size // CHUNK), self.replicates))

        def take(rows: slice, part: slice, values: Any) -> None:
            block = np.empty((rows.stop - rows.start, part.stop - part.start))
            block[:] = values
            parts[part.start // CHUNK, rows] = kernels.total(block, len(block))

        self._take(step, take)
        sums: Array = np.add.accumulate(parts)[-1]  # in their order
        return sums / size

    def _inner(self, left: int, right: int) -> Array:
        sums = kernels.dot(self._dense(left), self._dense(right), self.replicates)
        return sums / self._space_of(left).size

    def _outer_averages(self, step: Outer, lines: Sequence[list[Any]], outs: Sequence[Any]) -> None:
        for r in range(self.replicates):
            rows, cols, vectors = ([line[r] for line in side] for side in lines)
            numbers = [self._scalars[register][r] for register in step.scalars]
            x = np.array(vectors)
            found = outer_average(step.fn, rows, cols, x, numbers, step.forms)
            for out, line in zip(outs, found, strict=True):
                out[r] = line
