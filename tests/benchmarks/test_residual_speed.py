"""Residual networks with weights along the depth: recursion, noise, diagrams, figures.

    python -m tests.benchmarks tests/benchmarks/test_residual_speed.py

What is asserted leaves room for a busy machine; times of the processor and memory are printed.
"""

from __future__ import annotations

import time
import tracemalloc
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tpcalc as tp
from tests.benchmarks.figures import fastest, figure
from tpcalc.experiments.depth import depth_experiment
from tpcalc.experiments.plans import load_depth_experiment
from tpcalc.finite.paths import draw_paths
from tpcalc.questions.depth.shape import block_at_start, start_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "resnets"
FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7")
RES3 = {"act": "relu", "nonlin": "between", "layers": 2}
BUSY = 3.0
CORES = 2
seconds = partial(fastest, clock=time.process_time)  # of the processor


@pytest.mark.parametrize("along", ["fresh", "fgn(4/5)"])
def test_covariance_recursion(along: str) -> None:
    start = start_of(block_at_start(tp.ResNet("L", alpha="4/5", along=along, **RES3)))
    found = seconds(lambda: start.at(4000))
    print(f"\n{along}, L = 4000, forward and backward: {found:.2f} s")
    figure("depth", f"covariance recursion at the start, {along}, L = 4000", found)
    assert found < BUSY * 0.3


def test_fractional_noise() -> None:
    generator = np.random.default_rng(0)
    out = np.empty((1000, 1600))
    found = seconds(lambda: draw_paths("fgn(4/5)", 1000, 1600, generator, out.T))
    print(f"\nfractional noise, d = 40, L = 1000: {found:.3f} s")
    assert found < BUSY * 0.1


def test_memory_of_one_long_path() -> None:
    generator = np.random.default_rng(0)
    peaks = []
    for depth in (10**4, 10**5):
        draw_paths("fgn(3/4)", depth, 1, generator)
        tracemalloc.start()
        found = draw_paths("fgn(3/4)", depth, 1, generator)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.shape == (1, depth)
    print(f"\none path: {peaks[0] / 2**20:.1f} MiB at L = 1e4, {peaks[1] / 2**20:.1f} MiB at 1e5")
    assert peaks[1] < 15 * peaks[0] and peaks[1] < 64 * 10**5 * 2


def test_diagram_by_theory() -> None:
    laws = [Fraction(k, 100) for k in (5, 20, 35, 50, 60, 70, 80, 90, 95, 97)]
    powers = [Fraction(k, 10) for k in (2, 4, 5, 6, 7, 8, 9, 10, 11, 13)]

    def cells() -> None:
        for hurst, alpha in product(laws, powers):
            tp.limit(tp.ResNet("L", alpha=alpha, hurst=hurst, **RES3), depths=[1000])

    def exponents() -> None:
        net = tp.ResNet("L", alpha="alpha", hurst="hurst", **RES3)
        box = {
            "hurst": (Fraction(1, 20), Fraction(97, 100)),
            "alpha": (Fraction(1, 5), Fraction(13, 10)),
        }
        tp.phases(net, "mup", box)

    numbers, words = seconds(cells, 1), seconds(exponents, 1)
    print(f"\ndiagram, 100 cells of L = 1000: {numbers:.1f} s; by exponents: {words:.1f} s")
    figure("depth", "diagram of 100 cells of L = 1000, by theory", numbers)
    assert numbers < BUSY * 5 and words < BUSY * 5


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str) -> None:
    steps: list[float] = []
    plan = load_depth_experiment(EXAMPLES / f"{name}.toml")
    start, wall = time.process_time(), time.perf_counter()
    depth_experiment(plan, progress=lambda share, _: steps.append(share))
    found, wall = time.process_time() - start, time.perf_counter() - wall
    print(f"\n{name}: {found:.0f} s of the processor, {wall:.0f} s")
    figure("depth", f"{name} of `examples/resnets`", found)
    # of all figures 10 minutes on two cores, of the diagram 3
    assert found < CORES * (180 if name == "fig7" else 120)
    assert steps == sorted(steps) and (len(steps) > 1 or name == "fig6")  # it has no networks
