"""Networks of finite width on batches, beside the split program, and beside torch's derivatives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from agreements.own_networks import NETWORKS
from layered import Activation, Addition, BatchNorm, Dense, Input, chain

import tpcalc as tp
from tpcalc import layers as L
from tpcalc.finite.dense import run_dense
from tpcalc.finite.networks.gradients import Forward
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.networks.network import traced, written
from tpcalc.networks.own import as_network
from tpcalc.passes.split import split
from tpcalc.program.nodes import Data
from tpcalc.program.program import Program

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH, FEATURES, OUTPUTS, SEED = 12, 2, 3, 3


class Attention(tp.Network):
    """Two finite heads over three tokens, a residual sum and layer norm, a mean over tokens."""

    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed = t.linear(t.n, "in")
        self.mix = L.Attention(t, 2)
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        h = h + self.mix(tp.layer_norm(h))
        return self.read((h.at(p=0) + h.at(p=1) + h.at(p=2)) / 3)


class Convolution(tp.Network):
    """Convolutions of the layers of the package, the taps as an axis of the weights."""

    axes: ClassVar = {"p": 5}

    def __init__(self, t: Any) -> None:
        self.first = L.Conv(t, t.n, "in")
        self.second = L.Conv(t, t.n, t.n)
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = tp.tanh(self.second(tp.relu(self.first(x))))
        return self.read(h.at(p=1) + h.at(p=3))


@tp.network(axes={"p": 2})
def stacked(t: Any, x: Any) -> Any:
    """Two vectors of one token and a bias that all share, as the cells of an axis."""
    h, b = t.linear(t.n, "in", name="u")(x), t.vector("b")
    s = t.stack([tp.tanh(h.at(p=0)), h.at(p=1) + b, b], "k")
    return t.linear(t.outputs, t.n, name="v")(t.sum(s * s, "k"))


DRAWN: dict[str, Any] = {
    "stacked": stacked,
    "mlp": tp.MLP(2, "relu", bias="all", weight_variance=2),
    "layer norm": tp.MLP(2, "tanh", bias="hidden", norm="layer"),
    "rnn": tp.RNN(3),
    "resnet": tp.ResNet(2, "gelu"),
    "attention": Attention,
    "convolution of the package": Convolution,
    **{name: network for name, (network, _) in NETWORKS.items()},
}


def program_of(name: str) -> tuple[Program, Any]:
    network = as_network(DRAWN[name])
    numbers = network.tokens * FEATURES
    rows = np.random.default_rng(5).standard_normal((4, numbers))
    return written(network, numbers, OUTPUTS), torch.from_numpy(rows)


def filled(program: Program, row: Any) -> Program:
    """The program with the numbers of an input in its slot."""
    nodes = tuple(
        replace(node, values=tuple(map(float, row)))
        if isinstance(node, Data) and not node.values
        else node
        for node in program.nodes
    )
    return replace(program, nodes=nodes)


@pytest.mark.parametrize("name", DRAWN)
def test_a_batch_gives_what_the_split_program_gives_input_by_input(name: str) -> None:
    """The same draws, so that all that is reported agrees to rounding."""
    program, x = program_of(name)
    values = DrawnNetwork(program, WIDTH, SEED).values(x)
    for index, row in enumerate(x.numpy()):
        found = run_dense(split(filled(program, row)), WIDTH, [SEED])
        assert len(found) >= len(program.outputs)
        for (cell, statistic), (expected,) in found.items():
            label = cell if cell in values else cell.rpartition("[")[0]
            inside = cell[len(label) :].strip("[]")
            value = values[label][index]
            value = value[tuple(map(int, inside.split(",")))] if inside else value
            own = {"value": value, "mean": value.mean(), "second_moment": (value**2).mean()}
            size = max(1.0, float(value.abs().max()) ** 2)
            assert float(own[statistic]) == pytest.approx(expected, abs=1e-13 * size), cell


@pytest.mark.parametrize("name", DRAWN)
def test_a_step_is_that_of_torchs_own_derivatives(name: str) -> None:
    """Shared weights, blocks of weights, biases: kept * w - rate * gradient, in place."""
    program, x = program_of(name)
    network, plain = DrawnNetwork(program, WIDTH, SEED), DrawnNetwork(program, WIDTH, SEED)
    leaves = {key: value.clone().requires_grad_() for key, value in plain.parameters.items()}
    plain.parameters.update(leaves)
    chi = torch.from_numpy(np.random.default_rng(6).standard_normal(network(x).shape))
    plain(x).backward(chi)
    forward = Forward(network, x)
    torch.testing.assert_close(forward.outputs, plain(x).detach(), rtol=1e-13, atol=1e-13)
    gradients = forward.gradients(chi)
    kept = {key: 0.5 for key in leaves}
    for key, leaf in leaves.items():
        size = float(leaf.grad.abs().max())
        assert size > 0
        torch.testing.assert_close(gradients.formed(key), leaf.grad, rtol=0, atol=1e-10 * size)
    places = {key: value.data_ptr() for key, value in network.parameters.items()}
    for rate in (0.3, 30.0):  # below and above 1 a rate is multiplied elsewhere
        before = {key: value.clone() for key, value in network.parameters.items()}
        gradients.step({key: rate for key in leaves}, kept)
        for key, leaf in leaves.items():
            expected = 0.5 * before[key] - rate * leaf.grad
            size = float(leaf.grad.abs().max())
            new = network.parameters[key]
            torch.testing.assert_close(new, expected, rtol=1e-12, atol=1e-10 * rate * size)
            assert new.data_ptr() == places[key]


def test_noise_belongs_to_the_call() -> None:
    @tp.network
    def dropped(t: Any, x: Any) -> Any:
        h = L.Dropout(t, 0.5)(tp.relu(t.linear(t.n, "in")(x)))
        return t.linear(t.outputs, t.n)(h)

    network = DrawnNetwork(written(as_network(dropped), 2, 1), 4000)
    x = torch.ones(2, 2, dtype=torch.float64)
    one, again, other = network(x, noise=1), network(x, noise=1), network(x, noise=2)
    assert bool((one == again).all()) and not bool((one == other).any())
    assert float(one[0, 0]) != float(one[1, 0])  # every input draws its own
    assert set(network.parameters) == {"W1", "W2"}


def test_layers_are_those_of_the_recursion() -> None:
    """Each is a node times a factor; as functions of each other they are the whole network."""
    network = tp.signal.network_of(tp.ResNet(2, "tanh", weight_variance=2), 40, 6, seed=1)
    graph = tp.signal.layers(tp.ResNet(2, "tanh", weight_variance=2))
    x = tp.signal.functions.gaussian_inputs(7, 6)
    layers = network.layers(x)
    assert [tap.parents for tap in network.taps] == [layer.parents for layer in graph.layers]
    assert [layer.shape[1] for layer in layers] == list(network.sizes)
    for index, (tap, layer) in enumerate(zip(network.taps, graph.layers, strict=True)):
        if index == 0:
            continue
        alone = network.layer(index, [layers[parent] for parent in tap.parents])
        torch.testing.assert_close(alone, layers[index], rtol=1e-12, atol=1e-12)
        if layer.operation.name == "addition":
            pairs = zip(tap.weights, tap.parents, strict=True)
            total = sum(weight * layers[parent] for weight, parent in pairs)
            torch.testing.assert_close(total, layers[index], rtol=1e-12, atol=1e-12)
        if layer.operation.name == "tanh":
            torch.testing.assert_close(torch.tanh(layers[tap.parents[0]]), layers[index])
    torch.testing.assert_close(layers[-1], network(x))
    assert network.is_bottleneck(1, len(layers) - 1) and not network.is_bottleneck(2, 4)
    torch.testing.assert_close(network.between(1, len(layers) - 1)(layers[1]), layers[-1])


TABLE = json.loads(
    (Path(__file__).parents[1] / "unit" / "meanfield" / "lines.json").read_text(encoding="utf-8")
)
WRITTEN = {
    "batch norm": tp.signal.mlp(2, tp.signal.Design("tanh", 1.5, 0.1, "batch")),
    "residual batch norm": tp.signal.resnet(2, tp.signal.Design("relu", 1.5, 0.1, "batch")),
    "low rank": tp.signal.mlp(2, tp.signal.Design("tanh", 4, 0.1, rank=0.25, bias="span")),
    "masks": chain(
        Input(), [Dense(2), Activation("tanh"), Dense(4, "padded", 0.25), Activation("relu")]
    ),
    "activation of the inputs": chain(Input(), [Activation("tanh"), Dense(1.5), BatchNorm()]),
    "multiple of a layer": chain(Input(), [Dense(2)]).then(Addition((2.0,))),
    "outputs": chain(Input(), [Dense(2), Activation("tanh"), Dense(3, outputs=4)]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_layers_are_what_the_network_reports(name: str) -> None:
    """Every layer of the recursion is shown, and is the value of its name."""
    network, graph = tp.signal.network_of(WRITTEN[name], 16, 6), tp.signal.layers(WRITTEN[name])
    x = tp.signal.functions.gaussian_inputs(7, 6)
    layers, values = network.layers(x), network.values(x)
    assert [tap.parents for tap in network.taps] == [layer.parents for layer in graph.layers]
    reported = {key: index for key, index in graph.names if key.startswith("h[")}
    assert reported or name in ("multiple of a layer", "activation of the inputs")
    for key, index in reported.items():
        torch.testing.assert_close(layers[index], values[key], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(layers[-1], network(x), rtol=1e-12, atol=1e-12)
    for index, tap in list(enumerate(network.taps))[1:]:
        alone = network.layer(index, [layers[parent] for parent in tap.parents])
        torch.testing.assert_close(alone, layers[index], rtol=1e-12, atol=1e-12)


def recorded() -> Iterator[Any]:
    for kind, act, norm, family, rank, bias, batch, _ in TABLE["designs"]:
        share = Fraction(rank) if isinstance(rank, str) else rank
        design = tp.signal.Design(act, Fraction(3, 2), 0.1, norm, family, share, bias, batch)
        yield (tp.signal.mlp if kind == "mlp" else tp.signal.resnet)(2, design)
    for seed, batch, _ in TABLE["macro_layers"]:
        yield tp.signal.drawn_macro_layers(seed).network(batch)
    for _, lines, _ in TABLE["texts"]:
        yield tp.signal.parse_graph("\n".join(lines))


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_every_layer_of_recorded_networks_is_shown(every: int) -> None:
    """Also of random macro-layers: each is what it is computed from, put through its part."""
    x = tp.signal.functions.gaussian_inputs(9, 6)
    for net in list(recorded())[::every]:
        network, graph = tp.signal.network_of(net, 16, 6), tp.signal.layers(net)
        layers = network.layers(x)
        assert [tap.parents for tap in network.taps] == [layer.parents for layer in graph.layers]
        for index, tap in list(enumerate(network.taps))[1:]:
            alone = network.layer(index, [layers[parent] for parent in tap.parents])
            torch.testing.assert_close(alone, layers[index], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [tp.signal.mlp, tp.signal.resnet])
def test_the_batch_at_hand_is_the_axis_of_the_program(kind: Any) -> None:
    """The program of one input that averages over its batch, beside the one of all inputs."""
    net = kind(2, tp.signal.Design("tanh", 1.5, 0.1, "batch", batch=8))
    x = tp.signal.functions.gaussian_inputs(8, 5)
    network = tp.signal.network_of(net, 12, 5, seed=SEED)
    whole = DrawnNetwork(traced(net, 8 * 5, 12), 12, seed=SEED)
    assert whole.parameters.keys() == network.parameters.keys()
    for name, parameter in whole.parameters.items():
        parameter.copy_(network.parameters[name])
    found = whole(x.reshape(1, -1)).reshape(8, 12)
    torch.testing.assert_close(network(x), found, rtol=1e-12, atol=1e-12)


def test_measured_networks_are_the_network_itself() -> None:
    """Variances of the parameters as they are, and coefficients beside the limit."""
    own = tp.MLP(2, "tanh", weight_variance=1.5, bias_variance=0.1)
    network = tp.signal.network_of(own, 300, 300, seed=2)
    rows = {row.layer: row.value for row in tp.signal.functions.layer_variances(network)}
    assert [rows[k] for k in (1, 4, 7)] == pytest.approx([1.5, 1.5, 1.0], rel=0.05)
    assert [rows[k] for k in (2, 5)] == pytest.approx([0.1, 0.1], rel=0.3)
    limit = tp.signal.nlc(own).value
    assert tp.signal.nlc(tp.signal.concrete(own, network)).value == pytest.approx(limit, rel=0.05)
    x = tp.signal.functions.gaussian_inputs(250, 300, seed=1)
    assert tp.signal.functions.layerwise_nlc(network, x).value == pytest.approx(limit, rel=0.05)
    network.parameters["W1"].mul_(3.0)
    after = {row.layer: row.value for row in tp.signal.functions.layer_variances(network)}
    assert after[1] == pytest.approx(9 * rows[1], rel=1e-12)
    assert after[4] == rows[4]


@pytest.mark.parametrize("name", ["rnn", "attention", "gru"])
def test_networks_that_the_recursion_does_not_follow_show_their_vectors(name: str) -> None:
    network = tp.signal.network_of(DRAWN[name], 10, program_of(name)[1].shape[1])
    layers = network.layers(program_of(name)[1])
    assert [tuple(layer.shape) for layer in layers] == [(4, size) for size in network.sizes]
    whole = network(program_of(name)[1])
    torch.testing.assert_close(layers[-1], whole, rtol=1e-12, atol=1e-12)
    x = tp.signal.functions.gaussian_inputs(50, layers[0].shape[1])
    found = tp.signal.functions.layer_metrics(network, x, draws=2)
    assert len(found) == len(layers) and all(row.scale.value > 0 for row in found)
