"""Kernels over positions beside the same kernels by way of their programs."""

import re

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.doors.budget import within
from tpcalc.doors.machine import Limits
from tpcalc.errors import OutOfMemory

CONV = tp.layers.Conv
INPUTS = np.array([[1.0, -0.5], [-1.0, 0.75], [0.25, 2.0]])
ROUTE = ("route", "planes of positions")


def convolution(t, name, into=None, size=2):
    return CONV(t, t.n, into or t.n, "p", size, bias=True, variance="1/2", name=name)


def read(t, x):
    return t.linear(t.outputs, t.n, name="read")(tp.layers.average_pool(x, "p"))


def strided(t, x):
    x = tp.abs(CONV(t, t.n, "in", "p", 2, 2, name="a")(x))
    return t.linear(t.outputs, t.n, axes={"p": 1}, over=("p",), name="read")(x)


def skipping(t, x):
    x = convolution(t, "a", "in")(x)
    return read(t, x + convolution(t, "b")(tp.relu(x)))


def skipping_after(t, x):
    x = tp.relu(convolution(t, "a", "in")(x))
    return read(t, tp.relu(convolution(t, "c")(x + convolution(t, "b")(x))))


def curved(t, x):
    x = tp.gelu(convolution(t, "a", "in")(x))
    return read(t, tp.sin(convolution(t, "b")(tp.layers.average_pool(x, "p", 1))))


def read_twice(t, x):
    x = tp.relu(convolution(t, "a", "in")(x))
    axes = {"p": x.axes["p"]}
    flat = t.linear(t.outputs, t.n, axes=axes, over=("p",), name="flat", factors=("1/2", 1))(x)
    return 2 * flat - read(t, x) / 3


def normed(t, x):
    norm = tp.layers.LayerNorm(t, gain=False, bias=False, eps=1, name="norm")
    x = tp.relu(norm(convolution(t, "a", "in")(x)))
    return read(t, tp.relu(norm(convolution(t, "b")(tp.layers.average_pool(x, "p", 2)))))


def gained(t, x):
    x = tp.layers.LayerNorm(t, name="norm")(convolution(t, "a", "in")(x))
    x = tp.layers.RMSNorm(t, name="rms")(convolution(t, "b")(tp.relu(x)))
    return read(t, tp.erf(convolution(t, "c")(x)))


def dropped(t, x):
    x = tp.layers.Dropout(t, 0.25)(tp.relu(convolution(t, "a", "in")(x)))
    return read(t, tp.layers.Dropout(t, 0.1, "gaussian")(tp.relu(convolution(t, "b")(x))))


def gated(t, x):
    x = convolution(t, "a", "in")(x)
    return read(t, x + tp.layers.SwiGLU(t, t.n, t.n, name="glu")(x) / 2)


def of_positions(t, x):
    x = tp.layers.average_pool(tp.tanh(convolution(t, "a", "in")(x)), "p", 2, 1)
    return t.linear(t.outputs, t.n, name="read")(tp.relu(convolution(t, "b")(x)))


def started_at_zero(t, x):
    x = tp.gelu(CONV(t, t.n, "in", "p", 2, bias="zero", name="a")(x))
    return t.linear(t.outputs, t.n, bias="zero", name="read")(tp.layers.average_pool(x, "p"))


def curved_gains(t, x):
    return read(t, tp.gelu(tp.layers.LayerNorm(t, name="norm")(convolution(t, "a", "in")(x))))


PROGRAMS = [strided, skipping, skipping_after, curved, read_twice, normed]
PROGRAMS += [gained, curved_gains, dropped, gated, of_positions, started_at_zero]


def twice(t, x):
    layer = convolution(t, "b")
    x = tp.relu(convolution(t, "a", "in")(x))
    return read(t, tp.relu(layer(tp.relu(layer(x)))))


def shared(t, x):
    x = tp.relu(convolution(t, "a", "in")(x))
    return read(t, x + tp.relu(convolution(t, "b")(x)))


@pytest.mark.slow
@pytest.mark.parametrize("net", PROGRAMS)
def test_planes_give_what_programs_give(net):
    net = tp.network(net, axes={"p": 2})
    found = tp.kernel(net, INPUTS)
    assert ROUTE in found.provenance.settings
    other = tp.kernel(net, INPUTS, method="quadrature")
    assert np.allclose(found.nngp, other.nngp, rtol=1e-12)
    assert np.allclose(found.ntk, other.ntk, rtol=1e-12)
    apart = tp.kernel(net, INPUTS[:1], INPUTS[1:], kinds="ntk")
    assert np.allclose(apart.ntk, found.ntk[:1, 1:], rtol=1e-14)


@pytest.mark.slow
def test_some_layers_are_trained():
    net = tp.network(skipping, axes={"p": 2})
    found, other = (
        tp.kernel(net, INPUTS[:2], layers=[2], kinds="ntk", method=method)
        for method in ("auto", "quadrature")
    )
    assert ROUTE in found.provenance.settings
    assert np.allclose(found.ntk, other.ntk, rtol=1e-12)


def pooled(t, x):
    return read(t, tp.layers.max_pool(convolution(t, "a", "in")(x), "p", 2))


def jumping(t, x):
    return read(t, tp.sign(convolution(t, "a", "in")(x)))


def of_numbers(t, x):
    return read(t, tp.relu(convolution(t, "a", "in")(x)) * t.mean(convolution(t, "b", "in")(x)))


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (twice, "the weights 'b.map"),
        (shared, "a sum or a product of what is not independent"),
        (pooled, "a sum or a product of what is not independent"),
        (jumping, "the function sign"),
        (of_numbers, "a product, "),
    ],
)
def test_what_loops_do_not_know_is_named(net, words):
    found = tp.kernel(tp.network(net, axes={"p": 2}), INPUTS[:2], kinds="nngp")
    assert ROUTE not in found.provenance.settings
    assert re.search(f"loops over layers do not know {words}", found.notes[-1])


def test_zeros_before_parameters_that_start_at_0_go_by_the_program():
    """A slope at 0 counts there."""

    def net(t, x):
        hidden = t.linear(t.n, "in", bias="zero", name="a")(x)
        return t.linear(t.outputs, t.n, name="read")(tp.tanh(hidden))

    found = tp.kernel(tp.network(net), [[1.0, 2.0], [0.0, 0.0]])
    assert found.ntk[1, 1] == pytest.approx(1.0, abs=1e-12)
    assert "in front of a function of what is 0" in found.notes[-1]


def test_chains_are_planes_of_layers():
    """Which networks of unequal layers are as well."""
    inputs = np.random.default_rng(1).normal(size=(30, 5))
    for act in ("relu", "gelu", "tanh", "elu"):
        net = tp.MLP(3, act, weight_variance=2, bias_variance="1/10")
        chain, planes = tp.kernel(net, inputs), tp.kernel(net, inputs, layers=[1, 2, 3, 4])
        assert ("route", "planes of layers") in planes.provenance.settings
        for kind in ("nngp", "ntk"):
            left, right = getattr(chain, kind), getattr(planes, kind)
            unit = np.sqrt(np.outer(left.diagonal(), left.diagonal()))
            assert (abs(left - right) / unit).max() <= chain.error + planes.error + 1e-15
        assert planes.error < 1e-12


def test_threads_change_nothing():
    net = tp.network(skipping_after, axes={"p": 6})
    inputs = np.random.default_rng(0).normal(size=(20, 12))
    one, two = (tp.kernel(net, inputs, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.ntk, two.ntk)
    assert one.error == two.error


def test_memory_is_asked_for_before_it_is_taken():
    net, inputs = tp.network(skipping_after, axes={"p": 40}), np.ones((3, 40))
    tp.kernel(net, inputs)
    asked = pytest.raises(OutOfMemory, match="over 40 positions needs about")
    with within(Limits(60.0, 2**16)), asked:
        tp.kernel(net, inputs)
