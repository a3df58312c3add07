"""NNGP and NTK of convolutions beside the same recursion on whole arrays.

    python -m pytest tests/benchmarks/test_planes_speed.py -s

Differences are asserted, times and their ratio are printed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tpcalc as tp
from tests.benchmarks.figures import fastest

AXES = ("y", "x")
CASES = {  # layers, a convolution or a pool; the end; inputs; side of an image
    "5 layers, mean": ("ccccc", "mean", 32, 8),
    "3 layers, mean": ("ccc", "mean", 8, 16),
    "large, mean": ("ccc", "mean", 4, 32),
    "pools": ("ccpccpcc", "mean", 8, 16),
    "5 layers, flat": ("ccccc", "flat", 64, 8),
    "large, flat": ("ccccc", "flat", 32, 16),
}


def network(layers, end, side):
    def forward(t, x):
        for number, layer in enumerate(layers):
            if layer == "p":
                x = tp.layers.average_pool(x, AXES, 2)
            else:
                into = t.n if number else "in"
                conv = tp.layers.Conv(t, t.n, into, AXES, variance="2/9", name=f"w{number}")
                x = tp.relu(conv(x))
        if end == "mean":
            return t.linear(t.outputs, t.n, name="v")(tp.layers.average_pool(x, AXES))
        axes = {axis: x.axes[axis] for axis in AXES}
        return t.linear(t.outputs, t.n, axes=axes, over=AXES, name="v")(x)

    return tp.network(forward, axes={"y": side, "x": side})


def summed(k):
    """Sums over windows of 3 x 3 of planes (..., y, x, y', x')."""
    for first, second in ((-4, -2), (-3, -1)):
        wide = np.zeros_like(k)
        for shift in (-1, 0, 1):
            into, out = (
                slice(max(sign * shift, 0), k.shape[-1] + min(sign * shift, 0)) for sign in (1, -1)
            )
            places = [slice(None)] * k.ndim
            others = list(places)
            places[first] = places[second] = into
            others[first] = others[second] = out
            wide[tuple(places)] += k[tuple(others)]
        k = wide
    return k


def pooled(k):
    for axis in range(-4, 0):
        even = [slice(None)] * k.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        k = (k[tuple(even)] + k[tuple(odd)]) / 2
    return k


def arrays(layers, end, inputs):
    """The recursion on planes of all pairs."""
    k = np.einsum("iyxc,jvuc->ijyxvu", inputs, inputs) / inputs.shape[-1]
    t = np.zeros_like(k)
    for layer in layers:
        if layer == "p":
            k, t = pooled(k), pooled(t)
            continue
        k = summed(k) * 2 / 9
        t = summed(t) * 2 / 9 + k
        q = np.sqrt(np.einsum("iiyxyx->iyx", k))
        norm = np.einsum("iyx,jvu->ijyxvu", q, q)
        angle = np.arccos(np.clip(k / norm, -1, 1))
        k = norm * (np.sin(angle) + (math.pi - angle) * np.cos(angle)) / (2 * math.pi)
        t *= (math.pi - angle) / (2 * math.pi)
    ends = (k, k + t)
    if end == "mean":
        return tuple(one.mean(axis=(2, 3, 4, 5)) for one in ends)
    return tuple(np.einsum("ijyxyx->ij", one) for one in ends)


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_convolutions(name):
    layers, end, count, side = CASES[name]
    inputs = np.random.default_rng(0).normal(size=(count, side, side, 3))
    net, flat = network(layers, end, side), inputs.reshape(count, -1)
    found = tp.kernel(net, flat)
    few = inputs[: max(1, 2**23 // side**4 // 16)][:4]
    exact, seconds = arrays(layers, end, few), fastest(lambda: arrays(layers, end, few), 1)
    for one, other in zip((found.nngp, found.ntk), exact, strict=True):
        assert np.allclose(one[: len(few), : len(few)], other, rtol=1e-7)
    own = fastest(lambda: tp.kernel(net, flat), 5)
    pairs = count * (count + 1) / 2
    whole = seconds / len(few) ** 2 * pairs
    print(f"{name}: {1e3 * own:.1f} ms, {whole / own:.0f} times arrays; error {found.error:.0e}")
