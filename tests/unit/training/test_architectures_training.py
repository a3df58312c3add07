"""Training of normalised, residual and recurrent networks against autograd, weight for weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import is_input, key, run

import tpcalc as tp
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.networks.network import Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.nodes import Kind
from tpcalc.training.parameterization import Exponents
from tpcalc.training.parameterizations import lookup

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH, LR, STEPS = 11, 0.3, 3
Weights = dict[str, Any]
Forward = Callable[[Any, Weights, Exponents, Any], tuple[Any, dict[str, Any]]]


def scale(power: Ex) -> float:
    return float(WIDTH ** -float(power.constant or 0))


def activated(net: Any, h: Any) -> Any:
    if getattr(net, "norm", "none") == "layer":
        h = torch.nn.functional.layer_norm(h, h.shape, eps=0.0)
    if getattr(net, "norm", "none") == "rms":
        h = torch.nn.functional.rms_norm(h, h.shape, eps=0.0)
    return torch.tanh(h)


def readout(weights: Weights, layer: int, rule: Exponents, x: Any) -> Any:
    names = [name for name in weights if name.startswith(f"W{layer}[")]
    return scale(rule.a[-1]) * torch.stack([weights[name] @ x for name in sorted(names)])


def mlp(net: tp.MLP, weights: Weights, rule: Exponents, x: Any) -> tuple[Any, dict[str, Any]]:
    found = {}
    for layer in range(1, net.depth + 1):
        w = weights["columns"] if layer == 1 else weights[f"W{layer}"]
        h = float(net.weight_variance) ** 0.5 * scale(rule.a[layer - 1]) * (w @ x)
        if net.biased:
            bias = scale(rule.bias_a[layer - 1]) * weights[f"b{layer}[0]"]
            h = h + float(net.bias_variance or 1) ** 0.5 * bias
        found[f"h[{layer}"] = h
        x = activated(net, h)
    return readout(weights, net.depth + 1, rule, x), found


def resnet(net: tp.ResNet, weights: Weights, rule: Exponents, x: Any) -> tuple[Any, dict[str, Any]]:
    h = scale(rule.a[0]) * (weights["columns"] @ x)
    found = {"h[1": h}
    for layer in range(2, net.depth + 2):
        w = scale(rule.a[layer - 1]) * weights[f"W{layer}"]
        block = float(net.weight_variance) ** 0.5 * w @ activated(net, h)
        if net.bias_variance:
            bias = scale(rule.bias_a[layer - 1]) * weights[f"b{layer}[0]"]
            block = block + float(net.bias_variance) ** 0.5 * bias
        alpha = Fraction(1, 2) if net.alpha is None else net.alpha
        h = h + net.depth ** -float(alpha) * block
        found[f"h[{layer}"] = h
    return readout(weights, net.depth + 2, rule, h), found


def rnn(net: tp.RNN, weights: Weights, rule: Exponents, x: Any) -> tuple[Any, dict[str, Any]]:
    state, found, f = torch.zeros(WIDTH, dtype=torch.float64), {}, []
    for place, token in enumerate(x.reshape(net.length, -1), 1):
        u = scale(rule.a[0]) * (weights["columns"] @ token)
        h = float(net.input_variance) ** 0.5 * u
        if net.length > 1:
            w = scale(rule.a[1]) * (weights["W2"] @ state)
            h = h + float(net.weight_variance) ** 0.5 * w
        if net.bias_variance:
            bias = scale(rule.bias_a[0]) * weights["b1[0]"]
            h = h + float(net.bias_variance) ** 0.5 * bias
        found[f"h[{place}"] = h
        state = activated(net, h)
        f.append(readout(weights, 3, rule, state))
    return torch.cat(f) if net.outputs == "all" else f[-1], found


@dataclass(frozen=True)
class Branches(Architecture):
    """A network of one's own: two activations of different depth, added before the readout."""

    words = "a network of two branches"

    def forward(self, t: NetworkTracer, x: Any) -> Any:
        h = t.linear(t.n, "in", name="W1", label="1")(x)
        first = tp.tanh(h)
        deep = t.linear(t.n, t.n, name="W2", label="2")(first)
        t.watch("h", 1, h)
        t.watch("h", 2, deep)
        return t.linear(t.outputs, t.n, name="W3", label="3")(first + tp.erf(deep))


def branches(
    net: Branches, weights: Weights, rule: Exponents, x: Any
) -> tuple[Any, dict[str, Any]]:
    h = scale(rule.a[0]) * (weights["columns"] @ x)
    deep = scale(rule.a[1]) * (weights["W2"] @ torch.tanh(h))
    f = readout(weights, 3, rule, torch.tanh(h) + torch.erf(deep))
    return f, {"h[1": h, "h[2": deep}


@dataclass(frozen=True)
class Case:
    net: Architecture
    forward: Forward
    param: str
    loss: str = "mse"
    outputs: int = 1
    batch: int = 1


FORWARDS: dict[type, Forward] = {tp.MLP: mlp, tp.ResNet: resnet, Branches: branches}
CASES = [
    Case(tp.MLP(2, "tanh", norm="layer"), mlp, "mup"),
    Case(
        tp.MLP(3, "tanh", weight_variance=2, bias_variance=0.5, norm="layer"), mlp, "ntk", batch=2
    ),
    Case(tp.MLP(3, "tanh", weight_variance=1.7, bias_variance=0.4), mlp, "mup", "xent", 3, 2),
    Case(tp.MLP(2, "tanh", weight_variance=2, norm="layer"), mlp, "ntk", "xent", 2),
    Case(tp.ResNet(3, "tanh", weight_variance=2, bias_variance=0.3), resnet, "mup", batch=2),
    Case(tp.ResNet(2, "tanh", alpha=1, norm="layer"), resnet, "ntk", "logistic"),
    Case(tp.ResNet(2, "tanh", bias_variance=1), resnet, "ip-bias", "xent", 3),
    Case(tp.RNN(3, "tanh", 2, 3, 0.4), rnn, "mup", batch=2),
    Case(tp.RNN(2, "tanh", outputs="all"), rnn, "ntk", "mse", 4),
    Case(tp.RNN(3, "tanh", 1.5, bias_variance=1, outputs="all"), rnn, "mup", "xent", 6, 2),
    Case(tp.RNN(1, "tanh", bias_variance=2), rnn, "ntk"),
    Case(tp.RNN(3, "tanh", 2, norm="layer"), rnn, "mup"),
    Case(tp.RNN(2, "tanh", norm="rms", outputs="all"), rnn, "ntk", "mse", 4),
    Case(tp.MLP(2, "tanh", norm="rms"), mlp, "mup"),
    Case(tp.ResNet(2, "tanh", norm="rms"), resnet, "mup", "xent", 3),
    Case(Branches(), branches, "mup", "xent", 3, 2),
]


def loss_of(case: Case, f: Any, y: Any) -> Any:
    """The loss of a sample, the sum over the places of the readout."""
    if case.loss == "mse":
        return ((f - y) ** 2).sum() / 2
    if case.loss == "logistic":
        return torch.nn.functional.softplus(-y * f).sum()
    rows = f.reshape(case.net.positions, -1)
    return -(y.reshape(rows.shape) * torch.log_softmax(rows, 1)).sum()


def targets(case: Case, rng: np.random.Generator) -> np.ndarray:
    if case.loss != "xent":
        return rng.choice([-1.0, 1.0], (4, case.outputs))
    size = case.outputs // case.net.positions
    return np.eye(size)[rng.integers(0, size, (4, case.net.positions))].reshape(4, -1)


def explicit(program: tp.Program, rng: np.random.Generator) -> tuple[dict[str, Any], Weights]:
    """Draws for the inputs of a program, and the same as trained tensors."""
    inputs: dict[str, Any] = {}
    for node in program.nodes:
        if is_input(node, Kind.VECTOR):
            inputs.setdefault(key(node), rng.standard_normal(WIDTH))
        elif is_input(node, Kind.MATRIX):
            inputs.setdefault(node.name, rng.standard_normal((WIDTH, WIDTH)))
    first = "U" if any(name.startswith("U[") for name in inputs) else "W1"
    count = sum(name.startswith(f"{first}[") for name in inputs)
    columns = np.stack([inputs[f"{first}[{j}]"] for j in range(count)], 1)
    kept = {name: value for name, value in inputs.items() if not name.startswith(f"{first}[")}
    return inputs, {
        name: torch.tensor(value, requires_grad=True)
        for name, value in {"columns": columns, **kept}.items()
    }


def layer_of(case: Case, name: str) -> int:
    if isinstance(case.net, tp.RNN):
        return {"columns": 1, "b1[0]": 1, "W2": 2}.get(name, 3)
    return 1 if name == "columns" else int(name[1:].partition("[")[0])


@pytest.mark.parametrize("case", CASES, ids=[f"{c.net.words}, {c.param}" for c in CASES])
def test_training_equals_autograd(case: Case) -> None:
    rng = np.random.default_rng(23)
    dimension = 6 if isinstance(case.net, tp.RNN) else 3
    xs, ys = rng.standard_normal((4, dimension)), targets(case, rng)
    program = tp.train(
        case.net,
        case.param,
        tp.Samples(xs, ys),
        steps=STEPS,
        lr=LR,
        loss=case.loss,
        batch=case.batch,
        watch=("h",),
    )
    inputs, weights = explicit(program, rng)
    found = run(program, WIDTH, inputs)
    for t in range(STEPS + 1):
        rule = lookup(case.param).exponents(case.net.hidden, t)
        total = torch.zeros((), dtype=torch.float64)
        for i in range(case.batch):
            row = (t * case.batch + i) % 4
            f, hidden = case.forward(case.net, weights, rule, torch.tensor(xs[row]))
            for k in range(case.outputs):
                name = f"f[{t},{i}]" if case.outputs == 1 else f"f[{t},{i},{k}]"
                assert found[name] == pytest.approx(f[k].item(), rel=1e-8, abs=1e-11), name
            for name, h in hidden.items():
                np.testing.assert_allclose(found[f"{name},{t},{i}]"], h.detach(), 1e-8, 1e-11)
            total = total + loss_of(case, f, torch.tensor(ys[row])) / case.batch
        total.backward()
        with torch.no_grad():
            for name, w in weights.items():
                table = rule.bias_c if name.startswith("b") else rule.c
                w -= LR * scale(table[layer_of(case, name) - 1]) * w.grad
                w.grad = None


@pytest.mark.parametrize(
    ("net", "kinds"),
    [
        (tp.ResNet(2, "tanh", bias_variance=2), ("dW_x", "dB")),
        (tp.MLP(2, "tanh", weight_variance=3, norm="layer"), ("dW_x",)),
        (Branches(), ("dW_x",)),
    ],
    ids=["resnet", "mlp", "branches"],
)
def test_contributions_are_the_changes_of_the_weights_applied(
    net: Architecture, kinds: Sequence[str]
) -> None:
    """What the update adds to h at fixed features, by the step of one layer's weights alone."""
    rng = np.random.default_rng(4)
    xs = rng.standard_normal((2, 3))
    program = tp.train(net, "mup", tp.Samples(xs, [1.0, -1.0]), steps=1, lr=LR, watch=kinds)
    names = [name for name, _ in program.outputs]
    for layer in range(1, net.hidden + 2):
        assert f"dW_x[{layer},1,0]" in names
    biased = [f"dB[{layer},1]" for layer in range(2, net.hidden + 1)] if "dB" in kinds else []
    assert [name for name in names if name.startswith("dB")] == biased
    inputs, weights = explicit(program, rng)
    found = run(program, WIDTH, inputs)
    forward = FORWARDS[type(net)]
    rule = lookup("mup").exponents(net.hidden)
    loss = ((forward(net, weights, rule, torch.tensor(xs[0]))[0] - 1.0) ** 2).sum() / 2
    loss.backward()
    old = {name: w.detach().clone() for name, w in weights.items()}
    last = f"W{net.hidden + 1}[0]"
    with torch.no_grad():
        for name, w in weights.items():
            layer = layer_of(Case(net, forward, "mup"), name)
            w -= LR * scale(rule.c[layer - 1]) * w.grad
        f = forward(net, weights, rule, torch.tensor(xs[1]))[0]
        same = forward(net, {**weights, last: old[last]}, rule, torch.tensor(xs[1]))[0]
    assert found[f"dW_x[{net.hidden + 1},1,0]"] == pytest.approx((f - same).item(), rel=1e-9)
    hidden = {name for name in weights if name in (f"W{net.hidden}", f"b{net.hidden}[0]")}
    with torch.no_grad():
        now = forward(net, weights, rule, torch.tensor(xs[1]))[1][f"h[{net.hidden}"]
    for name in hidden:
        with torch.no_grad():
            held = {**weights, name: old[name]}
            before = forward(net, held, rule, torch.tensor(xs[1]))[1][f"h[{net.hidden}"]
        kind = f"dB[{net.hidden},1]" if name.startswith("b") else f"dW_x[{net.hidden},1,0]"
        np.testing.assert_allclose(found[kind], (now - before).numpy(), 1e-8, 1e-13)


def test_gradients_of_normalised_preactivations_are_watched() -> None:
    net = tp.MLP(2, "tanh", norm="layer")
    data = tp.Samples(((0.3, -1.0),), ((1.0,),))
    program = tp.train(net, "mup", data, steps=0, watch=("h", "dh", "hhat", "dhhat"))
    inputs, _ = explicit(program, np.random.default_rng(0))
    found = run(program, WIDTH, inputs)
    for layer in (1, 2):
        h, hat = found[f"h[{layer},0,0]"], found[f"hhat[{layer},0,0]"]
        np.testing.assert_allclose(hat, (h - h.mean()) / h.std(), rtol=1e-12)
        # The gradient by h: orthogonal to constants and to h, as h^ does not move along them.
        gradient = found[f"dh[{layer},0,0]"]
        assert abs(gradient.sum()) < 1e-12 and abs(gradient @ h) < 1e-12
        by_hat = found[f"dhhat[{layer},0,0]"]
        wanted = (by_hat - by_hat.mean() - hat * (by_hat * hat).mean()) / h.std()
        np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-14)
    with pytest.raises(StudyError, match=r"watch names dhhat, hhat, and the network has no such"):
        tp.train(tp.MLP(2), "mup", data, watch=("hhat", "dhhat"))


def test_targets_of_every_token() -> None:
    net = tp.RNN(2, "tanh", outputs="all")
    with pytest.raises(StudyError, match="3 targets, and the network is read off at 2 tokens"):
        tp.train(net, "mup", tp.Samples(((1.0, 2.0),), ((1.0, 2.0, 3.0),)))
    with pytest.raises(StudyError, match="takes -1 and 1"):
        tp.train(net, "mup", tp.Samples(((1.0, 2.0),), ((1.0, 0.5),)), loss="logistic")
    program = tp.train(net, "mup", tp.Samples(((1.0, 2.0),), ((1.0, -1.0),)), loss="logistic")
    assert [name for name, _ in program.outputs if name[0] == "f"][:2] == ["f[0,0,0]", "f[0,0,1]"]
