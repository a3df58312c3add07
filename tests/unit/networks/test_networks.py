"""Networks as forward passes: names and layers of parameters, their programs, and refusals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import run

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError, TraceError, UsageError
from tpcalc.networks.network import Architecture, slots, written
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.family import Mark
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of

Forward = Callable[[NetworkTracer, Any], Any]
X = np.array([[0.6, -1.1], [0.9, 0.4], [-0.2, 0.7]])


class Net(Architecture):
    """A network of a function."""

    words = "a network of a test"

    def __init__(self, forward: Forward, **axes: int) -> None:
        self._forward, self._axes = forward, axes

    @property
    def axes(self) -> dict[str, int]:
        return self._axes

    def forward(self, t: NetworkTracer, x: Any) -> Any:
        return self._forward(t, x)


def marks(forward: Forward) -> dict[str, Mark]:
    families = written(Net(forward), 2, 2).families.values()
    return {family.name: family.mark for family in families if family.mark is not None}


# -- names and layers ------------------------------------------------------------------------


def test_layers_and_names_are_those_of_the_order() -> None:
    def forward(t: NetworkTracer, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", True)(x))
        h = t.gain("g") * t.linear(t.n, t.n, bias="zero")(h)
        h = t.linear(t.n, t.n, True, name="key", rates=(2, 3), starts=(4, 5))(h) + t.vector()
        return t.linear(t.outputs, t.n, True)(h)

    assert marks(forward) == {
        "W1": Mark("W1", "input", 1),
        "W1.bias": Mark("W1", "bias", 1),
        "g": Mark("g", "bias", 1, start=Fraction(0)),
        "W2": Mark("W2", "hidden", 2),
        "W2.bias": Mark("W2", "bias", 2, start=Fraction(0)),
        "key": Mark("key", "hidden", 3, 2, 4),
        "key.bias": Mark("key", "bias", 3, 3, 5),
        "b8": Mark("b8", "bias", 3),
        "W4": Mark("W4", "readout", 4),
        "W4.bias": Mark("W4", "bias", 4),
    }
    net = Net(forward)
    assert (net.hidden, net.tokens, net.positions, net.biased) == (3, 1, 1, True)
    program = written(net, 2, 2)
    assert str(program.families["W4"].type) == "n[out:2]"
    assert str(program.families["W4.bias"].type) == "[out:2]"
    names = [name for name, _ in program.outputs]
    assert (
        names[:4] == ["f", "h[W1]", "h[product]", "h[W2]"]
        and "x[W4]" in names
        and "h[W4]" not in names
    )


def test_a_map_between_finite_sides() -> None:
    def forward(t: NetworkTracer, x: Any) -> Any:
        first = tp.tanh(t.linear(3, "in", True, name="A")(x))
        h = t.linear(t.n, "out", name="B")(first)
        return t.linear(t.outputs, t.n, name="C")(tp.tanh(h))

    assert {name: mark.role for name, mark in marks(forward).items()} == {
        "A": "finite",
        "A.bias": "bias",
        "B": "input",
        "C": "readout",
    }
    program = written(Net(forward), 2, 1)
    assert str(program.families["A"].type) == "[out:3,in:2]"
    template = template_of(Net(forward), lookup("naive-ip"), 2, 1)
    rng = np.random.default_rng(1)
    own = {f"A[{i}]": rng.standard_normal() for i in range(6)}
    own |= {f"A.bias[{i}]": rng.standard_normal() for i in range(3)}
    own |= {f"B[{i}]": rng.standard_normal(7) for i in range(3)} | {"C[0]": rng.standard_normal(7)}
    found = run(template.program, 7, own | {"x[0]": 0.6, "x[1]": -1.1})
    matrix = np.array([own[f"A[{i}]"] for i in range(6)]).reshape(3, 2)
    first = np.tanh(matrix @ X[0] + [own[f"A.bias[{i}]"] for i in range(3)])
    wanted = own["C[0]"] @ np.tanh(sum(own[f"B[{i}]"] * first[i] for i in range(3))) / 7
    assert found["f"] == pytest.approx(wanted, rel=1e-12)


def test_readouts_come_after_all_layers() -> None:
    def forward(t: NetworkTracer, x: Any) -> Any:
        read = t.linear(t.outputs, t.n, name="early")
        h = t.linear(t.n, "in")(x)
        return read(t.linear(t.n, t.n)(t.linear(t.n, t.n)(h)))

    assert marks(forward)["early"].layer == 4
    assert Net(forward).hidden == 3


def test_slots_are_token_by_token() -> None:
    net = tp.RNN(2)
    assert slots(net, 4) == ("x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]")
    assert slots(tp.MLP(1), 2) == ("x[0]", "x[1]")
    with pytest.raises(StudyError, match="5 numbers, which 2 tokens cannot share"):
        slots(net, 5)


# -- several maps of the input ---------------------------------------------------------------


def gated(t: NetworkTracer, x: Any) -> Any:
    """tanh(U x) * sigmoid(V x)."""
    value, gate = t.linear(t.n, "in", name="U"), t.linear(t.n, "in", True, name="V")
    return t.linear(t.outputs, t.n, name="v")(tp.tanh(value(x)) * tp.sigmoid(gate(x)))


@tp.program
def gated_by_hand(t: tp.Tracer) -> None:
    """The same in NTK parameterization, the inputs written in it."""
    U, V = ([t.gaussian(f"{name}{j}") for j in (0, 1)] for name in "UV")
    b, v = t.gaussian("b"), t.gaussian("v")
    for i, row in enumerate(X.tolist()):
        value = row[0] * U[0] + row[1] * U[1]
        gate = row[0] * V[0] + row[1] * V[1] + b
        x = tp.tanh(value) * tp.sigmoid(gate)
        t.output(f"f{i}", tp.n ** Fraction(1, 2) * t.inner(v, x))


@pytest.mark.slow
def test_kernels_of_a_network_with_two_maps_of_the_input() -> None:
    net = Net(gated)
    found, wanted = tp.kernel(net, X, scale=1), tp.kernel(gated_by_hand)
    np.testing.assert_allclose(found.nngp, wanted.nngp, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.ntk, wanted.ntk, rtol=1e-6, atol=1e-9)
    across = tp.kernel(net, X[:2], X[1:], scale=1)
    np.testing.assert_allclose(across.ntk, found.ntk[:2, 1:], rtol=1e-6, atol=1e-9)
    first = tp.kernel(net, X, scale=1, layers=[1])
    np.testing.assert_allclose(first.ntk + found.nngp, found.ntk, rtol=1e-6)


# -- refusals --------------------------------------------------------------------------------


def unused(t: NetworkTracer, x: Any) -> Any:
    t.linear(t.n, t.n, name="spare")
    return t.linear(t.outputs, t.n)(t.linear(t.n, "in")(x))


def unused_without_a_name(t: NetworkTracer, x: Any) -> Any:
    t.linear(t.n, t.n)
    return t.linear(t.outputs, t.n)(t.linear(t.n, "in")(x))


def unused_vector(t: NetworkTracer, x: Any) -> Any:
    t.vector("offset")
    return t.linear(t.outputs, t.n)(t.linear(t.n, "in")(x))


def read_off(what: Callable[[NetworkTracer, Any, Any], Any]) -> Forward:
    """What is made of the tracer, the input and a vector is read off."""

    def forward(t: NetworkTracer, x: Any) -> Any:
        return t.linear(t.outputs, t.n)(what(t, x, t.linear(t.n, "in")(x)))

    return forward


def other_width(t: NetworkTracer, x: Any) -> Any:
    m = t.dim("m", 2)
    return t.linear(t.outputs, t.n)(t.linear(m, "in")(x))


BAD: list[tuple[Forward, str]] = [
    (unused, "test_networks.py:[0-9]+: the parameter 'spare' is never used"),
    (
        unused_without_a_name,
        "[0-9]+: a parameter that is declared here is never used",
    ),
    (unused_vector, "test_networks.py:[0-9]+: the parameter 'offset' is never used"),
    (read_off(lambda t, x, h: t.linear("m", t.n)(h)), "the side out of a map is 'm'"),
    (read_off(lambda t, x, h: t.linear(t.n, 3)(h)), "the side into of a map is 3"),
    (read_off(lambda t, x, h: t.linear(0, t.n)(h)), "the side out of a map is 0"),
    (read_off(lambda t, x, h: t.linear(True, t.n)(h)), "the side out of a map is True"),
    (read_off(lambda t, x, h: t.linear(t.n, t.n, bias="no")(h)), "bias is 'no'"),
    (read_off(lambda t, x, h: t.linear(t.n, t.n)(x)), "a map from 'n' is applied to a scalar"),
    (read_off(lambda t, x, h: t.linear(t.n, "in")(h)), "from the axis 'in' is applied to a vector"),
    (read_off(lambda t, x, h: t.linear(t.n, "p")(x)), "from the axis 'p' is applied to a scalar"),
    (read_off(lambda t, x, h: t.linear(t.n, "in")(3)), "applied to .*3.* without this axis"),
    (other_width, "a map from 'n' is applied to a vector on 'm'"),
    (read_off(lambda t, x, h: t.linear(t.n, "in").T(h)), "a finite side has no transpose"),
    (
        read_off(lambda t, x, h: t.linear(t.n, t.dim("m", 2)).T(t.linear("m", t.n)(h))),
        "a transposed map from 'n' is applied to a vector on 'm'",
    ),
    (
        read_off(lambda t, x, h: t.linear(t.n, t.n, name="W")(t.linear(t.n, t.n, name="W")(h))),
        "already an input called 'W'",
    ),
    (
        read_off(lambda t, x, h: t.linear(t.n, t.n, label="W1")(h)),
        "two maps are called 'W1'",
    ),
    (lambda t, x: None, "the forward pass of Net returns None"),
    (lambda t, x: [], "the forward pass of Net returns a list"),
    (lambda t, x: t.linear(t.n, "in")(x), "the forward pass of Net returns a vector"),
    (lambda t, x: [t.linear(t.n, "in")(x)], "an output of Net is a vector"),
    (read_off(lambda t, x, h: t.watch("f", 1, h) or h), "cannot be reported as 'f'"),
    (read_off(lambda t, x, h: t.watch("W_x", 1, h) or h), "cannot be reported as 'W_x'"),
    (read_off(lambda t, x, h: t.watch("h[1]", 1, h) or h), "cannot be reported as 'h"),
    (
        read_off(lambda t, x, h: t.watch("h", 1, h) or t.watch("h", 1, h) or h),
        r"already an output called 'h\[1\]'",
    ),
]


@pytest.mark.parametrize(("forward", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_network(forward: Forward, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        written(Net(forward), 2, 1)
    assert caught.value.where is not None and "test_networks.py" in caught.value.where


@tp.network
def named(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="e")(x)
    t.watch("h", 1, h)
    return t.linear(t.outputs, t.n, name="r")(tp.tanh(h))


@tp.network
def linear(t: Any, x: Any) -> Any:
    h = t.linear(t.n, t.n, name="w")(t.linear(t.n, "in", name="e")(x))
    return t.linear(t.outputs, t.n, name="r")(h)


@tp.network
def gained(t: Any, x: Any) -> Any:
    h = t.gain("g") * tp.tanh(t.linear(t.n, "in", name="e")(x))
    return t.linear(t.outputs, t.n, name="r")(h)


@tp.network
def without_readout(t: Any, x: Any) -> Any:
    h = tp.tanh(t.linear(t.n, "in", name="e")(x))
    return tp.n * t.inner(t.vector("v"), h)


def test_what_is_reported_by_default_beside_what_a_network_names() -> None:
    names = [name for name, _ in named.smallest.outputs]
    assert names == ["f", "h[1]", "x[r]", "W_x[e]", "W_x[r]"]
    assert tp.check(named, "mup", steps=1).verdict == "feature-learning"


def test_what_one_map_writes_and_another_reads_must_not_grow() -> None:
    found = tp.check(linear, "ac:-1/2,1/2,1;0,0,0", steps=1)
    assert (found.verdict, found.facts[0]) == (
        "unstable",
        "e: its preactivations grow like n^(1/2) at the start",
    )


def test_parameters_that_belong_to_no_map_have_a_word_of_their_own() -> None:
    first = tp.check(gained, "mup", steps=1).first_order
    assert first is not None
    assert (first["g"].word, first["g"].role, first["g"].status) == ("learns", "bias", "exact")


def test_features_without_a_readout_are_refused() -> None:
    with pytest.raises(UsageError, match="no readout that a map writes"):
        tp.check(without_readout, "mup", steps=1)


@tp.network
def of_one_map(t: NetworkTracer, x: Any) -> Any:
    return tp.tanh(t.linear(t.n, "in", name="u")(x))  # no readout


class OfTwo(tp.Network):
    def forward(self, x: Any, y: Any) -> Any:  # type: ignore[override]
        return x


def test_what_no_line_of_the_user_raises_names_the_forward_pass() -> None:
    begins = inspect.getsourcelines(of_one_map._source)[1]
    with pytest.raises(TraceError, match=f"test_networks.py:{begins}: the forward pass of of_one"):
        tp.check(of_one_map, "mup")
    begins = inspect.getsourcelines(OfTwo.forward)[1]
    with pytest.raises(TraceError, match=f":{begins}: the forward pass of OfTwo .*argument: 'y'"):
        tp.check(OfTwo, "mup")


@pytest.mark.parametrize("ask", [tp.limit, tp.orders, lambda net: tp.simulate(net, widths=[8])])
@pytest.mark.parametrize("net", [of_one_map, OfTwo, tp.MLP(2), lambda t, x: x])
def test_a_program_is_asked_for_and_a_network_is_given(ask: Any, net: Any) -> None:
    with pytest.raises(TraceError, match="is a network"):
        ask(net)


def test_what_training_cannot_do_names_the_line_of_the_forward_pass() -> None:
    @tp.network
    def growing(t: NetworkTracer, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        h = tp.n * t.linear(t.n, t.n, name="w")(tp.tanh(h))
        return t.linear(t.outputs, t.n, name="v")(tp.exp(h))

    line = inspect.getsourcelines(growing._source)[1] + 4
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    found = tp.orders(tp.train(growing, "mup", data))
    assert f"test_networks.py:{line}" in found["f[0,0]"].reason
    with pytest.raises(ScaleError, match=f"test_networks.py:{line}"):
        tp.kernel(growing, [[1.0, 0.5]])


@pytest.mark.parametrize("change", [1, 2])
def test_a_network_is_the_same_at_every_call(change: int) -> None:
    calls = 0

    def net(t: NetworkTracer, x: Any) -> Any:
        nonlocal calls
        calls += 1
        h = t.linear(t.n, "in")(x)
        for _ in range(1 if calls <= change else 2):
            h = t.linear(t.n, t.n)(tp.relu(h))
        return t.linear(t.outputs, t.n)(h)

    with pytest.raises(StudyError, match="net writes another network when it is called again"):
        tp.train(net, "mup", tp.Samples([[1.0]], [1.0]), steps=1)  # type: ignore[arg-type]
