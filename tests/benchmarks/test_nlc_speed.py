"""The nonlinearity of a wide, deep torch network: below 10 s on two cores."""

from __future__ import annotations

import time
from typing import Any

import pytest
from layered import Activation, Dense, drawn

from tests.benchmarks.figures import figure
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.nonlinearity.tensors.coefficient import measured_nlc as nlc
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
from tpcalc.nonlinearity.tensors.layers import layer_metrics

pytestmark = pytest.mark.torch

WIDTH, DEPTH, INPUTS = 1000, 20, 1000
GROUP = "20 layers of width 1000, 1000 inputs"


@pytest.fixture(scope="module")
def network() -> DrawnNetwork:
    words = [*[Dense(2.0), Activation("relu")] * DEPTH, Dense(outputs=10)]
    return drawn(words, WIDTH, WIDTH)


@pytest.mark.benchmark(group=GROUP)
@pytest.mark.parametrize("estimator", ["backward", "forward"])
def test_coefficient(benchmark: Any, network: DrawnNetwork, estimator: Any) -> None:
    x = gaussian_inputs(INPUTS, WIDTH)
    start = time.perf_counter()
    found = benchmark.pedantic(lambda: nlc(network, x, estimator=estimator), rounds=1)
    case = f"NLC of {DEPTH} layers of width {WIDTH} on {INPUTS} inputs, {estimator}"
    figure("signal", case, time.perf_counter() - start)
    assert found.nlc.stderr < 0.03 * found.nlc.value


@pytest.mark.benchmark(group=GROUP)
def test_all_layers(benchmark: Any, network: DrawnNetwork) -> None:
    x = gaussian_inputs(INPUTS, WIDTH)
    rows = benchmark.pedantic(lambda: layer_metrics(network, x), rounds=1)
    assert len(rows) == 2 * DEPTH + 2
