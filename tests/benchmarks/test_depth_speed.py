"""Residual networks by the number of blocks: recursions, limits, verdicts; after the first call.

    python -m tests.benchmarks tests/benchmarks/test_depth_speed.py

What is asserted leaves room for a busy machine; times and memory are printed.
"""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import pytest
from depth_run import deep_run

import tpcalc as tp
from tests.benchmarks.figures import fastest, figure
from tpcalc.activations.entries import lookup
from tpcalc.functions import Var
from tpcalc.recursions import Trunk, finite

BUSY = 3.0


def linear(steps: int) -> Trunk:
    inputs = [1.0, 0.8, -0.5, 1.0, 0.6, 0.9, -0.3, 0.7, 1.1, 0.4][:steps]
    return Trunk(inputs, [1.0] * steps, Var(0), rates=0.3)


@pytest.mark.parametrize(
    ("layers", "steps", "aim"), [(256, 4, 0.05), (1024, 4, 0.5), (256, 10, 2.0)]
)
def test_linear_recursion(layers: int, steps: int, aim: float) -> None:
    trunk = linear(steps)
    found = fastest(lambda: finite(trunk, layers))
    tracemalloc.start()
    finite(trunk, layers)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"\nL = {layers}, T = {steps}: {1e3 * found:.0f} ms, {peak:.0f} MiB")
    assert found < BUSY * aim and peak < 200


@pytest.mark.parametrize("name", ["sin", "gelu"])
def test_nonlinear_recursion(name: str) -> None:
    trunk = Trunk([1.0, 0.8, 0.6, 0.9], [2.0] * 4, lookup(name).fn.expr, rates=0.5)
    found = fastest(lambda: finite(trunk, 192), 1)
    print(f"\n{name}, L = 192, T = 4: {found:.2f} s")
    figure("depth", f"recursion of {name}, L = 192, T = 4", found)
    assert found < BUSY * 5


@pytest.mark.parametrize("act", ["identity", "sin", "gelu", "relu", "tanh"])
def test_limit(act: str) -> None:
    run = deep_run([1.0, 0.8, 0.6, 0.9], [2.0] * 4, 0.5, 0.5, act, eta=0.5)
    found = fastest(lambda: tp.limit(run, depths=["oo"]), 1)
    print(f"\nlimit, {act}, 3 updates: {found:.2f} s")
    figure("depth", f"limit of {act}, 3 updates", found)
    assert found < BUSY * 5


def test_verdicts() -> None:
    net = tp.ResNet("L", "relu", alpha="1/2", nonlin="post", center=True)
    symbol = fastest(lambda: tp.check(net, "mup", lr_depth="1/2"), 1)
    print(f"\ncheck, L blocks: {symbol:.2f} s")
    figure("depth", "`tp.check` of L blocks", symbol)
    assert symbol < BUSY * 3


def test_diagram() -> None:
    net = tp.ResNet("L", "relu", alpha="alpha", nonlin="post", center=True)
    box = {
        "alpha": (Fraction(1, 4), Fraction(3, 2)),
        "gamma": (Fraction(-1, 2), Fraction(1)),
    }
    found = fastest(lambda: tp.phases(net, "mup", box, lr_depth="gamma", steps=2), 1)
    print(f"\n(alpha, gamma) diagram, T = 2: {found:.2f} s")
    figure("depth", "`tp.phases` of (alpha, gamma)", found)
    assert found < BUSY * 5


def test_unrolled_verdicts() -> None:
    """Cost of networks whose depth is a number: 64 blocks, and its growth from 16."""
    cost = {}
    for blocks in (16, 64):
        net = tp.ResNet(blocks, "relu")
        cost[blocks] = fastest(lambda net=net: tp.check(net, "mup"), 1)  # type: ignore[misc]
        print(f"\ncheck, {blocks} blocks: {cost[blocks]:.2f} s", end="")
    print(f"\ngrowth with the blocks: L^{math.log(cost[64] / cost[16]) / math.log(4):.2f}")
    figure("depth", "`tp.check` of 64 blocks", cost[64], peer=("16 blocks", cost[16]))
    assert cost[64] < BUSY * 10 and cost[64] < 6 * cost[16]
