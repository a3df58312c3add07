"""Ranks of features after the first step."""

from __future__ import annotations

import numpy as np
import pytest
from trials import train_setting
from unit.finite.training_images import Shape, mixture, start, step

from tpcalc.errors import Exploded, OutOfMemory
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.loop import feature_ranks, rank
from tpcalc.results import Setting

pytestmark = pytest.mark.torch


def test_what_counts_as_zero() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    left, _ = torch.linalg.qr(torch.randn(40, 4, generator=generator, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(10, 4, generator=generator, dtype=torch.float64))
    # sigma_max n 1e-7 is 1e-6 here
    sizes = torch.tensor([1.0, 1e-3, 1.1e-6, 0.9e-6], dtype=torch.float64)
    features = left @ torch.diag(sizes) @ right.T
    assert rank(features, 10) == 3
    assert rank(features, 100) == 2
    for scale in (1e-200, 1e200, 1e-320 * 1e15, 1e308):
        assert rank(scale * features, 10) == 3
    assert rank(torch.zeros(3, 2), 2) == 0
    assert rank(features, 10) == int(torch.linalg.matrix_rank(features, rtol=1e-6))
    with pytest.raises(Exploded):
        rank(torch.tensor([[float("nan")]]), 1)


def trained_on_one(word: str, shape: Shape, rate: float) -> DrawnNetwork:
    import torch

    data = mixture(1, shape.inputs, shape.outputs)
    network = start(word, shape, "relu", std=2**0.5)
    x, labels = torch.tensor(data.train).double(), torch.tensor(data.train_labels)
    step(network, word, x, labels, (rate,) * 9)
    return network


def test_one_sample_leaves_rank_one_without_initial_weights() -> None:
    """Trap T9: the update from one sample is an outer product; relu keeps its sign."""
    import torch

    shape = Shape(12, 48, 4, 3, "first")
    inputs = torch.tensor(mixture(40, 12).train)
    of_h, of_x = feature_ranks(trained_on_one("hpz", shape, 50.0), inputs)
    assert of_h[0] == 13 and of_x[0] > 13
    assert of_h[1:] == of_x[1:] == (1, 1, 1)
    full, _ = feature_ranks(trained_on_one("mup", shape, 0.1), inputs)
    assert min(full[1:]) > 13


def test_S0_36_ranks_of_a_run() -> None:
    """A batch of 8 moves the hidden weights by matrices of rank 8 at most."""
    data = mixture(64, 12)
    setting = Setting("tanh", "hpz", 3, 32, lr=3.0, steps=2, batch=8)
    run = train_setting(setting, data, trials=2, ranks=40)
    assert len(run.ranks_h) == len(run.ranks_x) == 2
    for of_h, of_x in zip(run.ranks_h, run.ranks_x, strict=True):
        assert of_h[0] == 13 < of_x[0]
        assert max(of_h[1:]) <= 8 < of_x[1]
    assert train_setting(setting, data, trials=1, ranks=10**6).ranks_x[0][0] > 13
    few = train_setting(setting, data, trials=1, ranks=5)
    assert max(few.ranks_h[0]) == 5


def test_float32_gives_the_same_ranks() -> None:
    data = mixture(64, 12)
    setting = Setting("relu", "hpz", 3, 32, steps=1, batch=8)
    runs = [
        train_setting(setting, data, trials=3, ranks=40, first=first)
        for first in ("float64", "float32")
    ]
    assert runs[0].ranks_h == runs[1].ranks_h


def test_images_that_do_not_fit() -> None:
    import torch

    network = start("mup", Shape(12, 48, 2, 3))
    with pytest.raises(OutOfMemory, match="fewer images"):
        feature_ranks(network, torch.zeros(1000, 12), memory_limit=10**6)
    assert np.shape(feature_ranks(network, torch.ones(10, 12), memory_limit=10**6)) == (2, 2)
