"""Programs of optimizers against networks of one width whose parameters torch updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from agreements.optimizer_networks import NETWORKS as OWN
from torch_optimizers import GROUPS, LOSSES, SETTINGS

import tpcalc as tp
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.program.family import Mark
from tpcalc.training.optimizers import Optimizer, lookup
from tpcalc.training.written import network_program

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH = 32
DATA = tp.Samples(
    [[1.0, 0.4, 0.2, -1], [-0.5, 1.1, -0.3, 0.6], [0.8, -0.9, 1, 0.1], [0.3, 1, 0.5, 0.5]],
    [1.0, -0.6, 0.5, -0.3],
)
NETWORKS: dict[str, Any] = {
    "mlp": lambda: tp.MLP(2, "tanh", bias="all"),
    "relu": lambda: tp.MLP(3, "relu"),
    "resnet": lambda: tp.ResNet(2, "tanh"),
    "rnn": lambda: tp.RNN(4, "tanh"),
    "layer norm": lambda: tp.MLP(2, "tanh", norm="layer"),
}


Own = Callable[[Mark], dict[str, Any]]


@dataclass
class Weight:
    """A parameter of torch: its mark, W = s w, s, its optimizer and the factor of its rate."""

    mark: Mark
    value: Any
    start: float
    optimizer: Any
    rate: float


@dataclass
class Twin:
    """A network that torch trains as a run says, its own rules of torch for some parameters."""

    run: tp.Training
    name: str
    own: Own = lambda mark: {}

    def __post_init__(self) -> None:
        run = self.run
        rule, outputs = run.parameterization, run.data.outputs
        program = network_program(run.network, rule, run.data.dimension, outputs)
        self.network = DrawnNetwork(program, WIDTH)
        self.weights: dict[str, Weight] = {}
        for family in program.families.values():
            mark = family.mark
            own = {"name": self.name, "lr": 1, "power": 0, **self.own(mark)}
            text, make, given = SETTINGS[own.pop("name")]
            under = rule.under(lookup(text).degree)
            table = under.exponents(run.network.hidden, 0)
            stored = float(under.stored(mark, table).constant or 0)
            power = float(under.rate(mark, table).constant or 0)
            power += (1 + lookup(text).degree) * stored  # the rate of W itself
            number = float(mark.start) or 1.0
            start = number * WIDTH**-stored
            value = (start * self.network.parameters[family.name]).requires_grad_(True)
            rate = float(run.lr) * float(mark.rate) * number**2  # type: ignore[arg-type]
            rate *= own.pop("lr") * WIDTH ** float(own.pop("power") - power)
            optimizer = make([{"params": [value], "lr": rate}], **{**given, **own})
            self.weights[family.name] = Weight(mark, value, start, optimizer, rate)

    def steps(self) -> Iterator[tuple[Any, Any]]:
        """For every step the inputs and the outputs; the network holds the weights."""
        run, data = self.run, self.run.data
        for step in range(run.steps + 1):
            for name, weight in self.weights.items():
                self.network.parameters[name] = weight.value / weight.start
                weight.value.grad = torch.zeros_like(weight.value)
            rows = [(step * run.batch + i) % len(data) for i in range(run.batch)]
            inputs = [*(data.inputs[row] for row in rows), *run.queries]
            x = torch.tensor(inputs, dtype=torch.float64)
            y = torch.tensor([data.targets[row] for row in rows], dtype=torch.float64)
            out = self.network(x)
            yield x, out
            if step == run.steps:
                return
            LOSSES[run.loss.name](out[: run.batch], y).backward()
            for weight in self.weights.values():
                weight.optimizer.param_groups[0]["lr"] = weight.rate * float(run.factors[step])
                weight.optimizer.step()


def training(network: Any, rule: str, name: str, data: tp.Samples, **settings: Any) -> tp.Training:
    given = {"steps": 3, "batch": 2, "lr": 0.125, "watch": (), "queries": data.inputs[-1:]}
    optimizer = settings.pop("optimizer", SETTINGS[name][0])
    return tp.Training(network, rule, data, optimizer=optimizer, **{**given, **settings})


def finite(run: tp.Training) -> dict[tuple[str, str], float]:
    found = tp.simulate(run.program, widths=(WIDTH,), seeds=1, backend="dense")
    return {(row.name, row.statistic): row.values[0] for row in found.rows}


def equal(run: tp.Training, name: str, own: Own = lambda mark: {}) -> None:
    """The outputs of all steps, for the batch and the query."""
    program = finite(run)
    for step, (_, out) in enumerate(Twin(run, name, own).steps()):
        for i, row in enumerate(out.tolist()):
            for k, value in enumerate(row):
                which = f"f[{step},{i},{k}]" if len(row) > 1 else f"f[{step},{i}]"
                assert abs(program[which, "value"] - value) < 1e-10 * max(1, abs(value)), which


# In muP all pairs of a network and an optimizer; in standard parameterization each with several.
STEPPED = [(network, name, "mup") for network in NETWORKS for name in SETTINGS] + [
    pytest.param(network, name, "standard", marks=pytest.mark.slow)
    for i, network in enumerate(NETWORKS)
    for k, name in enumerate(SETTINGS)
    if (i + k) % 2
]


@pytest.mark.parametrize(("network", "name", "rule"), STEPPED)
def test_three_steps_are_those_of_torch(network: str, name: str, rule: str) -> None:
    query = [[0.6, 0.7, -0.2, 0.3]]
    equal(training(NETWORKS[network](), rule, name, DATA, queries=query), name)


def samples(network: str, outputs: int, loss: str) -> tp.Samples:
    rng = np.random.default_rng(3)
    features = OWN[network][1]
    inputs = rng.standard_normal((4, features)).round(2)
    if network == "embedding":
        inputs = np.eye(3)[rng.integers(3, size=(4, features // 3))].reshape(4, -1)
    targets = np.eye(outputs)[[0, 1, 1, 0]] if loss == "xent" else rng.standard_normal((4, outputs))
    return tp.Samples(inputs.tolist(), targets.tolist())


@pytest.mark.parametrize(
    ("name", "rule", "loss", "outputs", "batch"),
    [
        ("adam without eps", "standard", "mse", 1, 1),
        ("momentum", "mup", "xent", 3, 3),
        ("adamw", "standard", "linear", 1, 3),
        ("lion", "mup", "mse", 1, 1),
    ],
)
@pytest.mark.parametrize("network", OWN)
def test_networks_of_ones_own(
    network: str, name: str, rule: str, loss: str, outputs: int, batch: int
) -> None:
    """Softmax and heads, weights shared by tokens and transposed, gates, windows, a wider layer."""
    outputs = 3 if network == "embedding" else outputs
    data = samples(network, outputs, loss)
    lr = 0.125 if rule == "mup" else 0.03125
    settings = {"batch": batch, "loss": loss, "lr": lr, "steps": 2}
    run = training(OWN[network][0], rule, name, data, **settings)
    equal(run, name)


INITIAL = {"weight_variance": "9/4", "bias_variance": "1/4", "variances": "initial"}
ZERO = {"weight_variance": ("9/4", 0), "bias_variance": 0, "variances": "initial"}
RATES = {"weight_rate": (2, 0, 5), "bias_rate": "1/2"}
CLASSES = tp.Samples(DATA.inputs, ((1, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)))
NOTHING = tp.Samples([[0.0, 1.0], [0.5, 0.0], [0.0, 0.0], [0.5, 0.0]], [0.3, 0.3, -1, 0.2])
EDGES: dict[str, tuple[Any, str, tp.Samples, dict[str, Any]]] = {
    "rates of 0 before and between": (
        tp.MLP(2, "tanh", bias="all"),
        "mup",
        DATA,
        {"steps": 4, "schedule": [0, 0.5, 0, 1], "batch": 1},
    ),
    "gradients of 0": (tp.MLP(2, "relu"), "mup", NOTHING, {"steps": 5, "batch": 1}),
    "data that repeat": (tp.MLP(2, "relu"), "mup", NOTHING, {"steps": 5, "batch": 3}),
    "classes": (
        tp.MLP(2, "relu", bias="all"),
        "ntk",
        CLASSES,
        {"steps": 5, "loss": "xent", "lr": 0.0625},
    ),
    "deviations of the start": (tp.MLP(2, "tanh", bias="all", **INITIAL), "mup", DATA, {}),
    "a start at 0": (tp.MLP(2, "tanh", bias="all", **ZERO, weight_rate=(2, 3, 5)), "mup", DATA, {}),
    "rates": (tp.MLP(2, "tanh", bias="all", weight_variance="9/4", **RATES), "mup", DATA, {}),
}


# Each edge with several optimizers and each optimizer with several edges; the others are slow.
CROSSED = [
    pytest.param(case, name, marks=[pytest.mark.slow] * ((i + k) % 3 > 0))
    for i, case in enumerate(EDGES)
    for k, name in enumerate(SETTINGS)
]


@pytest.mark.parametrize(("case", "name"), CROSSED)
def test_edges(case: str, name: str) -> None:
    """torch trains W = s w where s is the deviation of the start: eps and decay are those of W."""
    network, rule, data, settings = EDGES[case]
    equal(training(network, rule, name, data, **settings), name)


def of_group(mark: Mark) -> dict[str, Any]:
    """What GROUPS say, in torch."""
    return {
        "hidden": {"name": "adamw", "lr": 0.5},
        "bias": {"name": "lion", "lr": 3, "power": 0.5},
        "readout": {"name": "momentum", "momentum": 0.5},
    }.get(mark.role, {})


@pytest.mark.parametrize("name", ["sgd", "adam without eps", "adagrad"])
def test_groups_with_optimizers_of_their_own(name: str) -> None:
    network = tp.MLP(2, "tanh", bias="all")
    run = training(network, "mup", name, DATA, groups=GROUPS, schedule=[0, 1, 0.5])
    equal(run, name, of_group)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("network", ["mlp", "deviations of the start"])
def test_contributions_are_the_changes_of_weights(network: str, name: str) -> None:
    """(W(t) - W(t-1)) x and B(t) - B(t-1), also after a step of rate 0."""
    net = NETWORKS[network]() if network in NETWORKS else EDGES[network][0]
    settings = {"steps": 4, "schedule": [1, 0, 0.5, 1], "watch": ("dW_x", "dB")}
    run = training(net, "mup", name, DATA, **settings)
    program, twin = finite(run), Twin(run, name)
    table = run.parameterization.exponents(run.network.hidden, 0)
    before: dict[str, Any] = {}
    for step, (x, _) in enumerate(twin.steps()):
        values = twin.network.values(x)
        weights = {own: w.clone().detach() for own, w in twin.network.parameters.items()}
        for own, weight in twin.weights.items() if before else ():
            mark, layer = weight.mark, weight.mark.layer
            power = float(run.parameterization.power(mark, table).constant or 0)
            change = (weights[own] - before[own]) * weight.start * WIDTH**-power
            if mark.bias:
                found = {f"dB[{mark.label},{step}]": change}
            else:
                reads = x if layer == 1 else values[f"x[{layer - 1}]"]
                change = change.reshape(-1, WIDTH) if layer > net.depth else change
                into = change if layer == 1 else change.T
                made = reads @ (into if into.shape[0] == reads.shape[1] else into.T)
                found = {f"dW_x[{mark.label},{step},{i}]": row for i, row in enumerate(made)}
            for output, value in found.items():
                if value.numel() == 1:
                    assert abs(program[output, "value"] - value.item()) < 1e-10, output
                else:
                    size = program[output, "second_moment"]
                    assert abs(size - (value**2).mean().item()) < 1e-10 * max(1, size), output
        before = weights


def test_a_text_of_ones_own() -> None:
    """Momentum, written out."""
    own = "optimizer heavy(beta=9/10, decay=1/20)\nm = beta m + g + decay w\nw = w - lr m"
    assert isinstance(lookup(own), Optimizer)
    equal(training(NETWORKS["mlp"](), "mup", "momentum", DATA, optimizer=own), "momentum")
