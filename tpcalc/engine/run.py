"""Replicates of a script: in bundles, on threads, within memory, stoppable, reproducible."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from threadpoolctl import ThreadpoolController

from tpcalc.doors.budget import spend
from tpcalc.doors.machine import available_cores, available_memory
from tpcalc.engine.crew import at_work, watch
from tpcalc.engine.execute import Workspace
from tpcalc.engine.instructions import Gram, Panel, Script
from tpcalc.engine.needs import memory_needed, numbers_made, seconds_needed, too_large
from tpcalc.engine.schedule import Plan, plan
from tpcalc.engine.setting import Outcome, Setting
from tpcalc.errors import Exploded
from tpcalc.progress import Progress
from tpcalc.tasks.run import elsewhere, results
from tpcalc.tasks.task import Task

# Below this residual, directions stored in float32 lose their orthogonality. A device projects
# twice, which keeps it: there nothing has to be run again.
FLOAT32_GUARD = 1e-2
# Bytes of the replicates that are run side by side, and what part of the memory there is. Threads
# wait for Python, which all replicates share; one thread waits for memory that no cache holds. The
# next bundle uses the memory again, which costs most where it is touched first.
BUNDLE = 2**28
BUNDLE_OF_ONE = 2**26
PART = 4
WORTH_A_TASK = 2**23  # numbers that replicates write: some 30 ms


class Interrupted(Exception):
    """The run was told to stop."""


@dataclass(frozen=True)
class Runner:
    """Runs replicates of one script."""

    script: Script  # what to run
    setting: Setting  # how
    # how many share the passes over samples; the answer depends neither on it nor on the size of
    # bundles. None: one for each core.
    threads: int | None = None
    memory_limit: int | None = None  # bytes to stay within; None: what is available

    def run(
        self, seeds: Sequence[Sequence[int]], progress: Progress | None = None
    ) -> list[Outcome]:
        """Run one replicate for each seed, in the order of the seeds."""
        schedule = plan(self.script)
        if self.setting.device is not None:
            from tpcalc.engine.device.execute import run_on_device

            text = f"{len(seeds)} replicates of {self.setting.width}"
            report = partial(_report, progress, text)
            return run_on_device(schedule, self.setting, seeds, self.memory_limit, report)
        with _alone(self.script):
            return self._guarded(schedule, seeds, progress)

    def _guarded(
        self, schedule: Plan, seeds: Sequence[Sequence[int]], progress: Progress | None
    ) -> list[Outcome]:
        outcomes = self._shared(schedule, self.setting, seeds, progress)
        if self.setting.storage == "float32" and any(
            outcome.min_ratio < FLOAT32_GUARD for outcome in outcomes
        ):
            # Nearly dependent directions: single precision is not safe here, start again.
            outcomes = self._shared(
                schedule, replace(self.setting, storage="float64"), seeds, progress
            )
        return outcomes

    def _shared(
        self,
        schedule: Plan,
        setting: Setting,
        seeds: Sequence[Sequence[int]],
        progress: Progress | None,
    ) -> list[Outcome]:
        """Run replicates here, or some in each task where these are carried out elsewhere."""
        spend(
            f"{len(seeds)} replicates of {setting.width}",
            seconds=len(seeds) * seconds_needed(schedule, setting) / available_cores(),
            hint="Use fewer of them, smaller ones, or fewer steps.",
        )
        size = -(-WORTH_A_TASK // max(1, numbers_made(schedule, setting)))  # a script may be empty
        if size >= len(seeds) or not elsewhere():
            return self._run(schedule, setting, seeds, progress)
        starts = range(0, len(seeds), size)
        tasks = [Task(f"replicates from {start} on", (seeds[start : start + size],))
                 for start in starts]  # fmt: skip
        found = results(_some, tasks, shared=(self, schedule, setting), progress=progress)
        return [outcome for some in found for outcome in some]

    def _bundles(self, schedule: Plan, setting: Setting, jobs: int) -> tuple[int, int]:
        """Threads, and replicates in a bundle."""
        needed = memory_needed(schedule, setting)
        limit = self.memory_limit if self.memory_limit is not None else available_memory()
        if needed > limit:
            raise too_large(setting, needed, limit)
        threads = self.threads or available_cores()
        bundle = min(BUNDLE if threads > 1 else BUNDLE_OF_ONE, limit // PART)
        most = max(1, bundle // max(needed, 1))
        return threads, -(-jobs // -(-jobs // most))

    def _run(
        self,
        schedule: Plan,
        setting: Setting,
        seeds: Sequence[Sequence[int]],
        progress: Progress | None,
    ) -> list[Outcome]:
        threads, size = self._bundles(schedule, setting, len(seeds))
        stop, done = threading.Event(), [0]
        bundles = [seeds[start : start + size] for start in range(0, len(seeds), size)]
        total = len(bundles) * max(len(schedule.script.instructions), 1)
        text = f"{len(seeds)} replicates of {setting.width}"

        def tick() -> None:
            if stop.is_set():
                raise Interrupted
            done[0] += 1

        def work() -> list[Outcome]:
            space, outcomes = None, list[Outcome]()
            with at_work(threads):
                for bundle in bundles:
                    if space is None or space.replicates != len(bundle):  # the last may be short
                        space = None  # its memory goes before there is more
                        space = Workspace(schedule, setting, len(bundle))
                    try:
                        outcomes += space.run(bundle, tick)
                    except Exploded:
                        if len(bundle) == 1:
                            raise
                        space = None
                        space = Workspace(schedule, setting)  # which one it is is said as if alone
                        outcomes += [space.run([seed], tick)[0] for seed in bundle]
            return outcomes

        if progress is None:
            return work()
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            try:
                watch([future], lambda: _report(progress, text, done[0] / total))
            except BaseException:
                stop.set()  # it stops at its next instruction
                raise
        return future.result()


def _some(
    shared: tuple[Runner, Plan, Setting], seeds: Sequence[Sequence[int]], progress: Progress
) -> list[Outcome]:
    runner, schedule, setting = shared
    return runner._run(schedule, setting, seeds, progress)


def _alone(script: Script) -> AbstractContextManager[object]:
    """Matrix products of tables are small: with threads of their own they wait for each other."""
    tables = any(isinstance(step, Panel | Gram) for step in script.instructions)
    if not tables and not any(matrix.adjoint for matrix in script.matrices):
        return nullcontext()
    one_each: AbstractContextManager[object] = ThreadpoolController().limit(
        limits=1, user_api="blas"
    )
    return one_each


def _report(progress: Progress | None, text: str, fraction: float) -> None:
    if progress is not None:
        progress(fraction, text)
