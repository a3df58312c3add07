"""A sweep of 200 checks on two processes of one thread beside this process alone, all warm.

Run with ``python -m tests.benchmarks tests/benchmarks/test_sweep_speed.py``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

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
