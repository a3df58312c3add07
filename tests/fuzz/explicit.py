"""Networks of finite width and depth in torch, with explicit weights and training by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import tpcalc as tp
from tests.fuzz.written import RATE, Forward, Power, Weights

torch = pytest.importorskip("torch")

__all__ = ["Explicit", "Found", "Rule", "ladder", "measured"]


@dataclass(frozen=True)
class Rule:
    """An optimizer at its usual numbers and without a small number in its denominators."""

    name: str

    def step(self, gradient: Any, state: dict[str, Any], count: int) -> Any:
        """What is taken off, over the learning rate; count is 1 at the first step."""
        if self.name == "sgd":
            return gradient
        if self.name == "signsgd":
            return gradient.sign()
        if self.name == "momentum":
            state["m"] = 0.9 * state.get("m", 0.0) + gradient
            return state["m"]
        assert self.name == "adam"
        state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * gradient
        state["v"] = 0.999 * state.get("v", 0.0) + 0.001 * gradient**2
        size = (state["v"] / (1 - 0.999**count)).sqrt()
        moved = state["m"] / (1 - 0.9**count) / size
        return moved.where(size > 0, 0 * moved)  # 0/0 of what has no gradient


@dataclass
class Explicit:
    """The reading of torch: a network of a width, of a depth, with weights of its own.

    Args:
        width: n.
        depth: L.
        seed: Of its weights.
        frozen: The maps that are not trained.

    Attributes:
        watched: What was reported in the last pass.
        reads: For each map what it was applied to in the last pass.
        ends: What became of what it wrote, up to a function of it, and the factors of that: those
            that are written, and those of norms.
        state: What the optimizer keeps of each parameter.
    """

    width: int
    depth: int
    seed: int
    frozen: frozenset[str] = frozenset()
    watched: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, Any] = field(default_factory=dict)
    ends: dict[str, tuple[Any, float, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    state: dict[str, dict[str, Any]] = field(default_factory=dict)
    layer: str = ""

    def __post_init__(self) -> None:
        self.rng = torch.Generator().manual_seed(self.seed)

    def drawn(self, name: str, shape: tuple[int, ...], weights: Weights) -> Any:
        """A parameter, drawn where it is first used."""
        if name not in self.parameters:
            made = torch.randn(shape, generator=self.rng, dtype=torch.float64)
            made *= weights.init.at(self.width)
            self.parameters[name] = made.requires_grad_()
            kept = name.partition("/")[0] in self.frozen
            self.rates[name] = 0.0 if kept else weights.rate.at(self.width)
        return self.parameters[name]

    def linear(
        self, name: str, kind: str, x: Any, weights: Weights, bias: Weights | None = None
    ) -> Any:
        name = f"{name}/{self.layer}"
        rows, cols = 1 if kind == "readout" else self.width, x.shape[-1]
        y = x @ self.drawn(name, (rows, cols), weights).T
        if bias is not None:
            y = y + self.drawn(f"{name}.bias", (rows,), bias)
        self.reads[name], self.ends[name] = x, (y, 1.0, 1.0)
        return y

    def behind(self, x: Any, factor: float, norm: Any = 1.0) -> Any:
        """A multiple of a vector, which may be what a map wrote."""
        y = factor * norm * x
        for name, (end, written, normed) in self.ends.items():
            if end is x:
                self.ends[name] = y, written * factor, normed * norm
        return y

    def act(self, name: str, x: Any) -> Any:
        own = {
            "identity": lambda x: x,
            "swish": torch.nn.functional.silu,
            "gelu": torch.nn.functional.gelu,
        }
        return (own.get(name) or getattr(torch, name))(x)

    def norm(self, kind: str, x: Any) -> Any:
        if kind == "none":
            return x
        center = x.mean(-1, keepdim=True) if kind == "layer" else 0.0
        size = ((x - center) ** 2).mean(-1, keepdim=True).sqrt()
        return self.behind(x, 1.0, 1 / size) - center / size

    def times(self, power: Power, x: Any) -> Any:
        return self.behind(x, power.at(self.width, self.depth))

    def repeat(self, x: Any, block: Callable[[Any], Any]) -> Any:
        for layer in range(self.depth):
            self.layer = str(layer)
            x = block(x)
        self.layer = ""
        return x

    def watch(self, label: str, x: Any) -> None:
        self.watched[label] = x

    def run(self, forward: Forward, rows: Any) -> Any:
        """The outputs for rows of inputs."""
        return forward(self, torch.tensor(rows, dtype=torch.float64))[:, 0]

    def train(
        self, forward: Forward, data: tp.Samples, rule: Rule, count: int, speed: Mapping[str, float]
    ) -> None:
        """Take a step on all samples at once, with the loss half the mean of squared errors.

        Args:
            forward: The forward pass.
            data: The samples.
            rule: The optimizer.
            count: 1 at the first step.
            speed: Factors of rates by the names of maps.
        """
        targets = torch.tensor(data.targets, dtype=torch.float64)[:, 0]
        loss = ((self.run(forward, data.inputs) - targets) ** 2).mean() / 2
        names = [name for name in self.parameters if self.rates[name]]
        leaves = [self.parameters[name] for name in names]
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        for name, gradient in zip(names, found, strict=True):
            if gradient is None:
                continue
            move = rule.step(gradient, self.state.setdefault(name, {}), count)
            rate = RATE * self.rates[name] * speed.get(name.partition("/")[0], 1.0)
            with torch.no_grad():
                self.parameters[name] -= rate * move


Found = dict[str, tuple[float, float]]  # of vectors averages of coordinates and of their squares


def measured(
    net: Explicit,
    forward: Forward,
    data: tp.Samples,
    rule: Rule,
    steps: int,
    *,
    query: Sequence[float] | None = None,
    speed: Mapping[str, float] | None = None,
) -> Found:
    """What a network is before and in training, under the names that tpcalc gives.

    Args:
        net: The network.
        forward: Its forward pass.
        data: What it is trained on, all samples in each step.
        rule: The optimizer.
        steps: How many steps.
        query: An input that it is not trained on; it counts after the samples.
        speed: Factors of rates by the names of maps.

    Returns:
        ``f[t,i]``, ``x[label,t,i]``, ``dx[label,t,i]``, their changes since the start, and for
        each map ``dW_x[name,t,i]`` and ``dB[name,t]``, what its last update and that of its bias
        add to what the next function reads: times the factors behind the map, and the norms there
        a step before.
    """
    rows = [*data.inputs, *([query] if query is not None else [])]
    found: Found = {}
    start: dict[str, Any] = {}
    norms: dict[str, Any] = {}
    for step in range(steps + 1):
        before = {name: value.detach().clone() for name, value in net.parameters.items()}
        if step:
            net.train(forward, data, rule, step, speed or {})
        f = net.run(forward, rows)
        vectors = {f"x[{label},": x for label, x in net.watched.items()}
        values = {"f[": f[:, None], **vectors}
        slopes = torch.autograd.grad(f.sum(), list(vectors.values()), retain_graph=True)
        values.update(zip((f"d{name}" for name in vectors), slopes, strict=True))
        for name, x in net.reads.items() if step else ():
            change = x @ (net.parameters[name].detach() - before[name]).T
            _, factor, _ = net.ends[name]
            values[f"dW_x[{name.rstrip('/')},"] = factor * norms[name] * change
            if (bias := f"{name}.bias") in before:
                norm = norms[name] if isinstance(norms[name], float) else norms[name][-1]
                move = factor * norm * (net.parameters[bias].detach() - before[bias])
                found[f"dB[{name.rstrip('/')},{step}]"] = _moments(move.detach())
        norms = {name: norm for name, (_, _, norm) in net.ends.items()}
        for name, value in values.items():
            _report(found, name, step, value.detach(), start.setdefault(name, value.detach()))
    return found


def _report(found: Found, name: str, step: int, now: Any, first: Any) -> None:
    for place in range(len(now)):
        own = f"{name}{step},{place}]"
        found[own] = _moments(now[place])
        if step and name[0] in "fxd" and not name.startswith("dW_x"):
            found[f"{own}-{name}0,{place}]"] = _moments(now[place] - first[place])


def _moments(x: Any) -> tuple[float, float]:
    return float(x.mean()), float((x * x).mean())


# --------------------------------------------------------------------------- infinite width, start


class _Fresh(torch.autograd.Function):  # type: ignore[misc]
    """A matrix of this product and of its transpose alone: Gaussians of the right size."""

    @staticmethod
    def forward(ctx: Any, x: Any, rng: Any, size: float) -> Any:
        ctx.rng, ctx.size = rng, size
        return _gaussian(x, rng, size)

    @staticmethod
    def backward(ctx: Any, *d: Any) -> Any:
        return _gaussian(d[0], ctx.rng, ctx.size), None, None


def _gaussian(x: Any, rng: Any, size: float) -> Any:
    drawn = torch.randn(x.shape, generator=rng, dtype=torch.float64)
    return size * (x * x).mean(-1, keepdim=True).sqrt() * drawn


class Coordinates(Explicit):
    """Networks so wide that coordinates are samples: blocks at the start, without their matrices.

    A row is a network of its own; products with matrices are Gaussians of the size that the law of
    large numbers gives them, in the forward and in the backward pass.
    """

    def linear(
        self, name: str, kind: str, x: Any, weights: Weights, bias: Weights | None = None
    ) -> Any:
        size = weights.init.at(self.width) * self.width**0.5
        y = _Fresh.apply(x, self.rng, size) if weights.init.number else 0 * x
        if bias is not None and bias.init.number:
            y = y + bias.init.at(self.width) * _gaussian(1 + 0 * x, self.rng, 1.0)
        return y


def ladder(
    block: Callable[[Coordinates, Any], Any], depth: int, seed: int, count: int, width: int
) -> dict[str, Any]:
    """Mean squares of the stream behind L blocks, and of its adjoint before them, at the start.

    Args:
        block: A block.
        depth: L.
        seed: Of all draws.
        count: How many networks.
        width: Their coordinates.

    Returns:
        An entry for each network: ``x`` and ``dx`` over their size where they enter the blocks,
        ``Dx`` and ``Ddx`` those of how far they went.
    """
    net = Coordinates(width, depth, seed)
    x = first = torch.randn((count, width), generator=net.rng, dtype=torch.float64)
    d = last = torch.randn((count, width), generator=net.rng, dtype=torch.float64)
    entered = []
    for layer in range(depth):
        entered.append(x)
        net.rng.manual_seed(seed * 100_003 + layer + 1)
        with torch.no_grad():
            x = block(net, x)
    for layer in reversed(range(depth)):
        net.rng.manual_seed(seed * 100_003 + layer + 1)
        start = entered[layer].requires_grad_()
        (d,) = torch.autograd.grad(block(net, start), start, d)
    pairs = {"x": (x, first), "dx": (d, last)}
    found = {name: _square(now) / _square(then) for name, (now, then) in pairs.items()}
    for name, (now, then) in pairs.items():
        found[f"D{name}"] = _square(now - then) / _square(then)
    return {name: value.numpy() for name, value in found.items()}


def _square(x: Any) -> Any:
    return (x.detach() ** 2).mean(-1)
