"""Lengths that settle nowhere: the factor beside the length map itself, layer after layer."""

from __future__ import annotations

from math import exp, log, pi

import numpy as np
import pytest

from tpcalc import signal
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.maps.layer_map import LayerMap

TAU = {name: lookup(name).fn.expr for name in ("relu", "tanh", "gelu", "swish")}


def test_relu_shrinks_as_its_closed_form_says() -> None:
    found = signal.survey("relu", 1 / 3, depth=50)
    assert found.drift is not None and found.drift.end == "any"
    for number, wanted in (
        (found.drift.growth, 1 / 6),
        (found.drift.whole, -50 * log(6)),
        (found.drift.kept, 2.0),
        (found.chi, 1 / 6),
        (found.gradient, -50 * log(6)),
    ):
        assert abs(number.value - wanted) <= number.stderr
        assert number.stderr <= 1e-13 * abs(wanted)
    assert signal.survey("relu", 1.9).chi.value == pytest.approx(0.95, rel=1e-15)
    # Of rank 1/4 the weights count a quarter, and 8 keep lengths.
    low = signal.survey("relu", 3, rank=0.25, depth=4)
    assert low.drift is not None and low.drift.kept.value == pytest.approx(8)
    assert low.drift.growth.value == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("name", "weights", "biases", "end", "start", "layers"),
    [
        ("tanh", 1 / 3, 0.0, "0", 1e-6, 3),
        ("gelu", 1 / 3, 0.0, "0", 1e-9, 3),
        ("gelu", 4.5, 0.0, "infinity", 1e8, 3),
        pytest.param("swish", 4.5, 0.2, "infinity", 1e8, 3, marks=pytest.mark.slow),
        ("relu", 3.0, 0.5, "infinity", 1e8, 3),
    ],
)
def test_the_factor_is_that_of_the_length_map_far_out(
    name: str, weights: float, biases: float, end: str, start: float, layers: int
) -> None:
    found, layer = signal.survey(name, weights, biases), LayerMap(TAU[name], weights, biases)
    assert found.drift is not None and found.drift.end == end
    q = start
    for _ in range(layers):
        q = layer.length(q).value
    assert (q / start) ** (1 / layers) == pytest.approx(found.drift.growth.value, rel=2e-4)
    assert found.chi.value == pytest.approx(found.drift.growth.value, rel=1e-9)


def test_correlations_of_divided_signals_are_those_of_the_layers_themselves() -> None:
    found, kernels = signal.survey("relu", 3.0, depth=20), Kernels(TAU["relu"])
    shallow = signal.survey("relu", 3.0, depth=1)
    for row in found.survival:
        q, c = 1.0, row.start
        for _ in range(20):
            q, c = 1.5 * q, 3 * kernels.product(Bounded(q), Bounded(q), Bounded(c * q)).value
            c /= q
        assert abs(row.end.value - c) <= row.end.stderr + 1e-13
        theta = np.arccos(row.start)
        first = (np.sin(theta) + (pi - theta) * np.cos(theta)) / pi
        once = next(each for each in shallow.survival if each.start == row.start)
        assert once.end.value == pytest.approx(first, abs=1e-9)


def test_an_unstable_length_is_surveyed_and_said_to_be_so() -> None:
    found = signal.survey("gelu", 2.35172, depth=5)
    assert found.unstable and found.drift is None
    assert found.length.value == pytest.approx(1, abs=1e-4)
    layer = LayerMap(TAU["gelu"], 2.35172)
    up, down = layer.length(1.02).value, layer.length(0.98).value
    assert up > 1.02 and down < 0.98
    wanted = 2.35172 * Kernels(TAU["gelu"]).slope(Bounded(found.length.value)).value
    assert found.chi.value == pytest.approx(wanted, rel=1e-9)


def test_the_edge_of_tanh_without_biases() -> None:
    found = signal.survey("tanh", 1.0, depth=100)
    assert found.drift is not None and found.drift.growth.value == 1
    assert found.phase == "edge of chaos" and exp(found.gradient.value) == pytest.approx(1)


def test_faster_than_by_a_factor_is_refused() -> None:
    with pytest.raises(EvaluationError, match="they diverge"):
        signal.survey("exp", 1.0)
