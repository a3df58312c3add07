"""Kernels over positions beside the same kernels by way of their programs."""

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


def twice(t, x):
    layer = convolution(t, "b")
    x = tp.relu(convolution(t, "a", "in")(x))
    return read(t, tp.relu(layer(tp.relu(layer(x)))))


def shared(t, x):
    x = tp.relu(convolution(t, "a", "in")(x))
    return read(t, x + tp.relu(convolution(t, "b")(x)))


@pytest.mark.slow
@pytest.mark.parametrize("net", [strided, skipping, skipping_after, curved, read_twice, normed])
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


@pytest.mark.parametrize("net", [twice, shared])
def test_networks_that_are_no_sums_of_new_weights_go_by_their_programs(net):
    found = tp.kernel(tp.network(net, axes={"p": 2}), INPUTS[:2], kinds="nngp")
    assert ROUTE not in found.provenance.settings


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
