"""``survey``: what it says of layers, and what it says where there is nothing to say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tpcalc as tp
from tpcalc import signal
from tpcalc.errors import EvaluationError, StudyError
from tpcalc.meanfield.survey import survey
from tpcalc.results import Signal
from tpcalc.results.codec import from_json, to_json


@pytest.fixture(scope="module")
def chaotic() -> Signal:
    return survey("erf", 10.0, 0.4, rank=0.25, family="orthogonal", depth=40)


def test_numbers_belong_together(chaotic: Signal) -> None:
    assert chaotic.phase == "chaotic" and chaotic.effective == (2.5, 0.1)
    assert chaotic.gradient_scale.layers < 0 < chaotic.correlation_scale.layers
    assert chaotic.gradient.value == pytest.approx(-40 * chaotic.gradient_scale.rate.value)
    (edge,) = chaotic.edges
    assert edge.weights.value < 10 and edge.kind == "stable" and chaotic.edge_note == ""
    assert chaotic.nonzero == 0.25
    rows = {row.family: row for row in chaotic.jacobian}
    own = rows["gaussian"].layer.value - 4
    assert rows["orthogonal"].layer.value == pytest.approx(own + 3)
    assert rows["gaussian-gaussian"].whole.value == pytest.approx(40 * (own + 5))
    padded = 40 * (own + 3) + 39 * own * 3
    assert rows["padded orthogonal"].whole.value == pytest.approx(padded)


def test_correlations_are_followed(chaotic: Signal) -> None:
    """From below and above c* all go there, at the pace of the depth scale in the end."""
    limit = chaotic.correlation.value
    for each, curve in zip(chaotic.survival, chaotic.curves_of("dynamics"), strict=True):
        assert curve.y[0] == pytest.approx(each.start)
        assert each.layers is not None and each.layers <= 40
        distance = [abs(c - limit) for c in curve.y]
        assert distance == sorted(distance, reverse=True)
        assert distance[each.layers] < 0.01 * distance[0] <= distance[each.layers - 1]
        pace = distance[-1] / distance[-2]
        rate = chaotic.correlation_scale.rate.value
        assert pace == pytest.approx(2.718281828**-rate, rel=0.02)


def test_it_goes_to_json_and_back(chaotic: Signal) -> None:
    assert from_json(json.loads(json.dumps(to_json(chaotic), allow_nan=False))) == chaotic


def test_linear_layers_keep_every_correlation() -> None:
    found = survey("identity", 4.0, rank=0.25, depth=5)
    assert found.phase == "edge of chaos" and not found.correlation_scale.known
    assert [each.end.value for each in found.survival] == pytest.approx([0.2, 0.5, 0.8])
    assert any("layers are linear" in note for note in found.notes)
    assert any("q = 1" in note for note in found.notes)
    # of finite width: the exact recursion beside the limit
    assert any("20" in note and "N = 1000" in note for note in found.notes)


def test_what_holds_in_the_mean_alone_is_said() -> None:
    found = survey("erf", 6.0, 0.4, rank=0.25, depth=3)
    said = " ".join(found.notes)
    assert "typical deep network lies below its mean" in said
    assert "standard deviation of 0.1414" in said  # of a bias shared by all directions
    assert "shared" not in " ".join(survey("erf", 1.5, 0.1, depth=3).notes)


def test_an_edge_that_no_deep_network_stays_at() -> None:
    found = survey("gelu", 2.0, 0.1, depth=3)
    assert [point.kind for point in found.edges] == ["unstable"]
    assert "unstable" in found.edge_note
    assert any("several fixed points" in note for note in found.notes)
    none = survey("relu", 1.9, 0.1, depth=3)
    assert none.edges == () and "biases of no variance" in none.edge_note
    assert "none with other biases" in survey("softplus", 1.0, depth=3).edge_note


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (("erf", -1.0), StudyError, "variance of the weights is -1"),
        (("erf", 1.0, -0.1), StudyError, "variance of the biases is -0.1"),
        (("erf", 1.0, 0.1, 0.0), StudyError, "no weights of rank 0"),
        (("erf", 1.0, 0.1, 1.5), StudyError, "ranks end at the width"),
        (("erf", 1.0, 0.1, 1.0, "haar"), StudyError, "weights are 'haar'"),
        (("exp", 2.2, 0.1), EvaluationError, "they diverge"),
        (("erf", float("nan")), StudyError, "weights"),
    ],
)
def test_bad_layers(given: tuple[object, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        survey(*given)  # type: ignore[arg-type]


def test_a_network_of_one_layer_that_is_repeated() -> None:
    net = tp.MLP(20, "tanh", weight_variance=1.5, bias_variance=0.05)
    found, wanted = survey(net), survey("tanh", 1.5, 0.05, depth=20)
    assert (found.depth, found.activation) == (20, "tanh")
    assert found.chi == wanted.chi
    assert found.correlation_scale == wanted.correlation_scale
    assert survey(tp.MLP(3, "relu", weight_variance="5,2,2"), depth=9).depth == 9


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (tp.ResNet(3, "relu"), r"layer 4 \(addition\) is none of them"),
        (tp.MLP(3, "relu", norm="layer"), r"layer 2 \(layer norm\) is none of them"),
        (tp.MLP(3, "relu", weight_variance="1,2,3"), "layers 2 and 3 of the network differ"),
        (signal.parse_graph("x = input(1, 0)\ny = dense(x)"), "without activations"),
    ],
)
def test_networks_of_other_layers(network: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        survey(network)


def test_variances_belong_to_activations_alone() -> None:
    with pytest.raises(StudyError, match="a network says its variances itself"):
        survey(tp.MLP(3, "relu"), 2.0)
    with pytest.raises(StudyError, match="the variance of the weights is missing"):
        survey("relu")


def test_a_start_that_is_the_stable_correlation() -> None:
    """C(c) = (1 + 2 c^2) / 3 leaves 1/2 as it is, from which correlations are followed as well."""
    found = survey("square", 0.5)
    assert abs(found.correlation.value - 0.5) <= min(found.correlation.stderr, 1e-13)
    assert found.survival[1].end.value == pytest.approx(0.5, abs=1e-6)
