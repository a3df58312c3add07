"""Mean-field states of graphs of 100 layers, and curves of 100 points, after the first call.

    python -m tests.benchmarks tests/benchmarks/test_recursion_speed.py

The aim is 0.2 s for 100 activations, each with its mean, second moment, slope, gap and their
errors. What is asserted leaves room for a busy machine; times are printed.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest
from layered import Activation, BatchNorm, Bias, Dense, Input, LayerNorm, Lines, chain

from tests.benchmarks.figures import fastest, figure
from tpcalc.activations.entries import lookup
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature import gap
from tpcalc.meanfield.reading import propagate

DEPTH = 100
NAMES = ["tanh", "gelu", "relu", "erf", "selu", "even_tanh"]
BUSY = 8.0
best = partial(fastest, rounds=5, clock=time.process_time)


def plain(name: str, *norm) -> Lines:
    tau = lookup(name).fn.expr
    weights = 1 / Kernels(tau).second(Bounded(1.0)).value
    block = [Dense(weights), Bias(0.05), *norm, Activation(tau, name)]
    return chain(Input(1.0, 0.3), block * DEPTH)


@pytest.mark.parametrize("norm", [(), (LayerNorm(),), (BatchNorm(),)], ids=["no", "layer", "batch"])
@pytest.mark.parametrize("name", NAMES)
def test_hundred_layers(benchmark, name, norm):
    graph = plain(name, *norm)
    last = propagate(graph)[-1]
    assert last.gap.error < 1e-10 * last.gap.value
    seconds = best(lambda: propagate(graph))
    benchmark.pedantic(lambda: propagate(graph), rounds=2)
    benchmark.extra_info["ms per activation"] = 1e3 * seconds / DEPTH
    print(f"\n{name}: {1e3 * seconds:.0f} ms, {1e3 * seconds / DEPTH:.2f} ms per activation")
    words = "".join(f" and {type(each).__name__}" for each in norm)
    figure("signal", f"100 layers of {name}{words}", seconds)
    assert seconds < 0.2 * BUSY


@pytest.mark.parametrize("name", NAMES)
def test_hundred_gaps(benchmark, name):
    """From equal inputs to independent ones, in one call."""
    tau, share = lookup(name).fn.expr, np.geomspace(1e-20, 1.0, 100)
    found = gap(tau, 1.0, share)
    assert (found.error <= 1e-11 * found.value).all()
    assert (np.diff(found.value) > 0).all()
    seconds = best(lambda: gap(tau, 1.0, share))
    benchmark.pedantic(lambda: gap(tau, 1.0, share), rounds=2)
    print(f"\n{name}: {1e3 * seconds:.1f} ms")
    assert seconds < 0.05 * BUSY
