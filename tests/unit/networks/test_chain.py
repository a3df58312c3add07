"""Networks whose layers follow one another, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.networks.chain import chain_of
from tpcalc.networks.own import Own

X = np.random.default_rng(3).standard_normal((5, 4))


def plain(
    depth: int, act: Any = tp.relu, biased: int = 0, factor: float = 1.0, shift: float = 1.0
) -> Own:
    """A network as tp.MLP writes it, under other names."""

    def net(t: Any, x: Any) -> Any:
        h = x
        for layer in range(depth):
            into = t.n if layer else "in"
            h = t.linear(t.n, into, layer < biased, name=f"w{layer}", factors=(factor, shift))(h)
            h = act(h)
        return t.linear(t.outputs, t.n, name="v")(h)

    found: Own = tp.network(net)
    return found


def blocks(depth: int, factor: float) -> Own:
    """A network as tp.ResNet writes it."""

    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        for block in range(depth):
            h = h + factor * t.linear(t.n, t.n, True, name=f"w{block}")(tp.relu(h))
        return t.linear(t.outputs, t.n, name="v")(h)

    found: Own = tp.network(net)
    return found


@pytest.mark.parametrize(
    ("own", "mlp"),
    [
        (plain(3), tp.MLP(3, "relu")),
        (plain(2, tp.erf), tp.MLP(2, "erf")),
        (plain(3, biased=3), tp.MLP(3, "relu", bias="hidden")),
        (
            plain(2, biased=2, factor=2**0.5, shift=0.5),
            tp.MLP(2, "relu", weight_variance=2, bias_variance="1/4"),
        ),
        (blocks(4, 0.5), tp.ResNet(4, "relu", bias_variance=1)),
    ],
)
def test_kernels_of_an_own_network_are_those_of_the_same_one_that_came_with_the_package(
    own: Own, mlp: tp.Architecture
) -> None:
    found, expected = tp.kernel(own, X), tp.kernel(mlp, X)
    assert dict(found.provenance.settings)["route"] == "fused chain"
    if isinstance(mlp, tp.ResNet):  # there the biases stand inside the factor
        expected = tp.kernel(own, X, method="quadrature")
        np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-12)
    else:
        np.testing.assert_array_equal(found.ntk, expected.ntk)


@pytest.mark.parametrize(
    ("biased", "first"), [(1, 1.0), (0, 2.0)], ids=["first bias", "first weights"]
)
def test_a_first_layer_of_its_own_is_a_chain(biased: int, first: float) -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", biased > 0, name="u", factors=(first, 1.0))(x)
        h = t.linear(t.n, t.n, name="w")(tp.relu(h))
        return t.linear(t.outputs, t.n, name="v")(tp.relu(h))

    found = tp.kernel(net, X)
    assert dict(found.provenance.settings)["route"] == "fused chain"
    for kind in ("nngp", "ntk"):
        expected = getattr(tp.kernel(net, X, method="quadrature"), kind)
        np.testing.assert_allclose(getattr(found, kind), expected, rtol=1e-12)


def shared(t: Any, x: Any) -> Any:
    w = t.linear(t.n, t.n, name="w")
    h = w(tp.relu(w(tp.relu(t.linear(t.n, "in", name="u")(x)))))
    return t.linear(t.outputs, t.n, name="v")(tp.relu(h))


def transposed(t: Any, x: Any) -> Any:
    h = t.linear(t.n, t.n, name="w").T(tp.relu(t.linear(t.n, "in", name="u")(x)))
    return t.linear(t.outputs, t.n, name="v")(tp.relu(h))


def orthogonal(t: Any, x: Any) -> Any:
    h = tp.relu(t.linear(t.n, "in", name="u")(x))
    h = t.linear(t.n, t.n, name="w", law="orthogonal")(h)
    return t.linear(t.outputs, t.n, name="v")(tp.relu(h))


def gated(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="u")(x) * tp.relu(t.linear(t.n, "in", name="g")(x))
    return t.linear(t.outputs, t.n, name="v")(h)


def tripled(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="u")(x)
    h = 3 * h + t.linear(t.n, t.n, name="w")(tp.relu(h))
    return t.linear(t.outputs, t.n, name="v")(h)


def averaged(t: Any, x: Any) -> Any:
    h = tp.relu(t.linear(t.n, "in", name="u")(x))
    return t.inner(t.vector("v"), h)


def noisy(t: Any, x: Any) -> Any:
    h = tp.relu(t.linear(t.n, "in", name="u")(x)) * t.noise("drop")
    return t.linear(t.outputs, t.n, name="v")(h)


@pytest.mark.parametrize(
    "net", [shared, transposed, orthogonal, gated, tripled, averaged, noisy, tp.RNN(1), tp.RNN(2)]
)
def test_what_is_no_chain(net: Callable[..., Any] | tp.Architecture) -> None:
    network = net if isinstance(net, tp.RNN) else tp.network(net)
    assert chain_of(network) is None


def test_two_activations_and_norms_are_chains_without_one_activation() -> None:
    @tp.network
    def two(t: Any, x: Any) -> Any:
        h = t.linear(t.n, t.n)(tp.relu(t.linear(t.n, "in")(x)))
        return t.linear(t.outputs, t.n)(tp.tanh(h))

    for network in (two, tp.MLP(2, "relu", norm="layer"), tp.ResNet(2, "relu", norm="rms")):
        chain = chain_of(network)
        assert chain is not None
        assert chain.activation is None


def test_solve_takes_p_and_l_of_an_own_network() -> None:
    for symbolic in ("p", "L"):
        own = tp.solve(plain(3), "naive-ip", symbolic=symbolic, steps=2, verify=False)
        mlp = tp.solve(tp.MLP(3, "relu"), "naive-ip", symbolic=symbolic, steps=2, verify=False)
        assert [step.c for step in own.steps] == [step.c for step in mlp.steps]
        assert (own.region, own.closed) == (mlp.region, mlp.closed)
    assert own.notes == mlp.notes


def test_p_is_the_power_of_an_activation_wherever_it_stands() -> None:
    """In a residual network x^l is of order one with h^l, whatever the power."""
    found = tp.solve(tp.ResNet(1, "relu"), "mup", symbolic="p", steps=1, verify=False)
    fixed = tp.solve(tp.ResNet(1, "relu^2"), "mup", steps=1, verify=False)
    assert found.steps == fixed.steps


STEEP = tp.function(  # no ReLU, whatever it is called
    "relu", lambda xp, z: xp.where(z > 0, 3 * z, z), homogeneity=1, kinks=[0.0]
)


@pytest.mark.parametrize(
    ("network", "symbolic", "words"),
    [
        (tp.ResNet(2), "L", "fully connected networks with one activation"),
        (plain(2, biased=2), "L", "biases in all layers"),
        (tp.network(gated), "L", "this is the network gated of 3 parameters"),
        (tp.MLP(2, "linear"), "p", "do not share one activation"),
        (tp.MLP(2, STEEP), "p", "relu is none"),
    ],
)
def test_symbols_that_a_network_has_not(
    network: tp.Architecture, symbolic: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        tp.solve(network, "naive-ip", symbolic=symbolic)


def test_check_says_of_an_own_network_what_the_parameterization_was_meant_for() -> None:
    own = tp.check(plain(3, tp.relu_pow(2), biased=1), "ip-llr", steps=1)
    mlp = tp.check(tp.MLP(3, "relu^2", bias="first"), "ip-llr", steps=1)
    assert own.notes[0] == mlp.notes[0]
    assert "ip-llr:2" in own.notes[0]
