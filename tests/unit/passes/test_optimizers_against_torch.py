"""Programs of optimizers against networks of one width whose parameters torch updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.catalog.optimizers import lookup
from tpcalc.catalog.parameterizations import lookup as parameterization
from tpcalc.catalog.training import network_program
from tpcalc.finite.networks.network import DrawnNetwork

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH, STEPS, BATCH = 32, 3, 2
DATA = tp.Samples(
    [[1.0, 0.4, 0.2, -1], [-0.5, 1.1, -0.3, 0.6], [0.8, -0.9, 1, 0.1], [0.3, 1, 0.5, 0.5]],
    [1.0, -0.6, 0.5, -0.3],
)
NETWORKS = {
    "mlp": lambda: tp.MLP(2, "tanh", bias="all"),
    "relu": lambda: tp.MLP(3, "relu"),
    "resnet": lambda: tp.ResNet(2, "tanh"),
    "rnn": lambda: tp.RNN(4, "tanh"),
    "layer norm": lambda: tp.MLP(2, "tanh", norm="layer"),
}
SETTINGS: dict[str, tuple[str, dict[str, Any], Callable[..., Any], dict[str, Any]]] = {
    "momentum": (
        "momentum",
        {"decay": "0.05"},
        torch.optim.SGD,
        {"momentum": 0.9, "weight_decay": 0.05},
    ),
    "nesterov": (
        "nesterov",
        {"decay": "0.05"},
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    ),
    "adam": ("adam", {"eps": "1e-3"}, torch.optim.Adam, {"eps": 1e-3}),
    "adam without eps": ("adam", {}, torch.optim.Adam, {"eps": 1e-100}),
    "adamw": (
        "adamw",
        {"eps": "1e-8", "decay": "0.1"},
        torch.optim.AdamW,
        {"eps": 1e-8, "weight_decay": 0.1},
    ),
    "rmsprop": ("rmsprop", {"eps": "1e-4"}, torch.optim.RMSprop, {"eps": 1e-4}),
    "adagrad": ("adagrad", {"eps": "1e-4"}, torch.optim.Adagrad, {"eps": 1e-4}),
}


def _outputs(network: tp.MLP, rule: str, name: str, settings: dict[str, Any]) -> dict[str, float]:
    program = tp.train(
        network,
        rule,
        DATA,
        steps=STEPS,
        optimizer=lookup(name).with_settings(**settings),
        lr=0.125,
        batch=BATCH,
        queries=[[0.6, 0.7, -0.2, 0.3]],
        watch=("h",),
    )
    found = tp.simulate(program, widths=(WIDTH,), seeds=1, backend="dense")
    return {row.name: row.values[0] for row in found.rows if row.statistic == "value"}


def _trained(network: tp.MLP, rule: str, name: str, make: Callable[..., Any]) -> list[list[float]]:
    """The outputs of a network that torch trains, at every step."""
    found = parameterization(rule).under(lookup(name).degree)
    table = found.exponents(network.hidden, 0)
    twin = DrawnNetwork(network_program(network, found, 4, 1), WIDTH)
    groups = []
    for family in twin.program.families.values():
        assert family.mark is not None
        twin.parameters[family.name].requires_grad_(True)
        power = float(found.rate(family.mark, table).constant or 0)
        groups.append({"params": [twin.parameters[family.name]], "lr": 0.125 * WIDTH**-power})
    optimizer, outputs = make(groups), []
    query = [[0.6, 0.7, -0.2, 0.3]]
    for step in range(STEPS + 1):
        rows = [(step * BATCH + i) % len(DATA) for i in range(BATCH)]
        x = torch.tensor([*(DATA.inputs[row] for row in rows), *query], dtype=torch.float64)
        y = torch.tensor([DATA.targets[row][0] for row in rows], dtype=torch.float64)
        out = twin(x)[:, 0]
        outputs.append(out.tolist())
        optimizer.zero_grad()
        (((out[:BATCH] - y) ** 2).mean() / 2).backward()
        optimizer.step()
    return outputs


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("rule", ["mup", "standard"])
def test_three_steps_are_those_of_torch(network: str, name: str, rule: str) -> None:
    own, settings, make, given = SETTINGS[name]
    net = NETWORKS[network]()
    program = _outputs(net, rule, own, settings)
    for step, row in enumerate(_trained(net, rule, own, lambda groups: make(groups, **given))):
        for i, value in enumerate(row):
            assert abs(program[f"f[{step},{i}]"] - value) < 1e-10 * max(1, abs(value))
