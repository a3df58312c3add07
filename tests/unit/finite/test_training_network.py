"""Steps of SGD by hand against derivatives by torch, against numpy, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.finite.training_images import Shape, biases, mixture, start, step, weights

from tpcalc.finite.networks.gradients import times
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.loop import cross_entropy
from tpcalc.finite.training.samples import accuracy, classes
from tpcalc.training.parameterizations import lookup

pytestmark = pytest.mark.torch

WORDS = ("ntk", "mup", "naive-ip", "ip-llr", "ip-bias", "ip-non-centered:1/2", "hp", "hpz")
STEPS, RATE = 3, 0.3


def batches(shape: Shape, count: int = STEPS, size: int = 16) -> list[tuple[Any, Any]]:
    import torch

    data = mixture(count * size, shape.inputs, shape.outputs)
    inputs = torch.tensor(data.train, dtype=torch.float64)
    labels = torch.tensor(data.train_labels)
    return list(zip(inputs.split(size), labels.split(size), strict=True))


def train(
    network: DrawnNetwork, word: str, data: list[tuple[Any, Any]], rate: float = RATE
) -> None:
    for t, (inputs, labels) in enumerate(data):
        step(network, word, inputs, labels, (rate,) * len(weights(network)), t)


def by_autograd(
    network: DrawnNetwork, word: str, act: Any, data: list[tuple[Any, Any]], rate: float = RATE
) -> tuple[list[Any], list[Any]]:
    """The definition itself: w^l = (what is left of w^l(0)) + what was learned, W = n^(-a) w."""
    import torch

    depth, n = len(weights(network)) - 1, network.width
    tables = [lookup(word).exponents(depth, t) for t in range(len(data) + 1)]

    def power(value: Any) -> float:
        return float(float(n) ** float(value.constant))

    first = tables[0]
    pairs = list(zip(weights(network), biases(network), strict=True))
    initial = [w * power(a) for (w, _), a in zip(pairs, first.a, strict=True)]
    learned = [torch.zeros_like(w) for w in initial]
    bias = [
        None if b is None else b * power(a) for (_, b), a in zip(pairs, first.bias_a, strict=True)
    ]
    for t, (inputs, labels) in enumerate([*data, data[0]]):
        table = tables[t]
        kept = table.kept or (first.a[0] - first.a[0],) * (depth + 1)
        for tensor in (*learned, *(b for b in bias if b is not None)):
            tensor.requires_grad_(True)
        x = inputs
        effective = []
        for k in range(depth + 1):
            left = 0.0 if kept[k] is None else 1 / power(kept[k])
            matrix = (left * initial[k] + learned[k]) / power(table.a[k])
            shift = 0.0 if bias[k] is None else bias[k] / power(table.bias_a[k])
            effective.append((matrix.detach(), shift))
            x = x @ matrix.T + shift
            x = act(x) if k < depth else x
        if t == len(data):
            break
        torch.nn.functional.cross_entropy(x, labels).backward()
        with torch.no_grad():
            for k in range(depth + 1):
                learned[k] = learned[k] - rate / power(table.c[k]) * learned[k].grad
                if bias[k] is not None:
                    bias[k] = bias[k] - rate / power(table.bias_c[k]) * bias[k].grad
    return [matrix for matrix, _ in effective], [
        None if isinstance(shift, float) else shift.detach() for _, shift in effective
    ]


@pytest.mark.parametrize("word", WORDS)
def test_S0_1_steps_are_those_of_the_definition(word: str) -> None:
    import torch

    bias = "all" if word == "ip-bias" else lookup(word).biases
    shape = Shape(6, 9, 3, 3, bias)
    data = batches(shape)
    network = start(word, shape)
    expected, shifts = by_autograd(start(word, shape), word, torch.tanh, data)
    train(network, word, data)
    for mine, other in zip(weights(network), expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-13)
    assert [b is None for b in biases(network)] == [b is None for b in shifts]
    for mine, other in zip(biases(network), shifts, strict=True):
        if mine is not None:
            torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-13)


def test_S0_24_case22_hp_is_ip_llr_in_trained_networks() -> None:
    """With the first rate corrected by the ratio of chi; two classes and one sample: a number."""
    import torch

    shape = Shape(6, 32, 4, 2, "first")
    data = batches(shape, 3, 1)
    networks = {word: start(word, shape, "relu", std=2**0.5) for word in ("ip-llr", "hp")}
    chi = {
        word: cross_entropy(network(data[0][0]), data[0][1])[2]
        for word, network in networks.items()
    }
    ratio = float(chi["ip-llr"][0, 0] / chi["hp"][0, 0])
    assert abs(ratio - 1) > 0.01
    for word, first in (("ip-llr", 1.0), ("hp", ratio)):
        network = networks[word]
        step(network, word, *data[0], (50.0 * first,) * 5)
        for t in (1, 2):
            step(network, word, *data[t], (0.5,) * 5, t)
    pair = weights(networks["ip-llr"]), weights(networks["hp"])
    for one, other in zip(*pair, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    # The initial weights of hp itself are other ones.
    assert not torch.allclose(
        weights(start("hp", shape))[1], weights(start("ip-llr", shape))[1], rtol=0.1
    )


def test_loss_and_its_derivative() -> None:
    import torch

    outputs = torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 300.0]], dtype=torch.float64)
    labels = torch.tensor([2, 0])
    loss, size, chi = cross_entropy(outputs, labels)
    outputs.requires_grad_(True)
    expected = torch.nn.functional.cross_entropy(outputs, labels)
    expected.backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(chi, outputs.grad)
    assert float(size) == pytest.approx(303.5 / 6)


def test_initial_entries() -> None:
    shape = Shape(80, 400, 2, 3, "all")
    network = start("ip-non-centered:1/2", shape, std=2.0)
    first, between, last = (matrix.numpy() for matrix in weights(network))
    assert first.std() == pytest.approx(2 / 9, rel=0.02)
    assert network.parameters["b1"].numpy().std() == pytest.approx(2 / 9, rel=0.2)
    assert between.mean() * 400 == pytest.approx(0.5, abs=0.03)
    assert between.std() * 400 == pytest.approx(2, rel=0.02)
    assert last.mean() * 400 == pytest.approx(0.5, abs=0.15)
    assert last.std() * 400 == pytest.approx(1, rel=0.1)
    same = weights(start("ip-non-centered:1/2", shape, std=2.0))[1]
    other = weights(start("ip-non-centered:1/2", shape, std=2.0, trial=1))[1]
    assert bool((same == weights(network)[1]).all())
    assert not bool((other == weights(network)[1]).any())


def test_factors_beyond_the_range_of_float32() -> None:
    import torch

    tiny = torch.tensor([1e-30], dtype=torch.float32)
    assert float(times(tiny, -1e40)) == pytest.approx(-1e10, rel=1e-6)
    assert float(times(tiny, 1e-41)) == pytest.approx(-1e-31, rel=1e-6)


def test_the_class_of_equal_outputs_is_the_smallest() -> None:
    import torch

    outputs = torch.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [3.0, -1.0, 3.0], [0.0, 0.0, 1e-6]])
    assert classes(outputs).tolist() == [0, 1, 0, 2]
    assert accuracy(outputs, torch.tensor([0, 2, 0, 2])) == 0.75
    # What single precision cannot tell apart as probabilities is equal.
    faint = torch.tensor([[0.0, 0.0, 1e-9], [500.0, 501.0, 0.0]], dtype=torch.float64)
    assert classes(faint).tolist() == [0, 1]
    assert np.isnan(accuracy(torch.tensor([[0.0, float("nan")]]), torch.tensor([0])))
