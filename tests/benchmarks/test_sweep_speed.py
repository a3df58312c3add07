"""A sweep of 200 checks on two processes of one thread, and on Dask; tasks that wait.

Run with ``python -m tests.benchmarks tests/benchmarks/test_sweep_speed.py``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tpcalc as tp
from tests.benchmarks.figures import figure
from tpcalc.experiments.sweep import Run
from tpcalc.study import Flag

GRID = {
    "depth": [1, 2],
    "param": ["mup", "ntk", "standard", "naive-ip"],
    "act": ["relu", "tanh", "erf", "sin", "gelu"],
    "lr": [0.1, 0.3, 1.0, 3.0, 10.0],
}
WARM = {"depth": [1, 2], "param": ["mup", "ntk"], "act": GRID["act"]}


def swept(work: Path, grid: dict[str, Any] = GRID) -> tuple[float, float, float]:
    """Seconds of a sweep that keeps its answers, those of its cells, and of this processor."""
    run = Run({"training": {"steps": 1}}, [Flag("", "sweep.grid", grid)])
    began, spent = time.perf_counter(), time.process_time()
    run.go(work)
    found = run.sweep
    found.save(work / "sweep.csv")
    seconds = time.perf_counter() - began, time.process_time() - spent
    assert not any(row["problem"] for row in found.rows)
    return seconds[0], found.provenance.seconds, seconds[1]


def test_two_processes_are_nearly_twice_as_fast(tmp_path: Path) -> None:
    times = {}
    for jobs in (2, 1):
        with tp.use(jobs=jobs):
            swept(tmp_path / f"warm {jobs}", WARM)
            times[jobs] = swept(tmp_path / str(jobs))
    (one, cells, _), (two, busy, parent) = times[1], times[2]
    here, there = max(one - cells, 0.0) / 200, parent / 200
    print(
        f"\n200 checks: {one:.1f} s here, {two:.1f} s in two processes, ratio {one / two:.2f}; "
        f"beside the cells {1e3 * here:.1f} ms a task here, {1e3 * there:.1f} ms for two, which "
        f"are in cells {busy / two / 2:.0%} of their time"
    )
    figure("first", "sweep of 200 checks, 2 processes", two, peer=("1 process", one))
    assert (tmp_path / "1/sweep.csv").read_bytes() == (tmp_path / "2/sweep.csv").read_bytes()
    assert max(here, there) < 0.02 and one / two >= 1.8


def test_dask_is_as_fast_as_processes(tmp_path: Path) -> None:
    dask, distributed = map(pytest.importorskip, ("dask", "distributed"))
    times: dict[str, list[float]] = {"processes": [], "Dask": []}
    one = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    quiet = {"distributed.worker.profile.enabled": False}  # as the page on machines says it
    with dask.config.set(quiet), distributed.LocalCluster(**one) as cluster:
        for turn in range(3):
            for name in times:
                place = {"jobs": 2} if name == "processes" else {"scheduler": cluster}
                with tp.use(**place):
                    swept(tmp_path / f"warm {name} {turn}", WARM)
                    times[name].append(swept(tmp_path / f"{name} {turn}")[0])
    local, dask = (min(found) for found in times.values())
    print(
        f"\n200 checks: {local:.2f} s in two processes, {dask:.2f} s on Dask ({dask / local:.2f})"
    )
    figure("first", "sweep of 200 checks, Dask with 2 workers", dask, peer=("2 processes", local))
    assert dask / local < 1.15


TASKS = """
import resource, sys, time
import tpcalc as tp
from tests.benchmarks.test_sweep_speed import number
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task
if __name__ == "__main__":
    asked = [Task(f"task {k}", ({"model.depth": k, "lr": 0.1 * k},)) for k in range(10_000)]
    began = time.perf_counter()
    with tp.use(**PLACE):
        assert len(results(number, asked, shared={"study": "x" * 10_000})) == 10_000
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter() - began)
"""


def number(shared: Any, cell: dict[str, float], progress: Any) -> Any:
    """What a task of no work returns."""
    return [cell, len(shared["study"])]


@pytest.mark.parametrize("name", ["processes", "Dask"])
def test_ten_thousand_tasks_take_little_memory(name: str) -> None:
    distributed = pytest.importorskip("distributed")
    root = str(Path(tp.__file__).parents[1])
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as one:
        place = {"jobs": 2} if name == "processes" else {"scheduler": one.scheduler_address}
        code = TASKS.replace("PLACE", repr(place))
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    kilobytes, seconds = map(float, ran.stdout.split())
    print(f"\n10,000 tasks, {name}: {kilobytes / 1024:.0f} MiB, {seconds:.1f} s")
    assert kilobytes < 2**20
