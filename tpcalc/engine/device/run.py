"""Replicates of a script on a device: as many at once as its memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tpcalc.engine.device.devices import (
    free_memory,
    is_out_of_memory,
    load_torch,
    resolve_device,
    resolve_dtype,
)
from tpcalc.engine.device.execute import Workspace
from tpcalc.engine.device.rows import Place
from tpcalc.engine.instructions import vector_outputs
from tpcalc.engine.needs import memory_needed, too_large
from tpcalc.engine.outcome import Outcome
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Setting

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
        part = seeds[len(outcomes) : len(outcomes) + size]
        done = len(outcomes)

        def told(fraction: float, done: int = done, count: int = len(part)) -> None:
            report((done + fraction * count) / len(seeds))

        found = _bundle(plan, setting, part, place, told)
        if found is not None:
            outcomes += found
            continue
        if device.type == "cuda":  # here no traceback keeps the tensors alive
            torch.cuda.empty_cache()
        if len(part) == 1:
            raise too_large(setting, needed, limit, f" on {device}, which refused it")
        size = len(part) // 2
    return outcomes


def _bundle(
    plan: Plan,
    setting: Setting,
    seeds: Sequence[Sequence[int]],
    place: Place,
    report: Callable[[float], None],
) -> list[Outcome] | None:
    """Replicates side by side; None where the device has no memory for them."""
    try:
        with place.torch.inference_mode(), _whole_precision(place.torch):
            return Workspace(plan, setting, seeds, place).run(report)
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
