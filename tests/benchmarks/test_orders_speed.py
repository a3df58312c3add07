"""The exponent calculus: cost of a derivation and its growth in the depth and in the steps.

Run with ``python -m tests.benchmarks``; the latest figures are on ``docs/benchmarks.md``.
"""

from __future__ import annotations

import math
import time
import tracemalloc

import pytest

import tpcalc as tp
from tests.benchmarks.figures import figure
from tpcalc.limit.scales import Scales, scales
from tpcalc.questions.verdict.probe import probe

SHAPES = ((6, 3), (6, 6), (12, 6), (24, 6), (6, 10))


def written(depth: int, steps: int, param: str) -> tp.Program:
    return probe(tp.Training(tp.MLP(depth, "relu", "first"), param, steps=steps)).program


def derived(program: tp.Program) -> Scales:
    """The derivation of all outputs; without being asked it derives nothing."""
    return scales(program).reach([name for name, _ in program.outputs])


def best(program: tp.Program, repeats: int = 3) -> tuple[float, Scales]:
    seconds = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        found = derived(program)
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, found


@pytest.mark.parametrize("param", ["mup", "ip-llr"])
def test_growth_in_depth_and_steps(param: str) -> None:
    """Printed: seconds for each shape, and the exponents of the growth."""
    cost = {}
    for depth, steps in SHAPES:
        program = written(depth, steps, param)
        cost[depth, steps], found = best(program)
        print(
            f"\n{param} L={depth} T={steps}: {cost[depth, steps]:.3f} s, "
            f"{len(program.nodes)} program nodes, {len(found.context.nodes)} limit nodes",
            end="",
        )
        figure("orders", f"{param}, L = {depth}, T = {steps}", cost[depth, steps])
        assert not any(found.scale(name).bound for name, _ in program.outputs if name[0] == "f")
    in_depth = math.log(cost[24, 6] / cost[6, 6]) / math.log(24 / 6)
    in_steps = math.log(cost[6, 10] / cost[6, 3]) / math.log(10 / 3)
    print(f"\n{param}: L^{in_depth:.2f}, T^{in_steps:.2f}")


def test_memory() -> None:
    """Printed: the peak of Python objects of the largest shape."""
    program = written(24, 6, "ip-llr")
    tracemalloc.start()
    derived(program)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\nL=24, T=6: {peak / 2**20:.0f} MiB")
    assert peak < 2**30
