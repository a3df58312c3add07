"""Curves of the theory of signals: the edge of chaos, depth scales, a whole survey.

    python -m tests.benchmarks tests/benchmarks/test_signal_speed.py

The edge of chaos at 100 points takes less than 2 seconds, also the first time it is asked for.
"""

from __future__ import annotations

import time

import pytest

from tests.benchmarks.figures import figure
from tpcalc.activations.entries import lookup
from tpcalc.meanfield.maps.curves import edge_curve, scale_curve
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.survey import survey


@pytest.mark.parametrize("name", ["tanh", "erf", "gelu", "swish", "sigmoid"])
def test_edge_of_chaos(benchmark, name):
    tau = lookup(name).fn.expr
    start = time.perf_counter()
    found = edge_curve(tau, rank=0.25, low=0.1, high=100.0, points=100)
    first = time.perf_counter() - start
    assert len(found.squares) + found.left_out == 100
    assert first < 2
    benchmark.pedantic(lambda: edge_curve(tau, rank=0.25, low=0.1, high=100.0), rounds=3)
    print(f"\n{name}: first {1e3 * first:.0f} ms, error {found.error:.1e}")
    figure("signal", f"edge of chaos of {name}, 100 points", first, error=found.error)


def test_depth_scales(benchmark):
    """Figure 11 of the low-rank paper: four variances of biases."""
    tau = lookup("tanh").fn.expr

    def curves():
        return [scale_curve(tau, b, 1.0, 4.0, points=60) for b in (0.01, 0.05, 0.1, 0.3)]

    found = benchmark.pedantic(curves, rounds=1)
    assert all(one.scales.max() > 1e4 for one in found)


@pytest.mark.parametrize("weights", [1.5, 2.5, 16.0])
def test_one_layer(benchmark, weights):
    """Fixed points, chi and scales of tanh."""

    def scales():
        layer = LayerMap(lookup("tanh").fn.expr, weights, 0.09)
        return layer.length_scale, layer.correlation_scale, layer.gradient_scale

    assert benchmark.pedantic(scales, rounds=3)[1].known


@pytest.mark.parametrize("name", ["tanh", "relu", "gelu"])
def test_survey(benchmark, name):
    start = time.perf_counter()
    found = benchmark.pedantic(lambda: survey(name, 1.9, 0.1, depth=100), rounds=1)
    figure("signal", f"survey of {name}, depth 100", time.perf_counter() - start)
    assert found.phase in ("ordered", "chaotic")
