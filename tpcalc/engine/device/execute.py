"""Execution of a scheduled script on tensors: all replicates at once, one handler per instruction.

The laws, the draws and the order are those of ``engine/execute``; answers agree with it up to
rounding. Samples stay on the device, as do coefficients and scalars; the host waits once for each
product with a matrix, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import (
    free_memory,
    is_out_of_memory,
    load_torch,
    resolve_device,
    resolve_dtype,
)
from tpcalc.engine.device.matrices import TOLERANCE, Finite, Haar, Limit
from tpcalc.engine.device.rows import Place, Store, block_of, combine
from tpcalc.engine.device.space import TorchSpace
from tpcalc.engine.directions_store import SampleSpace
from tpcalc.engine.draws import Draws
from tpcalc.engine.executor import Executor, Pair
from tpcalc.engine.instructions import Map, Matrix, Mean, Multiply, Outer, vector_outputs
from tpcalc.engine.needs import memory_needed, too_large
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Outcome, Setting, explosion
from tpcalc.engine.vectors import Key, Vector
from tpcalc.errors import Exploded
from tpcalc.functions.forms import tiles
from tpcalc.functions.tape import lower, run

TILE = 2**24  # entries of an outer function that are held at once
WIDTH = 2**12  # columns of them, whose sum has the precision of the storage
PIECE = 16  # tensors beside the stores that are put side by side
LOOK = 512  # scalars that are looked at together: the host waits for them


class Workspace(Executor):
    """The tensors of one bundle of replicates."""

    batch = 256
    joins = True
    place: Place

    def __init__(self, plan: Plan, setting: Setting, replicates: int, place: Place) -> None:
        self._functions = TorchSpace(place.torch, place.dtype, place.device)
        numbers = TorchSpace(place.torch, place.torch.float64, place.device)
        super().__init__(plan, setting, replicates, place, numbers)
        self._unseen: list[tuple[Any, Callable[[], str]]] = []

    def _space(self, size: int, ratio: float) -> SampleSpace:
        return SampleSpace(size, ratio, block_of(size), self.replicates)

    def _store(self, space: SampleSpace, capacity: int) -> Store:
        return Store(space, capacity, self.place)

    def _matrix(
        self, given: Matrix, spaces: Pair, capacities: tuple[int, int], draws: Pair
    ) -> Limit | Finite | Haar:
        mode, tolerance = self.setting.mode, self.setting.tolerance
        common = draws, TOLERANCE[mode] if tolerance is None else tolerance, self.place
        if given.law == "orthogonal":
            return Haar(mode, spaces, capacities[0], *common)
        if mode == "finite":
            return Finite(spaces, capacities, *common)
        return Limit(spaces, capacities, *common, adjoint=given.adjoint)

    def _width(self, key: Key) -> int:
        rows: int = self._stores[key].rows
        return rows

    def _new(self, register: int) -> Pair:
        space = self._space_of(register)
        lines = self.place.zeros(self.replicates, space.padded)
        return lines.view(-1, space.block), lines[:, : space.size]

    def _fresh(self, key: Key, draws: Draws, count: int) -> int:
        space = self._spaces[key[1]]
        shape = count, self.replicates * space.padded // space.block, space.block
        lines = self.place.filled(shape, partial(_fill, draws))
        first: int = self._stores[key].append_rows(lines.transpose(0, 1))
        return first

    def _form_together(
        self, register: int, group: Sequence[Vector], terms: Sequence[tuple[Any, Any]]
    ) -> None:
        zeros, space = self.place.zeros, self._space_of(register)
        parts = [(store.data, table[:, :, : store.rows]) for store, table in terms]
        tensors = {id(tensor): tensor for vector in group for tensor, _ in vector.others}
        names = list(tensors)
        for start in range(0, len(names), PIECE):
            own = {name: place for place, name in enumerate(names[start : start + PIECE])}
            table = zeros(self.replicates, len(group), len(own), double=True)
            for j, vector in enumerate(group):
                for tensor, factor in vector.others:
                    if id(tensor) in own:
                        table[:, j, own[id(tensor)]] += factor
            parts.append((self.place.torch.stack([tensors[name] for name in own], 1), table))
        blocks = self.replicates * space.padded // space.block
        found = combine(parts) if parts else zeros(blocks, len(group), space.block)
        for j, vector in enumerate(group):
            vector.dense = found[:, j].contiguous()

    def _set(self, register: int, values: Any, what: Callable[[], str]) -> None:
        """Write a scalar register; whether its numbers are finite is looked at later."""
        self._scalars[register] = values
        self._unseen.append((self._scalars[register], what))
        if len(self._unseen) >= LOOK:
            self._look()

    def _look(self) -> None:
        """Raise the error of the first replicate with a scalar that is not finite."""
        if not self._unseen:
            return
        values = self.place.host(self.place.torch.stack([found for found, _ in self._unseen]))
        bad = ~np.isfinite(values)
        if bad.any():
            replicate = int(bad.any(axis=0).argmax())
            first = int(bad[:, replicate].argmax())
            raise explosion(float(values[first, replicate]), self._unseen[first][1]())
        self._unseen.clear()

    def _multiply(self, step: Multiply) -> None:
        try:
            super()._multiply(step)
        except Exploded:
            self._look()  # what happened before that comes first
            raise

    def _of(self, step: Map | Mean) -> Any:
        """Values of a coordinatewise function, or one number."""
        lines = [self._lines(register) for register in step.vectors]
        numbers = [self._scalars[one][:, None].to(self.place.dtype) for one in step.scalars]
        return run(lower(step.fn), self._functions, [*lines, *numbers])

    def _fill(self, step: Map, lines: Any) -> None:
        lines[:] = self._of(step)

    def _average(self, step: Mean) -> Any:
        values, size = self._of(step), self._space_of(step.vectors[0]).size
        if isinstance(values, float | int):
            return values
        return values.expand(-1, size).sum(1, dtype=self.place.torch.float64) / size

    def _inner(self, left: int, right: int) -> Any:
        one, two = self._lines(left), self._lines(right)
        return (one * two).sum(1, dtype=self.place.torch.float64) / one.shape[1]

    def _outer_averages(self, step: Outer, lines: Sequence[list[Any]], outs: Sequence[Any]) -> None:
        torch, (rows, cols, vectors), size = self.place.torch, lines, outs[0].shape[1]
        inner = vectors[0].shape[1]
        x = torch.stack(vectors, 2) / inner
        numbers = [self._scalars[one][:, None, None].to(self.place.dtype) for one in step.scalars]
        width = min(inner, WIDTH)
        side = max(TILE // (self.replicates * width), 1), width
        total = self.place.zeros(self.replicates, size, len(vectors), double=True)
        for down, across, block in tiles(
            step.fn, rows, cols, inner, numbers, step.forms, torch, self._functions, side
        ):
            shape = self.replicates, len(range(size)[down]), len(range(inner)[across])
            values = torch.as_tensor(block, dtype=self.place.dtype, device=self.place.device)
            total[:, down] += values.expand(shape).bmm(x[:, across])
        for place, out in enumerate(outs):
            out[:] = total[:, :, place]


def _fill(draws: Draws, rows: Any) -> None:
    for row in rows:
        draws.fill(row)


CPU_BUNDLE = 2**29  # bytes: larger bundles are no faster there, and smaller ones can be stopped
WORK = 6  # copies of the largest batch while it is multiplied


def run_on_device(
    plan: Plan,
    setting: Setting,
    seeds: Sequence[Sequence[int]],
    memory_limit: int | None,
    report: Callable[[float], None],
) -> list[Outcome]:
    """Run one replicate for each seed, in the order of the seeds."""
    torch, device = load_torch(), resolve_device(str(setting.device))
    place = Place(torch, device, resolve_dtype(setting.storage))
    needed = _needed(plan, setting)
    limit = free_memory(device) // 2 if memory_limit is None else memory_limit
    if needed > limit:
        raise too_large(setting, needed, limit, f" on {device}")
    if device.type == "cpu":
        limit = min(limit, max(CPU_BUNDLE, needed))
    size = max(1, limit // needed)
    outcomes: list[Outcome] = []
    while len(outcomes) < len(seeds):
        part, done = seeds[len(outcomes) : len(outcomes) + size], len(outcomes)
        each = len(part) / len(seeds) / max(1, len(plan.script.instructions))
        found = _bundle(plan, setting, part, place, _ticks(report, done / len(seeds), each))
        if found is not None:
            outcomes += found
            continue
        if device.type == "cuda":  # here no traceback keeps the tensors alive
            torch.cuda.empty_cache()
        if len(part) == 1:
            raise too_large(setting, needed, limit, f" on {device}, which refused it")
        size = len(part) // 2
    return outcomes


def _ticks(report: Callable[[float], None], begun: float, each: float) -> Callable[[], None]:
    """What tells of one step more."""
    steps = count(1)
    return lambda: report(begun + next(steps) * each)


def _bundle(
    plan: Plan,
    setting: Setting,
    seeds: Sequence[Sequence[int]],
    place: Place,
    tick: Callable[[], None],
) -> list[Outcome] | None:
    """Replicates side by side; None where the device has no memory for them."""
    try:
        with place.torch.inference_mode(), _whole_precision(place.torch):
            return Workspace(plan, setting, len(seeds), place).run(seeds, tick)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(place.torch, error):
            raise
        return None


@contextmanager
def _whole_precision(torch: Any) -> Iterator[None]:
    """Products of float32 numbers without TF32, whatever the program around asked for."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _needed(plan: Plan, setting: Setting) -> int:
    """Bytes of one replicate."""
    batch = max((len(vector_outputs(step)) for step in plan.script.instructions), default=0)
    widest = max((setting.size(space.ratio) for space in plan.script.spaces), default=0)
    return memory_needed(plan, setting) + WORK * batch * widest * 8
