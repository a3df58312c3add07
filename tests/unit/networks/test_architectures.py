"""Templates of the architectures: what they compute, what their limits are, what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy_run import is_input, key, run

import tpcalc as tp
from tpcalc.errors import StudyError, UnknownName, UsageError
from tpcalc.networks.architecture import root
from tpcalc.networks.architectures import REGISTRY, lookup
from tpcalc.networks.network import Architecture, slots
from tpcalc.networks.own import as_network
from tpcalc.passes.template import Template
from tpcalc.program.base import references
from tpcalc.program.nodes import Input, Kind, LinComb
from tpcalc.program.program import Program, prune
from tpcalc.training.parameterization import Parameterization
from tpcalc.training.parameterizations import lookup as parameterization
from tpcalc.training.written import template_of

Inputs = dict[str, Any]
WIDTH = 9
ROW = (0.7, -1.2, 0.4, 0.9)


def normalised(h: np.ndarray) -> np.ndarray:
    return (h - h.mean()) / h.std()


def mlp(net: tp.MLP, at: Inputs, width: int) -> dict[str, np.ndarray]:
    """An MLP of the NTK parameterization, written out."""
    found = {}
    x = np.stack([at[f"W1[{j}]"] for j in range(4)], 1) @ np.array(ROW)
    for layer in range(1, net.depth + 1):
        small = 1.0 if layer == 1 else width**-0.5
        h = small * sqrt(net.weight_variance) * (x if layer == 1 else at[f"W{layer}"] @ x)
        if net.bias in ("hidden", "all") or (net.bias == "first" and layer == 1):
            h = h + sqrt(net.bias_variance or 1) * at[f"b{layer}[0]"]
        x = np.tanh(normalised(h) if net.norm == "layer" else h)
        found |= {f"h{layer}": h, f"x{layer}": x}
    last = net.depth + 1
    found["f"] = width**-0.5 * (at[f"W{last}[0]"] @ x)
    if net.bias == "all":
        found["f"] = found["f"] + sqrt(net.bias_variance or 1) * at[f"b{last}"]
    return found


def resnet(net: tp.ResNet, at: Inputs, width: int) -> dict[str, np.ndarray]:
    """A residual network of the NTK parameterization, written out."""
    h = np.stack([at[f"W1[{j}]"] for j in range(4)], 1) @ np.array(ROW)
    found = {"h1": h}
    for layer in range(2, net.depth + 2):
        x = np.tanh(normalised(h) if net.norm == "layer" else h)
        block = width**-0.5 * sqrt(net.weight_variance) * at[f"W{layer}"] @ x
        if net.bias_variance:
            block = block + sqrt(net.bias_variance) * at[f"b{layer}[0]"]
        alpha = Fraction(1, 2) if net.alpha is None else net.alpha
        h = h + net.depth ** -float(alpha) * block
        found |= {f"x{layer - 1}": x, f"h{layer}": h}
    found["f"] = width**-0.5 * (at[f"W{net.depth + 2}[0]"] @ h)
    return found


def rnn(net: tp.RNN, at: Inputs, width: int) -> dict[str, np.ndarray]:
    """A recurrent network of the NTK parameterization, written out."""
    tokens = np.array(ROW).reshape(net.length, -1)
    columns = np.stack([at[f"U[{j}]"] for j in range(tokens.shape[1])], 1)
    x, found, f = np.zeros(width), {}, []
    for place, token in enumerate(tokens, 1):
        h = sqrt(net.input_variance) * columns @ token
        if net.bias_variance:
            h = h + sqrt(net.bias_variance) * at["b1[0]"]
        if place > 1:
            h = h + sqrt(net.weight_variance) * width**-0.5 * at["W2"] @ x
        x = np.tanh(h)
        found |= {f"h{place}": h, f"x{place}": x}
        f.append(width**-0.5 * (at["W3[0]"] @ x))
    found["f"] = np.array(f if net.outputs == "all" else f[-1:])
    return found


CASES: list[tuple[Architecture, Callable[[Any, Inputs, int], dict[str, np.ndarray]]]] = [
    (tp.MLP(3, "tanh", "all"), mlp),
    (tp.MLP(2, "tanh", "first", weight_variance=2, bias_variance=Fraction(9, 4)), mlp),
    (tp.MLP(2, "tanh", "all", bias_variance=Fraction(9, 4)), mlp),
    (tp.MLP(3, "tanh", weight_variance=0.3, bias_variance=0.7, norm="layer"), mlp),
    (tp.MLP(1, "tanh", norm="layer"), mlp),
    (tp.ResNet(3, "tanh"), resnet),
    (tp.ResNet(4, "tanh", alpha="1/3", weight_variance=2, bias_variance=3), resnet),
    (tp.ResNet(2, "tanh", alpha=1, bias_variance=1, norm="layer"), resnet),
    (tp.RNN(2, "tanh", weight_variance=2, input_variance=3, bias_variance=5), rnn),
    (tp.RNN(4, "tanh", outputs="all"), rnn),
    (tp.RNN(1, "tanh", input_variance=0.5), rnn),
]
IDS = [net.words for net, _ in CASES]


def drawn(model: Template, width: int, rng: np.random.Generator) -> Inputs:
    """Values for the start vectors, matrices and data of a template."""
    found: Inputs = dict(zip(model.slots, ROW, strict=True))
    for node in model.program.nodes:
        if isinstance(node, Input):
            found.setdefault(key(node), rng.standard_normal((width,) * len(node.family.width)))
    return found


def template(net: Architecture, outputs: int = 1) -> Template:
    return template_of(net, parameterization("ntk"), len(ROW), outputs)


def outputs_of(model: Template) -> list[str]:
    """The names of the outputs of the network, in order."""
    return [name for name, _ in model.program.outputs if name.partition("[")[0] == "f"]


@pytest.mark.parametrize(("net", "forward"), CASES, ids=IDS)
def test_a_template_is_the_network_written_out(net: Architecture, forward: Any) -> None:
    model = template(net)
    at = drawn(model, WIDTH, np.random.default_rng(5))
    wanted = forward(net, at, WIDTH)
    found = run(model.program, WIDTH, at)
    values = [found[name] for name in outputs_of(model)]
    np.testing.assert_allclose(values, np.atleast_1d(wanted["f"]), rtol=1e-12)
    data = tp.Samples((ROW,), ((1.0,) * net.positions,))
    program = tp.train(net, "ntk", data, steps=0, watch=("h", "x"))
    own = {name: value for name, value in at.items() if name not in model.slots}
    found = run(program, WIDTH, own)
    for name, value in found.items():
        if name[0] in "hx":
            layer = name[2 : name.index(",")]
            key = f"{name[0]}{layer}"
            if key not in wanted:  # x of the last layer of a stream is the stream
                assert isinstance(net, tp.ResNet) and int(layer) == net.hidden
                key = f"h{layer}"
            np.testing.assert_allclose(value, wanted[key], rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("net", "forward"), CASES, ids=IDS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_data_are_coefficients_of_centred_start_vectors(
    net: Architecture, forward: Any, outputs: int
) -> None:
    model = template(net, outputs)
    whole = model.program
    names = outputs_of(model)
    assert len(model.outputs) == len(names) == outputs * net.positions
    assert [whole.ref(name) for name in names] == list(model.outputs)
    assert model.slots == slots(net, len(ROW)) and list(model.inputs) == list(range(len(ROW)))
    program = prune(Program(whole.dims, whole.nodes, tuple((n, whole.ref(n)) for n in names)))
    for datum in (program.inputs[name] for name in model.slots):
        users = [node for node in program.nodes if datum in references(node)]
        assert len(users) == 1
        (user,) = users
        assert isinstance(user, LinComb)
        (place,) = [i for i, scalar in enumerate(user.scalars) if scalar == datum]
        vector = program.nodes[user.vectors[place]]
        assert isinstance(vector, Input) and is_input(vector, Kind.VECTOR)
        group = vector.family
        assert group.cov is None and set(group.means) == {0}


@pytest.mark.parametrize(("net", "forward"), CASES, ids=IDS)
def test_layers_of_parameters_are_those_of_the_parameterization(
    net: Architecture, forward: Any
) -> None:
    layers = {mark.layer for mark in template(net).parameters.values()}
    recurrent = isinstance(net, tp.RNN) and net.length == 1
    assert layers == ({1, 3} if recurrent else set(range(1, net.hidden + 2)))


@given(st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=60))
def test_roots_of_squares_are_exact(number: Fraction) -> None:
    assert root(number**2) == number and isinstance(root(number**2), Fraction)
    assert root(number**3, Fraction(-2, 3)) == 1 / number**2
    assert float(root(number)) ** 2 == pytest.approx(float(number), rel=1e-14)


def test_exact_numbers_stay_exact() -> None:
    model = template(tp.ResNet(4, "relu", alpha=Fraction(3, 2), weight_variance="9/4"))
    numbers = [n for node in model.program.nodes if isinstance(node, LinComb) for n in node.numbers]
    assert all(isinstance(number, Fraction) for number in numbers)
    assert Fraction(3, 16) in numbers
    joint = template(tp.ResNet(2, "relu", weight_variance=2))  # sqrt(2) / sqrt(2)
    numbers = [n for node in joint.program.nodes if isinstance(node, LinComb) for n in node.numbers]
    assert set(numbers) == {1} and all(isinstance(number, Fraction) for number in numbers)
    assert tp.MLP(2, weight_variance=2.25).weight_variance == Fraction(9, 4)


def test_default_variances_change_no_program() -> None:
    data = tp.Samples((ROW,), ((1.0,),))
    for bias in ("none", "first", "all"):
        plain = tp.train(tp.MLP(2, "relu", bias), "mup", data, steps=1)
        told = tp.MLP(
            2, "relu", bias, weight_variance=1, bias_variance=None if bias == "none" else 1
        )
        assert tp.train(told, "mup", data, steps=1) == plain
    none = tp.MLP(2, "relu", bias_variance=0)
    assert none.bias == "none" and not none.biased
    assert tp.MLP(2, "relu", bias_variance=2).bias == "hidden"


BAD = [
    (lambda: tp.MLP(2, weight_variance=-1), "weight_variance is -1"),
    (lambda: tp.MLP(2, weight_variance=0), "A factor 0 cuts the layer off"),
    (lambda: tp.MLP(2, weight_rate=(1, 2)), "weight_rate has 2 numbers; there are 3 layers"),
    (lambda: tp.MLP(2, bias_rate=-1), "bias_rate is -1"),
    (lambda: tp.MLP(2, weight_variance="much"), "weight_variance must be a number, not 'much'"),
    (lambda: tp.MLP(2, weight_variance=float("nan")), "weight_variance must be a number"),
    (lambda: tp.MLP(2, bias_variance=-0.1), "bias_variance is -0.1"),
    (lambda: tp.MLP(2, bias="all", bias_variance=0), "bias_variance is 0, and bias is 'all'"),
    (lambda: tp.MLP(2, bias="some"), "bias is 'some'"),
    (lambda: tp.MLP(2, norm="batch"), "norm is 'batch'"),
    (lambda: tp.MLP(2, norm=["layer"]), r"norm is \['layer'\]"),  # type: ignore[arg-type]
    (lambda: tp.ResNet(0), "depth is 0"),
    (lambda: tp.ResNet(2, alpha="a half"), "alpha must be a number, not 'a half'"),
    (lambda: tp.ResNet(2, alpha=1e6), "outside the range of a float"),
    (lambda: tp.ResNet(2, alpha=-1e6), "outside the range of a float"),
    (lambda: tp.ResNet(2, weight_variance=-2), "weight_variance is -2"),
    (lambda: tp.ResNet(2, norm="LN"), "norm is 'LN'"),
    (lambda: tp.RNN(0), "length is 0; it must be at least 1"),
    (lambda: tp.RNN(2.5), "length is 2.5; it must be a whole number"),  # type: ignore[arg-type]
    (lambda: tp.RNN(2, input_variance=0), "input_variance is 0"),
    (lambda: tp.RNN(2, outputs="first"), "outputs is 'first'"),
    (lambda: template(tp.RNN(3)), "4 numbers, which 3 tokens cannot share"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(make: Callable[[], object], message: str) -> None:
    with pytest.raises((StudyError, UsageError), match=message):
        make()


def test_an_unknown_activation_or_architecture_is_named() -> None:
    with pytest.raises(UnknownName, match="rleu"):
        tp.ResNet(2, "rleu")
    with pytest.raises(UnknownName, match="there is no architecture called 'cnn'"):
        lookup("cnn")
    assert list(REGISTRY) == ["mlp", "resnet", "rnn"]
    assert lookup("ResNet").make is tp.ResNet
    assert "alpha" in lookup("resnet").parameters


@pytest.mark.parametrize("given", [tp.MLP, 3, "mlp", None, lambda t: t])
def test_what_is_no_network(given: Any) -> None:
    with pytest.raises(UsageError, match="the architecture is"):
        as_network(given)
    with pytest.raises(UsageError, match="Give a network"):
        tp.train(given, "mup", tp.Samples((ROW,), ((1.0,),)))


def with_means(name: str, mean: Sequence[Fraction | int]) -> Parameterization:
    """A parameterization whose weights have these means at the start."""
    found = parameterization(name)
    means = tuple(map(Fraction, mean))
    return replace(found, rule=lambda depth, step: replace(found.rule(depth, step), mean=means))


@pytest.mark.parametrize("net", [tp.ResNet(2), tp.RNN(2)], ids=["resnet", "rnn"])
def test_means_that_do_not_fit(net: Architecture) -> None:
    with pytest.raises(StudyError, match="the first one centred"):
        template_of(net, with_means("ntk", (1,) * (net.hidden + 1)), 4, 1)


def test_means_of_the_weights_of_a_residual_network() -> None:
    """One block with a shifted matrix and readout against explicit weights."""
    net, mean = tp.ResNet(1, "tanh", weight_variance=4), (0, Fraction(1, 2), 2)
    model = template_of(net, with_means("naive-ip", mean), 4, 1)
    at = drawn(model, WIDTH, np.random.default_rng(2))
    h = np.stack([at[f"W1[{j}]"] for j in range(4)], 1) @ np.array(ROW)
    h = h + 2 / WIDTH * (at["W2"] + 0.5) @ np.tanh(h)
    at["W3[0]"] += 2
    assert run(model.program, WIDTH, at)["f"] == pytest.approx(at["W3[0]"] @ h / WIDTH)
