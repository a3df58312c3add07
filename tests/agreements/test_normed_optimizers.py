"""Adam and sign behind a norm of a smooth layer: limits against networks written out in torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tpcalc as tp
from tests.agree import agree
from tpcalc.results import Estimate, Method

RATE = 0.3
ONE = tp.Samples([[1.0, 0.5]], [[1.0]])
TWO = tp.Samples([[1.0, 0.5], [0.5, -1.0]], [[1.0], [-1.0]])


# ------------------------------------------------------------------------ networks in torch


def centred(h: Any) -> Any:
    return h - h.mean(1, keepdim=True)


def normed(h: Any) -> Any:
    return h / h.square().mean(1, keepdim=True).sqrt()


def layer_norm(h: Any) -> Any:
    return normed(centred(h))


def same(h: Any) -> Any:
    return h


Layer = Callable[[Any], Any]


def outputs(net: tuple[Layer, ...], weights: list[Any], x: Any) -> Any:
    """r act2(norm2(w act1(norm1(e x)))) in the units of muP, with a norm before or after an act."""
    e, w, r = weights
    first, second = net
    n = len(r)
    return second(first(x @ e.T) @ w.T / n**0.5) @ r / n


def trained(
    net: tuple[Layer, ...], data: tp.Samples, width: int, seed: int, steps: int, optimizer: str
) -> list[float]:
    """What the output at the first sample has moved by after each step."""
    draw = torch.Generator().manual_seed(seed)
    shapes = (width, 2), (width, width), (width,)
    weights = [torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes]
    scales = 1.0, width**-0.5, 1.0
    x, y = (torch.tensor(np.array(a, dtype=float)) for a in (data.inputs, data.targets))
    first = [torch.zeros_like(w) for w in weights]
    second = [torch.zeros_like(w) for w in weights]
    found = [float(outputs(net, weights, x)[0])]
    for step in range(1, steps + 1):
        for w in weights:
            w.requires_grad_()
        loss = (outputs(net, weights, x) - y[:, 0]).square().mean() / 2
        slopes = torch.autograd.grad(loss, weights)
        weights = [w.detach() for w in weights]
        for k, (slope, scale) in enumerate(zip(slopes, scales, strict=True)):
            first[k] = 0.9 * first[k] + 0.1 * slope
            second[k] = 0.999 * second[k] + 0.001 * slope**2
            mean, square = first[k] / (1 - 0.9**step), second[k] / (1 - 0.999**step)
            tiny = square == 0
            step_of = torch.where(tiny, 0.0, mean / torch.where(tiny, 1.0, square).sqrt())
            moved = slope.sign() if optimizer == "signsgd" else step_of
            weights[k] = weights[k] - RATE * scale * moved
        found.append(float(outputs(net, weights, x)[0]))
    return [one - found[0] for one in found[1:]]


# --------------------------------------------------------------------- the same as a user would


def mlp(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Any:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = first(t.linear(t.n, "in", name="e")(x))
        return t.linear(t.outputs, t.n, name="r")(second(t.linear(t.n, t.n, name="w")(h)))

    return net


def less_mean(h: Any) -> Any:
    return h - tp.mean(h)


# By name: both ways to write the layers, data, steps, optimizer.
CASES: dict[str, tuple[tuple[Layer, ...], Any, tp.Samples, int, str]] = {
    "centred softplus": (
        (lambda h: centred(functional.softplus(h)), torch.tanh),
        mlp(lambda h: less_mean(tp.softplus(h)), tp.tanh), ONE, 1, "adam",
    ),
    "gelu, layer norm": (
        (lambda h: layer_norm(functional.gelu(h)), torch.tanh),
        mlp(lambda h: tp.layers.layer_norm(tp.gelu(h)), tp.tanh), ONE, 1, "signsgd",
    ),
    "tanh of layer norm": (
        (lambda h: torch.tanh(layer_norm(h)), torch.tanh),
        mlp(lambda h: tp.tanh(tp.layers.layer_norm(h)), tp.tanh), TWO, 1, "adam",
    ),
    "swish of a norm": (
        (torch.tanh, lambda h: functional.silu(normed(h))),
        mlp(tp.tanh, lambda h: tp.swish(tp.layers.rms_norm(h))), TWO, 2, "adam",
    ),
    "centred softplus, 3 steps": (
        (lambda h: centred(functional.softplus(h)), torch.tanh),
        mlp(lambda h: less_mean(tp.softplus(h)), tp.tanh), ONE, 3, "adam",
    ),
    "centred sigmoid, 3 steps": (
        (lambda h: centred(torch.sigmoid(h)), torch.tanh),
        mlp(lambda h: less_mean(tp.sigmoid(h)), tp.tanh), ONE, 3, "signsgd",
    ),
    "centred elu, 2 steps": (
        (lambda h: centred(functional.elu(h)), torch.tanh),
        mlp(lambda h: less_mean(tp.elu(h)), tp.tanh), ONE, 2, "adam",
    ),
    "gelu, layer norm, 3 steps": (
        (lambda h: layer_norm(functional.gelu(h)), torch.tanh),
        mlp(lambda h: tp.layers.layer_norm(tp.gelu(h)), tp.tanh), ONE, 3, "adam",
    ),
    "swish, layer norm, 2 samples": (
        (lambda h: layer_norm(functional.silu(h)), torch.tanh),
        mlp(lambda h: tp.layers.layer_norm(tp.swish(h)), tp.tanh), TWO, 2, "adam",
    ),
    "tanh of layer norm, 3 steps": (
        (lambda h: torch.tanh(layer_norm(h)), torch.tanh),
        mlp(lambda h: tp.tanh(tp.layers.layer_norm(h)), tp.tanh), TWO, 3, "adam",
    ),
}  # fmt: skip
FAST = [*CASES][:4]


@cache
def limits(name: str) -> list[Estimate]:
    _, net, data, steps, optimizer = CASES[name]
    program = tp.train(
        net, "mup", data, steps=steps, optimizer=optimizer, lr=RATE, batch=len(data.inputs)
    )
    names = [f"f[{step},0]" for step in range(1, steps + 1)]
    found = tp.limit(program, samples=2**11, seed=0, outputs=names)
    return [found[one] for one in names]


def compare(name: str, width: int, seeds: int) -> None:
    layers, _, data, steps, optimizer = CASES[name]
    runs = [trained(layers, data, width, seed, steps, optimizer) for seed in range(seeds)]
    for limit, own in zip(limits(name), np.array(runs).T, strict=True):
        assert not limit.random and limit.stderr < 2e-3
        stderr = float(own.std(ddof=1)) / seeds**0.5
        finite = Estimate(float(own.mean()), stderr, Method.FINITE, replicates=seeds)
        agree(limit, finite, rounding=4 / width)  # corrections like 1/n


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_limits_agree_with_networks(name: str) -> None:
    compare(name, 256, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("width", "seeds"), [(256, 64), (1024, 24)])
def test_limits_agree_with_more_networks(name: str, width: int, seeds: int) -> None:
    compare(name, width, seeds)
