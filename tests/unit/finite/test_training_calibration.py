"""Calibrated rates of the first step: what they make of it, and how they grow with the width."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trials import initial_rates, train_setting
from unit.finite.training_images import begin, biases, mixture, weights

from tpcalc.errors import UsageError
from tpcalc.finite.networks.gradients import Forward
from tpcalc.finite.training.calibrate import calibrated_rates, rate_slopes
from tpcalc.finite.training.loop import cross_entropy
from tpcalc.results import Setting

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("bias", ["none", "all"])
@pytest.mark.parametrize(
    ("word", "optimizer"),
    [
        *((word, "sgd") for word in ("ip-llr", "hp", "mup")),
        ("ip-llr", "momentum"),
        ("hpz", "nesterov(decay=0.1)"),
        ("mup", "adam"),
        ("mup", "adamw(eps=1e-3, decay=0.5)"),
        ("standard", "adamw(decay=0.5)"),
        ("ntk", "lion"),
    ],
)
def test_S0_38_each_update_contributes_1_to_the_second_batch(
    word: str, optimizer: str, bias: str
) -> None:
    """Take the calibrated step, then look at Delta W^l x + Delta B^l in the trained network."""
    import torch

    data = mixture(64)
    setting = Setting("relu", word, 3, 24, bias, steps=2, optimizer=optimizer)
    steps, before = begin(setting, data), begin(setting, data).network
    inputs, labels = torch.tensor(data.train).double(), torch.tensor(data.train_labels)
    network = steps.network
    forward = Forward(network, inputs[:32])
    gradients = forward.gradients(cross_entropy(forward.outputs, labels[:32])[2])
    rates = calibrated_rates(gradients, inputs[32:], steps, 1e9)
    for matrix, old in zip(weights(network), weights(before), strict=True):
        assert bool((matrix == old).all())
    kept = steps.scales.kept(0)
    steps.take(gradients, 0, rates)
    x = inputs[32:]
    for layer, (now, then) in enumerate(zip(weights(network), weights(before), strict=True)):
        left, z = x @ (kept[layer] * then).T, x @ now.T
        if biases(before)[layer] is not None:
            left, z = left + biases(before)[layer], z + biases(network)[layer]
        assert float((z - left).abs().mean()) == pytest.approx(1, rel=1e-9)
        x = torch.relu(z)


def test_the_cap() -> None:
    data = mixture(64)
    setting = Setting("tanh", "ip-llr", 3, 32, calibrated=True, steps=2, batch=32, cap=1e9)
    free = initial_rates(setting, data, trials=2)
    cap = sorted(free[0])[1]
    capped = initial_rates(replace(setting, cap=cap), data, trials=2)
    assert max(capped[0]) == cap
    assert capped[0][0] == min(free[0][0], cap)
    run = train_setting(replace(setting, cap=cap), data, trials=2)
    assert run.rates == capped


@pytest.mark.parametrize(
    ("act", "std", "expected"), [("relu", 2**0.5, (0, 0, 0)), ("tanh", 1.0, (0, 0, 0.5))]
)
def test_S0_38_case45_trained_networks(act: str, std: float, expected: tuple[float, ...]) -> None:
    """Rates of the layers 1..3: for tanh the third must grow like n^(1/2)."""
    data = mixture(64, features=20, classes=2, distance=0.0)
    setting = Setting(act, "ip-llr", 3, 0, std=std, calibrated=True, batch=32, cap=1e9)
    rates = {
        width: initial_rates(replace(setting, width=width), data, trials=16)
        for width in (32, 128, 512)
    }
    found = rate_slopes(rates, cap=setting.cap)[:3]
    for fit, power in zip(found, expected, strict=True):
        assert fit.value is not None and fit.low is not None and fit.high is not None
        assert fit.high - fit.low < 0.6
        assert fit.low - 0.05 < power < fit.high + 0.05, (act, found)


def test_slopes_of_powers() -> None:
    rng = np.random.default_rng(3)
    rates = {
        n: [(2.0 * noise, 3 * n**0.5 * noise) for noise in 1 + 0.01 * rng.standard_normal(8)]
        for n in (16, 64, 256)
    }
    flat, root = rate_slopes(rates)
    assert flat.value == pytest.approx(0, abs=0.02) and root.value == pytest.approx(0.5, abs=0.02)
    capped = rate_slopes(rates, cap=40.0)
    assert capped[0] == flat
    assert capped[1].value is None and "width 256" in capped[1].reason


@pytest.mark.parametrize("widths", [(64, 256), (8, 64, 256), ()])
def test_too_few_widths_have_no_slope(widths: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="too small for a slope fit"):
        rate_slopes({n: [(1.0,), (1.1,)] for n in widths})


def test_depths_are_not_mixed() -> None:
    with pytest.raises(UsageError, match="2, 3 layers"):
        rate_slopes({64: [(1.0, 1.0)] * 2, 256: [(1.0, 1.0, 1.0)] * 2, 512: [(1.0, 1.0)] * 2})
