"""Trained networks of finite width against the programs of the same networks, in law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trials import train_setting

import tpcalc as tp
from tpcalc.results import Setting
from tpcalc.results.images import Images

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH, DEPTH, STEPS, NETWORKS = 16, 2, 2, 200
INPUTS = np.array([[0.5, -0.75, 1.25], [1.0, 0.25, -0.5], [-0.25, 1.5, 0.75]], dtype=np.float32)
LABELS = np.array([0, 1, 1])


def losses(outputs: Any) -> Any:
    """Cross-entropy of outputs of shape (networks, steps, samples, classes)."""
    logs = outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))
    return -logs[:, :, np.arange(len(LABELS)), LABELS].mean(-1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "act", "lr", "std"),
    [
        ("ip-llr", "relu", 4.0, 1.25),
        ("hpz", "relu", 2.0, 1.25),
        ("ip-non-centered", "tanh", 1.0, 1.0),
    ],
)
def test_curves_are_those_of_the_program(name: str, act: str, lr: float, std: float) -> None:
    setting = Setting(act, name, DEPTH, WIDTH, std=std, lr=lr, steps=STEPS + 1, batch=len(LABELS))
    images = Images(INPUTS, LABELS, INPUTS, LABELS, 2, "by hand")
    run = train_setting(setting, images, trials=NETWORKS, seed=3, dtype="float64")
    first = std**2 / (INPUTS.shape[1] + 1)
    network = tp.MLP(
        DEPTH,
        act,
        bias="first",
        weight_variance=(first, *(std**2,) * (DEPTH - 1)),
        bias_variance=first,
        variances="initial",
    )
    data = tp.Samples(INPUTS.tolist(), np.eye(2)[LABELS].tolist())
    program = tp.train(
        network, name, data, steps=STEPS, lr=lr, loss="xent", batch=len(LABELS), watch=()
    )
    rows = {row.name: row.values for row in tp.simulate(program, [WIDTH], NETWORKS, seed=7).rows}
    outputs = np.array(
        [
            [[rows[f"f[{t},{i},{k}]"] for k in range(2)] for i in range(len(LABELS))]
            for t in range(STEPS + 1)
        ]
    ).transpose(3, 0, 1, 2)
    curves = (
        (np.array(run.losses), losses(outputs)),
        (np.array(run.outputs), np.abs(outputs).mean((2, 3))),
    )
    for own, other in curves:
        for power in (1, 2):  # the means, and the spreads
            a, b = own**power, other**power
            error = np.sqrt((a.var(0) + b.var(0)) / NETWORKS)
            gap = a.mean(0) - b.mean(0)
            assert np.all(np.abs(gap) < 4.5 * error + 1e-9), (name, power, gap / error)
