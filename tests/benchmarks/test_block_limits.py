"""Limits of runs of many samples: what writing, deriving, scheduling and sampling them takes.

The latest figures are on ``docs/benchmarks.md``. Run with ``python -m tests.benchmarks``.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import tpcalc as tp
from tests.benchmarks.figures import figure
from tests.benchmarks.test_training_limits import product_share
from tpcalc.engine.schedule import plan
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.limit.derive import derive


def run_of(steps: int, batch: int) -> tp.Training:
    """Three hidden layers of tanh in muP on generic data."""
    rng = np.random.default_rng(0)
    count = (steps + 1) * batch
    data = tp.Samples(rng.normal(size=(count, 8)), rng.normal(size=count))
    net = tp.MLP(3, "tanh")
    return tp.Training(net, "mup", data, steps=steps, batch=batch, lr=0.5, watch=[])


@pytest.mark.parametrize(("steps", "batch"), [(50, 4), (50, 16), (50, 64), (100, 64), (200, 64)])
def test_written_and_derived(steps: int, batch: int) -> None:
    started = time.perf_counter()
    program = run_of(steps, batch).unrolled.blocks
    assert program is not None
    written = time.perf_counter()
    graph = derive(program)
    derived = time.perf_counter()
    print(
        f"\n{steps} steps of {batch}: {len(program.nodes)} nodes, written "
        f"{written - started:.2f} s, derived {derived - written:.2f} s"
    )
    figure("blocks", f"{steps} steps of {batch}, written and derived", derived - started)
    assert len(graph.targets) == steps + 1


def test_sampled() -> None:
    """Fifty steps of 16: 800 vectors on each side of two matrices."""
    program = run_of(50, 16).blocks
    started = time.perf_counter()
    script = compile_graph(derive(program)).script
    scheduled = plan(script)
    ready = time.perf_counter()
    found = tp.limit(program, outputs=["f[50,:]"], samples=2**13, replicates=8)
    done = time.perf_counter()
    print(
        f"\n50 steps of 16: {len(scheduled.script.instructions)} instructions in "
        f"{ready - started:.1f} s; limit of 2^13 samples, 8 replicates in {done - ready:.1f} s, "
        f"f within {(error := max(found[name].stderr for name in found)):.1e}"
    )
    figure("blocks", "limit of 50 steps of 16, 2^13 samples", done - ready, error=error)
    assert len(list(found)) == 16


@pytest.mark.parametrize(("steps", "batch"), [(32, 8), (50, 16)])
def test_product_share(steps: int, batch: int) -> None:
    """Share of the rate of float64 matrix products of the same run, one thread."""
    program = run_of(steps, batch).blocks
    found = plan(compile_graph(derive(program)).script)
    best, share = product_share(found, 2**13)
    print(f"\n{steps} steps of {batch}, 2^13 samples: {best:.2f} s, {share:.2f} of GEMM")
    figure("engine", f"{steps} steps of {batch}, 2^13 samples", best, peer=("GEMM", share * best))
