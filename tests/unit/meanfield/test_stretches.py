"""Networks that are programs, read as layers: the same numbers as layers, and as wide networks."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from layered import Activation, Dense, LayerNorm, Line, Lines, chain

import tpcalc as tp
from tpcalc.errors import StudyError, UnknownName, UsageError
from tpcalc.meanfield import operations as operations_of
from tpcalc.networks.own import as_network
from tpcalc.results import Method
from tpcalc.signal import Design, Input, layers, mlp, nlc, resnet

ACTS = ("tanh", "relu", "gelu", "swish", "leaky_relu:0.2")


# ----------------------------------------------------------------- beside layers that are named


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("biases", [0, Fraction(1, 10), 0.07])
def test_mlp_is_that_of_its_layers(act: str, norm: Any, biases: Any) -> None:
    start = Input(Fraction(3, 2), Fraction(1, 4))
    net = tp.MLP(6, act, norm=norm, weight_variance=1.3, bias_variance=biases)
    graph = mlp(6, Design(act, 1.3, biases, norm), start)
    found, wanted = nlc(net, inputs=start), nlc(graph)
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    assert found.stderr < 2 * wanted.stderr
    assert len(layers(net).layers) == len(graph.lines)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("biases", [0, Fraction(1, 10)])
def test_resnet_is_that_of_its_layers(act: str, norm: Any, biases: Any) -> None:
    depth = 9
    net = tp.ResNet(depth, act, norm=norm, weight_variance=2, bias_variance=biases, alpha="1/2")
    graph = resnet(depth, Design(act, 2, biases, norm), branch=depth**-0.5)
    graph = Lines((graph.lines[0], Line(Dense(1), (0,)), *graph.lines[2:]))
    found, wanted = nlc(net), nlc(graph)
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    assert tp.signal.path_nlc(net).value == pytest.approx(wanted.value, rel=1e-12)


def test_all_questions_take_a_network() -> None:
    net = tp.MLP(3, "tanh", weight_variance=1.5)
    graph = layers(net)
    gram = [[1.0, 0.3], [0.3, 0.8]]
    s = tp.signal
    assert (s.covariance(net, gram).values == s.covariance(graph, gram).values).all()
    assert s.bandwidth(net).value == s.bandwidth(graph).value
    assert s.kernel_slope(net).value == s.kernel_slope(graph).value
    assert s.stability(net).label == s.stability(graph).label
    assert s.heaviest_paths(net) == s.heaviest_paths(graph)
    assert s.spread(net, draws=2)[-1] == s.spread(graph, draws=2)[-1]
    assert s.propagate(net) == s.propagate(graph)
    said = s.nonlinearity(net)
    assert said.nlc.value == nlc(net).value
    assert said.model == net.words


def test_layers_have_the_names_that_a_network_reports() -> None:
    net = tp.MLP(3, "tanh", norm="layer", weight_variance=1.5)
    whole = nlc(net).value
    parts = [nlc(net, end="h[2]"), nlc(net, "h[2]", "hhat[3]"), nlc(net, "hhat[3]", "x[3]")]
    assert np.prod([part.value for part in parts]) == pytest.approx(whole, rel=1e-12)
    with pytest.raises(UnknownName, match=r"h\[2\]"):
        nlc(net, end="h[9]")


# ------------------------------------------------------------------- beside networks that are run


def bottleneck(t: Any, x: Any) -> Any:
    """Weights of low rank, a matrix each way."""
    t.dim("m", Fraction(1, 2))
    h = t.linear(t.n, "in", bias=True)(x)
    for _ in range(2):
        h = t.linear(t.n, "m")(t.linear("m", t.n)(tp.tanh(1.5 * h)))
    return t.linear(t.outputs, t.n)(h)


class Blocks(tp.Network):
    """Blocks with RMS norm of a stream that has a mean, and layer norm behind the activation."""

    def __init__(self, t: Any, depth: int = 2) -> None:
        self.enter = t.linear(t.n, "in")
        self.maps = [t.linear(t.n, t.n, bias=True) for _ in range(depth)]
        self.gains = [t.gain(f"g{k}") for k in range(depth)]
        self.leave = t.linear(t.outputs, t.n, bias=True)

    def forward(self, x: Any) -> Any:
        h = tp.relu(self.enter(x))
        for linear, gain in zip(self.maps, self.gains, strict=True):
            h = h + 0.8 * tp.relu(linear(gain * tp.rms_norm(h, eps=0.1)))
        return self.leave(tp.layer_norm(tp.relu(tp.layer_norm(self.maps[0](h)))))


@tp.network
def fused(t: Any, x: Any) -> Any:
    """Several functions of one vector, added and applied to each other."""
    h = t.linear(t.n, "in", name="u")(x)
    for k in range(3):
        z = tp.tanh(tp.relu(h)) + Fraction(1, 2) * h + tp.gelu(2 * h)
        h = t.linear(t.n, t.n, name=f"w{k}")(z * tp.sigmoid(z)) + t.vector(f"b{k}")
    return t.linear(t.outputs, t.n)(h + tp.sin(h))


@tp.network
def tied(t: Any, x: Any) -> Any:
    """One matrix in all layers; the input enters each of them."""
    enter, w = t.linear(t.n, "in"), t.linear(t.n, t.n)
    h = enter(x)
    for _ in range(3):
        h = Fraction(6, 5) * w(tp.tanh(h)) + enter(x)
    return t.linear(t.outputs, t.n)(tp.tanh(h))


@tp.network
def streams(t: Any, x: Any) -> Any:
    """Sums of sums, whose parts are the same layers."""
    a, b = t.linear(t.n, "in")(x), t.linear(t.n, "in")(x)
    left, right = a + b, a - Fraction(1, 2) * b
    h = t.linear(t.n, t.n)(tp.relu(left)) + t.linear(t.n, t.n)(tp.tanh(right))
    h = left + 2 * right + t.linear(t.n, t.n)(tp.gelu(h))
    return t.linear(t.outputs, t.n)(h + tp.tanh(h) - 3)


@tp.network
def gated(t: Any, x: Any) -> Any:
    """Blocks with gates: two matrices read a normalised stream."""
    h = t.linear(t.n, "in")(x)
    for _ in range(2):
        r = tp.layer_norm(h)
        gate, value = t.linear(t.n, t.n)(r), t.linear(t.n, t.n, bias=True)(r)
        h = h + t.linear(t.n, t.n)(2 * tp.swish(gate) * tp.relu(value + 1))
    return t.linear(t.outputs, t.n)(h)


NETWORKS = [bottleneck, Blocks, fused, tied, streams, gated]
WIDTH = 700


@pytest.mark.torch
@pytest.mark.parametrize("made", NETWORKS, ids=lambda made: as_network(made).name)
def test_networks_of_a_width_have_the_coefficient(made: Any) -> None:
    drawn = tp.signal.Sampling((WIDTH,), seeds=8, inputs=40)
    found = dict(tp.signal.nonlinearity(made, sampling=drawn).measured[-1].values)["NLC"].mean
    limit = nlc(made).value
    assert found.stderr < 0.02 * limit
    # and terms of order depth / width
    assert abs(found.value - limit) < 4 * found.stderr + 2.5 / WIDTH * limit


@pytest.mark.parametrize("made", NETWORKS, ids=lambda made: as_network(made).name)
def test_second_moments_are_those_of_the_limit_of_the_program(made: Any) -> None:
    rows = np.array([[1.0, 0.5, -0.3], [0.2, -1.1, 0.9]])
    found = tp.signal.covariance(made, rows @ rows.T / 3)
    kernel = tp.kernel(as_network(made), rows, kinds="nngp")
    close = 5 * kernel.error if kernel.method is Method.PARTICLES else 1e-11
    assert np.abs(found.values - kernel.nngp).max() < close * kernel.nngp.max()


# --------------------------------------------------------------------------------- what is fused


def operations(network: Any) -> list[str]:
    return [layer.operation.name for layer in layers(network).layers]


def test_functions_of_one_vector_are_one_activation() -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        return t.linear(t.outputs, t.n)(tp.tanh(tp.relu(2 * h)) + h * tp.relu(-h) + 1)

    assert operations(net)[2] == "1 + tanh(relu(2*x0)) + x0*relu(-1*x0)"
    assert len(operations(net)) == 4


def test_multiples_of_a_vector_are_that_vector() -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        return t.linear(t.outputs, t.n)(tp.tanh(3 * h) + 3 * h + tp.relu(h / 2))

    def other(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", factors=(3, 1))(x)
        return t.linear(t.outputs, t.n)(tp.tanh(h) + h + tp.relu(h) / 6)

    assert operations(net)[1:3] == ["dense", "relu(1/2*x0) + tanh(3*x0) + 3*x0"]
    assert operations(other)[1:3] == ["dense", "1/6*relu(x0) + tanh(x0) + x0"]
    assert layers(other).layers[1].operation == operations_of.Dense(Fraction(9))
    assert nlc(net).value == pytest.approx(nlc(other).value, rel=1e-12)


@pytest.mark.parametrize(
    "norm",
    [
        tp.layer_norm,
        lambda h: (h - tp.mean(h)) / tp.mean((h - tp.mean(h)) ** 2) ** Fraction(1, 2),
        lambda h: (h - tp.mean(h)) / (tp.mean(h * h) - tp.mean(h) ** 2) ** Fraction(1, 2),
    ],
)
def test_layer_norm_is_found_in_each_spelling(norm: Callable[[Any], Any]) -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, t.n)(norm(tp.relu(t.linear(t.n, "in")(x))))
        return t.linear(t.outputs, t.n)(tp.tanh(norm(h)))

    found = [layer.operation for layer in layers(net).layers]
    assert found[3] == LayerNorm()
    assert found[5] == LayerNorm()


def test_rms_norm_keeps_the_mean() -> None:
    def net(t: Any, x: Any) -> Any:
        h = tp.rms_norm(tp.relu(t.linear(t.n, "in")(x)), eps=0.25)
        return t.linear(t.outputs, t.n)(h)

    graph = layers(net)
    assert graph.layers[3].operation == LayerNorm(0.25, centred=False)
    state = tp.signal.propagate(graph)[3]
    assert state.square.value == pytest.approx(0.5 / 0.75)
    assert state.mean.value == pytest.approx((2 * np.pi) ** -0.5 / 0.75**0.5)
    (row,) = tp.signal.covariance(graph, [[1.0]]).values
    assert row[0] == pytest.approx(state.square.value)
    limit = tp.limit(tp.signal.program_of(net))
    for letter, own in (("q", state.square), ("c", state.comean)):
        assert limit[f"{letter}[x[W2]]"].value == pytest.approx(own.value)
    assert limit["g[x[W2]]"].value == pytest.approx(state.gradient)


def test_norm_without_epsilon_in_a_program_of_two_inputs() -> None:
    norm = LayerNorm(centred=False)
    graph = chain(Input(), [Dense(), Activation("relu"), norm, Dense()])
    limit = tp.limit(tp.signal.program_of(graph))
    state = tp.signal.propagate(graph)[3]
    assert limit["c[h[h3]]"].value == pytest.approx(state.comean.value)
    assert limit["g[h[h3]]"].value == pytest.approx(state.gradient)


GATE = tp.signal.parse_graph("""
x = input(1, 1/3)
a = dense(x)
b = dense(x)
c = relu(a)
d = sigmoid(b)
e = c*d
f = dense(e)
""")


def test_products_of_independent_functions_in_every_question() -> None:
    def net(t: Any, x: Any) -> Any:
        a, b, c = (t.linear(t.n, "in")(x) for _ in range(3))
        return t.linear(t.outputs, t.n)(tp.relu(a) * tp.tanh(b + 1) * c + tp.layer_norm(tp.relu(a)))

    def gate(t: Any, x: Any) -> Any:
        a, b = (t.linear(t.n, "in")(x) for _ in range(2))
        return t.linear(t.outputs, t.n)(tp.relu(a) * tp.sigmoid(b))

    with pytest.raises(StudyError, match="that are not independent"):
        nlc(net)
    graph = layers(gate, Input(1, Fraction(1, 3)))
    assert operations(gate)[3:] == ["relu", "sigmoid", "product", "dense"]
    product = graph.last - 1
    state = tp.signal.propagate(graph)[product]
    program = tp.signal.program_of(gate, Input(1, Fraction(1, 3)))
    limit = tp.limit(program)
    for name, own in (("q", state.square.value), ("c", state.comean.value), ("g", state.gradient)):
        assert limit[f"{name}[x[W3]]"].value == pytest.approx(own, rel=1e-9)
    gram = [[1.0, 1 / 3], [1 / 3, 1.0]]
    found = tp.signal.covariance(graph, gram).values
    assert found[0, 1] == pytest.approx(state.comean.value, rel=1e-12)
    assert tp.signal.kernel_slope(graph).value == pytest.approx(state.gradient, rel=1e-12)
    assert tp.signal.path_nlc(graph).value == pytest.approx(nlc(graph).value, rel=1e-12)
    assert sum(path.weight for path in tp.signal.heaviest_paths(graph)) == pytest.approx(1)
    text = tp.signal.graph_text(GATE)
    assert tp.signal.parse_graph(text) == GATE
    assert [layer.operation for layer in layers(GATE).layers] == [
        layer.operation for layer in graph.layers
    ]
    powers = tp.orders(program)
    squares = [powers[name] for name, _ in program.outputs if name.startswith("q[")]
    assert {(own.status, own.text) for own in squares} == {("exact", "0")}


def test_deviations_of_lengths_add_up_in_a_product() -> None:
    def net(t: Any, x: Any, *, norm: bool) -> Any:
        h = t.linear(t.n, "in")(x)
        for _ in range(4):
            r = tp.layer_norm(h) if norm else h
            h = t.linear(t.n, t.n)(t.linear(t.n, t.n)(r) * t.linear(t.n, t.n)(r))
        return t.linear(t.outputs, t.n)(tp.layer_norm(h) if norm else h)

    bare = tp.signal.stability(tp.network(net, norm=False))
    assert bare.label == "unstable"
    assert bare.factors[-1].value == pytest.approx(2.0**4)
    assert tp.signal.stability(tp.network(net, norm=True)).label == "stable"


def test_functions_of_inputs_and_of_outputs() -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(tp.tanh(x))
        return tp.relu(t.linear(t.outputs, t.n, bias=True)(h)) + 1

    assert operations(net) == ["input", "tanh", "dense", "dense", "bias", "1 + relu(x0)"]


# -------------------------------------------------------------------------------- what is refused


def refused(body: Callable[[Any, Any], Any]) -> StudyError:
    def net(t: Any, x: Any) -> Any:
        return t.linear(t.outputs, t.n)(body(t, t.linear(t.n, "in", name="u")(x)))

    with pytest.raises(StudyError) as caught:
        nlc(net)
    return caught.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            lambda t, h: tp.tanh(tp.relu(h) + t.linear(t.n, t.n, name="w")(tp.relu(h))),
            "a vector that u, w wrote .* a sum of functions",
        ),
        (
            lambda t, h: tp.tanh(h + t.linear(t.n, t.n, name="w")(tp.tanh(h))) + tp.relu(h),
            "two vectors that are not independent, a vector that u wrote .* and .* that u, w wrote",
        ),
        (lambda t, h: tp.tanh(h * t.vector("b")), "bends a vector that b, u wrote .*not Gaussian"),
        (
            lambda t, h: h * tp.tanh(h + t.linear(t.n, t.n, name="w")(tp.relu(h))),
            "a function of two vectors, a vector that u wrote .* that u, w wrote",
        ),
        (lambda t, h: tp.tanh(t.mean(tp.relu(h)) * h), "averages over coordinates in other ways"),
        (lambda t, h: tp.tanh(tp.n ** Fraction(1, 2) * h), r"of the size n\^\(1/2\)"),
        (lambda t, h: t.vector("b") + tp.tanh(t.vector("c")), "no input reaches"),
        (lambda t, h: 0 * h, "the output of the network is a constant"),
    ],
)
def test_what_the_recursion_does_not_follow_is_named(body: Any, said: str) -> None:
    error = refused(body)
    assert re.search(said, error.message)
    assert error.where is not None
    assert "test_stretches.py:" in error.where
    assert "tp.kernel" in str(error.hint)


def test_a_matrix_and_its_transpose() -> None:
    def net(t: Any, x: Any, *, once: bool) -> Any:
        w = t.linear(t.n, t.n, name="w")
        h = tp.relu(t.linear(t.n, "in")(x))
        return t.linear(t.outputs, t.n)(tp.tanh(w.T(h if once else tp.tanh(w(h)))))

    assert operations(tp.network(net, once=True))[2:5] == ["relu", "dense", "tanh"]
    with pytest.raises(StudyError, match="w is applied both as it is and transposed"):
        nlc(tp.network(net, once=False))


def test_several_tokens_outputs_and_what_is_no_network() -> None:
    def two(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        return [t.linear(t.outputs, t.n)(h), t.linear(t.outputs, t.n)(tp.relu(h))]

    with pytest.raises(StudyError, match="is 3 vectors, whose layers are not independent"):
        nlc(tp.RNN(3, "tanh"))
    with pytest.raises(StudyError, match=r"2 outputs, f\[0\], f\[1\]"):
        nlc(two)
    with pytest.raises(UsageError, match="the network is 'tanh'"):
        nlc("tanh")  # type: ignore[arg-type]


def test_weights_that_start_at_zero() -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        h = h + t.linear(t.n, t.n, starts=(0, 1))(tp.relu(h)) + t.vector("b", start=Fraction(0))
        return t.linear(t.outputs, t.n)(tp.tanh(h))

    assert operations(net) == ["input", "dense", "tanh", "dense"]
