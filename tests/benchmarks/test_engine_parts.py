"""Where the time of a replicate goes, and what the engine could reach at most.

Every ratio compares two things measured in the same run; the latest are on
``docs/benchmarks.md``. Run with ``python -m pytest tests/benchmarks/test_engine_parts.py -s``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.benchmarks import test_block_limits as blocks
from tests.benchmarks.test_training_limits import (
    cpu_of,
    four_reads,
    planned,
    product_rate,
    read_rate,
    run_of,
)
from tpcalc.engine import draws, execute, kernels, kernels_blocks, kernels_growth, panels
from tpcalc.engine.execute import Workspace
from tpcalc.engine.schedule import Plan, plan
from tpcalc.engine.setting import Setting
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.limit.derive import derive

PARTS: dict[str, list[tuple[Any, str]]] = {
    "combinations": [(kernels_blocks, "combine")],
    "inner products": [(kernels_blocks, "dots"), (kernels_blocks, "residual")],
    "single vectors": [(kernels, "_axpy"), (kernels, "_dot"), (kernels, "_total")],
    "new directions": [(kernels_growth, "append")],
    "draws": [(draws, "sobol_normals")],
    "functions": [(execute, "coordinatewise")],
    "small tables": [
        (panels.Combinations, "values"),
        (panels.Grams, "values"),
        (kernels_growth, "grow"),
        (kernels_growth, "on_rows"),
        (kernels_growth, "on_directions"),
        (kernels_growth, "sum_rows"),
        (kernels_growth, "inner_rows"),
    ],
}


@contextmanager
def watched(patch: pytest.MonkeyPatch) -> Iterator[dict[str, float]]:
    """CPU seconds of each part, while the block runs."""
    found = dict.fromkeys(PARTS, 0.0)

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            out = call(*args, **options)
            found[part] += time.thread_time() - start
            return out

        return run

    with patch.context() as own:
        for part, calls in PARTS.items():
            for where, name in calls:
                own.setattr(where, name, timed(part, getattr(where, name)))
        yield found


def triad_rate() -> float:
    """Bytes per second of a = b + s c on one core, three arrays of 256 MiB counted."""
    a, b = np.zeros(2**25), np.ones(2**25)
    factor = np.ones(1)
    return 3 * a.nbytes / min(cpu_of(lambda: kernels.axpy(a, factor, b)) for _ in range(5))


CASES = [(32, 1, 15), (50, 1, 15), (100, 1, 15), (32, 16, 13), (50, 16, 13)]


def run_for(steps: int, batch: int) -> Plan:
    if batch == 1:
        return planned(run_of(steps))
    return plan(compile_graph(derive(blocks.run_of(steps, batch).blocks)).script)


@pytest.mark.parametrize(("steps", "batch", "log2"), CASES)
def test_parts(monkeypatch: pytest.MonkeyPatch, steps: int, batch: int, log2: int) -> None:
    """CPU time by parts; what is left is Python."""
    found = run_for(steps, batch)
    space = Workspace(found, Setting("limit", 2**log2))
    with threadpool_limits(1, user_api="blas"):
        space.run([(0,)])
        whole = min(cpu_of(lambda: space.run([(1,)])) for _ in range(2))
        with watched(monkeypatch) as parts:
            profiled = cpu_of(lambda: space.run([(1,)]))
        read, triad, product = read_rate(), triad_rate(), product_rate()
    parts["Python"] = profiled - sum(parts.values())
    least = four_reads(found, 2**log2) / read
    print(
        f"\nT={steps} B={batch} N=2^{log2}: {1e3 * whole:.0f} ms; read {read / 1e9:.1f} GB/s, "
        f"triad {triad / 1e9:.1f}, GEMM {product / 1e9:.1f} GF/s; four reads {1e3 * least:.0f} ms"
    )
    if batch > 1:
        count = four_reads(found, 2**log2, each=True) / 4
        print(f"  their operations at the rate of GEMM: {1e3 * count / product:.0f} ms")
    print("  " + ", ".join(f"{name} {1e3 * cost:.0f}" for name, cost in parts.items()))
    assert parts["combinations"] > 0
