"""The nonlinearity coefficient as an answer: routes, notes, and networks beside the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layered import Activation, Addition, Dense, Input, LayerNorm, SharedBias, Word, chain

import tpcalc as tp
from tpcalc.errors import StudyError, UsageError
from tpcalc.meanfield.answer import nonlinearity
from tpcalc.meanfield.measured import Sampling
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.nonlinearity import nlc
from tpcalc.meanfield.notation.architectures import Design, mlp, resnet
from tpcalc.meanfield.reading import propagate
from tpcalc.results import Method

TANH = Activation("tanh")


def test_an_answer_has_every_layer() -> None:
    graph = resnet(2, Design("relu", 2, 0.1, "layer"), Input(1, 0.2))
    found = nonlinearity(graph, "a residual network")
    states = propagate(graph)
    assert found.nlc.value == nlc(graph).value
    assert [row.square.value for row in found.layers] == [s.square.value for s in states]
    own = [row.own.value for row in found.layers if row.own is not None]
    assert len(own) == 2 and min(own) > 1
    assert sum(path.weight for path in found.paths) == pytest.approx(1, abs=1e-12)
    assert found.conditions[0].startswith("layer 2 (layer norm) and 1 more: epsilon is 0")
    assert (found.route, found.measured, found.widths) == ("recursion", (), ())


def test_sums_of_functions_of_a_layer_are_one_function() -> None:
    graph = chain(Input(1, 0), [Dense(1), TANH]).then(Addition((1, 1)), 1, 2)
    found = nonlinearity(graph)
    assert found.route == "recursion"
    assert found.layers[-1].square.value == pytest.approx(2.605706, abs=1e-6)
    # E (1 + tanh')^2 / E (s + tanh s)^2, the coefficient of s + tanh s itself
    whole = nonlinearity(
        chain(Input(1, 0), [Dense(1), Activation(TANH.tau + Activation("identity").tau)])
    )
    assert found.nlc.value == pytest.approx(whole.nlc.value, rel=1e-6)


def test_programs_take_over_where_the_recursion_does_not_hold() -> None:
    """tanh(relu(s) + r), s ~ N(0, 1) and r ~ N(0, 1/2): relu has the mean square 1/2."""
    graph = chain(Input(1, 0), [Dense(1), Activation("relu"), Dense(1)])
    graph = graph.then(Addition((1, 1)), 2, 3).then(TANH)
    found = nonlinearity(graph)
    assert found.route == "program"
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    weights /= weights.sum()
    r = nodes[None, :] * 0.5**0.5
    half = np.linspace(0, 9, 4001)[:, None]  # the kink of relu at the end of the range
    density = np.exp(-(half**2) / 2) / (2 * np.pi) ** 0.5
    curved = (np.tanh(half + r) ** 2 @ weights)[:, None] * density
    square = np.trapezoid(curved[:, 0], half[:, 0]) + 0.5 * np.tanh(r) ** 2 @ weights
    last = found.layers[-1]
    assert last.operation == "h[h5]"
    assert last.square.value == pytest.approx(float(square[0]), abs=5 * last.square.stderr + 1e-6)
    assert "does not hold: it bends" in found.notes[0] and "not Gaussian" in found.notes[0]


def test_unstable_networks_are_told_with_their_widths() -> None:
    square = Activation("square")
    layers: list[Word] = [Dense(1 / 3), square]
    sampling = Sampling((32,), seeds=2, inputs=20)
    found = nonlinearity(chain(Input(1, 0), layers * 5), sampling=sampling)
    assert found.stability == "unstable"
    assert "unreliable for narrow networks (width 32: about 5.7 of the length)" in found.notes[0]


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_networks_approach_the_limit(norm: str) -> None:
    word = {"none": "none", "layer": "layer", "batch": "batch"}[norm]
    graph = mlp(2, Design("tanh", 1.5, 0.1, word), Input(1.0, 0.3))  # type: ignore[arg-type]
    found = nonlinearity(graph, sampling=Sampling((300,), seeds=4, inputs=250, seed=2))
    row = found.at(300, graph.last)
    assert row is not None and found.at(7, 0) is None
    for name in ("NLC", "LBIAS", "LSCALE", "JACF"):
        value = row.value(name)
        assert value is not None and value.mean.method is Method.FINITE
        room = 5 * value.mean.stderr + 0.03 * value.limit.value  # depth / n, and 1 / inputs
        assert abs(value.mean.value - value.limit.value) < room, name


def test_low_rank_layers_keep_their_size() -> None:
    import torch

    for family in ("gaussian", "orthogonal", "gaussian-gaussian", "padded"):
        graph = chain(Input(), [Dense(4.0, family, 0.25)])
        network = network_of(graph, 400, 400, seed=1)
        x = torch.from_numpy(__import__("numpy").random.default_rng(0).normal(size=(50, 400)))
        square = float((network(x) ** 2).mean())
        assert square == pytest.approx(propagate(graph)[-1].square.value, rel=0.1)
    wide = chain(Input(), [Dense(2.0, "orthogonal", width=2)])
    assert [tap.kind for tap in network_of(wide, 50, 50).taps] == ["input", "weights"]
    assert float((network_of(wide, 50, 50)(x[:, :50]) ** 2).mean()) == pytest.approx(2, rel=0.1)


def test_what_does_not_self_average_is_refused() -> None:
    graph = chain(Input(), [Dense(1, rank=0.5), SharedBias(0.1, 0.5), TANH])
    with pytest.raises(StudyError, match="does not self-average"):
        nonlinearity(graph)
    bent = graph.then(LayerNorm()).then(TANH)
    with pytest.raises(StudyError, match="one bias shared by all coordinates does not self-av"):
        nonlinearity(bent)
    with pytest.raises(UsageError, match="1 seeds"):
        Sampling((10,), seeds=1)


def test_vectors_that_no_input_reaches_are_no_rows() -> None:
    """Where the limit of the program answers, a mask that is reported has no derivative."""

    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        h = h * tp.tanh(t.vector("mask"))
        h = h + t.linear(t.n, t.n)(tp.layer_norm(h, 0.1))
        return t.linear(t.outputs, t.n, name="v")(tp.gelu(h))

    found = nonlinearity(net, seed=1)
    assert found.route == "program" and all(row.total.value >= 1 for row in found.layers)
