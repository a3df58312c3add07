"""Networks written otherwise that predict and learn alike, and whether a metric is alike, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.meanfield.network import network_of
from tpcalc.nonlinearity.tensors.coefficient import MeasuredNLC, measured_nlc
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs, network_on
from tpcalc.nonlinearity.tensors.gradients import GradientLengths, Loss, gradient_lengths
from tpcalc.nonlinearity.tensors.layers import moments_of
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

Tensor = Any
RATE = 1e-3


@dataclass(frozen=True)
class Gauged:
    """A network whose layers are divided by numbers, and whose parameters are.

    Each layer multiplies what it reads by the numbers of the layers that it reads, so that its
    values are those of ``inner`` over its own number; parameters are multiplied likewise.
    """

    inner: Any
    parameters: Mapping[str, Tensor]
    layered: Sequence[float]
    held: Mapping[str, float]

    @property
    def module(self) -> Any:
        """What holds batch norms, if any."""
        return getattr(self.inner, "module", self.inner)

    def layers(self, x: Tensor) -> list[Tensor]:
        """All layers on a batch."""
        own, kept = self.inner.parameters, dict(self.inner.parameters)
        own.update({name: self.held[name] * value for name, value in self.parameters.items()})
        found = [x.clone()]
        try:
            for index, tap in enumerate(self.inner.taps[1:], 1):
                reads = [self.layered[p] * found[p] for p in tap.parents]
                found.append(self.inner.layer(index, reads) / self.layered[index])
        finally:
            own.update(kept)
        return found


class _Parts:
    """A ``torch.nn.Sequential`` whose parts are layers."""

    def __init__(self, module: Any) -> None:
        self.module, self.parts = module, list(module)
        self.parameters = dict(module.named_parameters())
        weights = [getattr(part, "weight", None) for part in self.parts]
        kinds = ["", *("weights" if getattr(w, "ndim", 0) > 1 else "" for w in weights)]
        self.taps = [SimpleNamespace(parents=(k - 1,), kind=kind) for k, kind in enumerate(kinds)]

    def layer(self, index: int, reads: Sequence[Tensor]) -> Tensor:
        """A part as a function of what it reads."""
        own = f"{index - 1}."
        found = {k.removeprefix(own): v for k, v in self.parameters.items() if k.startswith(own)}
        return load_torch().func.functional_call(self.parts[index - 1], found, (reads[0],))


@dataclass(frozen=True)
class Setting(Shown):
    """A network on inputs with a loss and rates of learning, as metrics measure it.

    Args:
        network: The network, with ``layers``.
        x: Inputs.
        targets: One for each.
        loss: The loss of each input, by outputs and targets.
        rates: Learning rates of parameters.
        size: What losses are multiplied by, next to those of the network that it is made of.
    """

    network: Gauged
    x: Tensor
    targets: Tensor
    loss: Loss
    rates: Mapping[str, float]
    size: float = 1.0

    @property
    def losses(self) -> Tensor:
        """The loss of each input."""
        return self.loss(self.network.layers(self.x)[-1], self.targets)

    def stepped(self) -> Setting:
        """The same after a step of gradient descent on the mean loss over all inputs."""
        leaves = {
            k: v.detach().clone().requires_grad_() for k, v in self.network.parameters.items()
        }
        mean = replace(self, network=replace(self.network, parameters=leaves)).losses.mean()
        slopes = load_torch().autograd.grad(mean, list(leaves.values()), materialize_grads=True)
        pairs = zip(leaves.items(), slopes, strict=True)
        moved = {name: (leaf - self.rates[name] * slope).detach() for (name, leaf), slope in pairs}
        return replace(self, network=replace(self.network, parameters=moved))


def setting(
    network: Any,
    x: Any = None,
    targets: Any = None,
    loss: Loss | None = None,
    *,
    width: int = 64,
    inputs: int = 100,
    seed: int = 0,
) -> Setting:
    """A network with inputs and a loss, as ``invariance`` and ``rescaled`` take it.

    Args:
        network: A network or its layers, of which one is drawn; a ``torch.nn.Sequential``.
        x: Inputs; by default Gaussian ones.
        targets: One for each input; by default Gaussian vectors.
        loss: The loss of each input, by outputs and targets; by default their product, so that
            gradients by the outputs are Gaussian.
        width: That of a network that is drawn.
        inputs: How many there are by default.
        seed: The seed.

    Returns:
        The network in its setting.

    Raises:
        UsageError: A module comes without inputs.
        TpcalcError: As of ``tp.signal.network_of``.

    Source: Schoenherr, The nonlinearity coefficient, section 9.1.

    Example:
        >>> import tpcalc as tp
        >>> setting(tp.MLP(1, "relu"), width=8, inputs=5).losses.shape
        torch.Size([5])
    """
    torch = load_torch()
    is_module = isinstance(network, torch.nn.Sequential)
    inner = _Parts(network) if is_module else network_of(network, width, width, seed)
    if x is None and is_module:
        raise UsageError("a module comes without inputs.", where="setting", hint="Give x.")
    x = gaussian_inputs(inputs, width, seed=seed) if x is None else x
    checks.of_type(x, torch.Tensor, "x")
    names, ones = inner.parameters, [1.0] * len(inner.taps)
    own = Gauged(inner, dict(names), ones, dict.fromkeys(names, 1.0))
    if targets is None:
        shape = tuple(own.layers(x)[-1].shape)
        targets = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(x)
    return Setting(own, x, targets, loss or _product, dict.fromkeys(names, RATE))


def _product(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs * targets).flatten(1).sum(1)


class _Rescaling(NamedTuple):
    """What is done, and what GLEN of the inputs is multiplied by."""

    text: str
    made: Callable[[Setting, float, np.random.Generator], tuple[Setting, float]]


def _inputs(s: Setting, c: float, _: Any) -> tuple[Setting, float]:
    return replace(s, x=c * s.x), 1 / c


def _shifted(s: Setting, c: float, rng: np.random.Generator) -> tuple[Setting, float]:
    vector = c * rng.standard_normal(tuple(s.x.shape[1:]))
    return replace(s, x=s.x + load_torch().from_numpy(vector).to(s.x)), 1.0


def _losses(s: Setting, c: float, _: Any) -> tuple[Setting, float]:
    own, rates = s.loss, {name: rate / c for name, rate in s.rates.items()}
    return replace(s, loss=lambda y, t: c * own(y, t), rates=rates, size=c * s.size), c


def _weights(s: Setting, c: float, _: Any) -> tuple[Setting, float]:
    parameters = {name: c * value for name, value in s.network.parameters.items()}
    factor = c ** sum(tap.kind == "weights" for tap in s.network.inner.taps)
    return replace(
        s, network=replace(s.network, parameters=parameters), size=factor * s.size
    ), factor


def _gauge(
    s: Setting, layered: Sequence[float], held: Mapping[str, float]
) -> tuple[Setting, float]:
    """Layers over numbers, and parameters over others, with rates that fit."""
    own, first, last = s.loss, layered[0], layered[-1]
    parameters = {name: value / held[name] for name, value in s.network.parameters.items()}
    network = replace(s.network, parameters=parameters, layered=layered, held=held)
    rates = {name: rate / held[name] ** 2 for name, rate in s.rates.items()}
    moved = replace(s, network=network, x=s.x / first, loss=lambda y, t: own(last * y, t))
    return replace(moved, rates=rates), first


def _alike(s: Setting, layered: float, held: float) -> tuple[Setting, float]:
    parts = [layered] * len(s.network.layered), dict.fromkeys(s.network.held, held)
    return _gauge(s, *parts)


def _each(s: Setting, c: float, rng: np.random.Generator) -> tuple[Setting, float]:
    drawn = iter(
        (c ** rng.uniform(0.5, 1.5, len(s.network.layered) + len(s.network.held))).tolist()
    )
    layered = [next(drawn) for _ in s.network.layered]
    return _gauge(s, layered, {name: next(drawn) for name in s.network.held})


RESCALINGS = {
    "a": _Rescaling("inputs times c", _inputs),
    "b": _Rescaling("the loss times c, rates over c", _losses),
    "c": _Rescaling("all weights times c", _weights),
    "d": _Rescaling("every layer over c", lambda s, c, _: _alike(s, c, 1.0)),
    "e": _Rescaling(
        "layers and parameters over c, rates over c^2", lambda s, c, _: _alike(s, c, c)
    ),
    "f": _Rescaling(
        "each layer and parameter over a number of its own, with rates of its own", _each
    ),
    "g": _Rescaling("a vector is added to all inputs", _shifted),
}


def _gradient(s: Setting) -> GradientLengths:
    return gradient_lengths(s.network, s.x, s.targets, s.loss, batch=len(s.x))[0]


def _output(s: Setting) -> MeasuredNLC:
    return measured_nlc(lambda x: s.network.layers(x)[-1], s.x, batch=len(s.x), draws=4)


def _mean(s: Setting, layer: int, name: str) -> float:
    """The root of the mean over inputs of what a layer has of each."""
    found = moments_of(*network_on(s.network, s.x, len(s.x), 0))[layer]
    return float(np.sqrt(np.mean(getattr(found, name))))


METRICS: dict[str, Callable[[Setting], Any]] = {
    "GLEN": lambda s: _gradient(s).length,
    "GVCS": lambda s: _gradient(s).component,
    "NLC": lambda s: _output(s).nlc,
    "LBIAS": lambda s: _output(s).bias,
    "LSCALE": lambda s: _mean(s, -1, "squares"),
    "LCORR": lambda s: _mean(s, -1, "alike"),
    "LCORR of inputs": lambda s: _mean(s, 0, "alike"),
}


def rescaled(given: Setting, name: str, scale: float = 2.0, seed: int = 0) -> Setting:
    """A network in its setting, written otherwise by one of the rescalings.

    Args:
        given: The network in its setting.
        name: ``"a"`` to ``"g"``: inputs times c; the loss times c; all weights times c; layers over
            c; parameters over c as well; numbers of their own; a vector added to inputs.
        scale: c.
        seed: For numbers and vectors that are drawn.

    Returns:
        The other setting.

    Raises:
        UnknownName: No such rescaling.
        UsageError: A scale that is not above 0.

    Source: Schoenherr, The nonlinearity coefficient, section 9.1.

    Example:
        >>> import tpcalc as tp
        >>> own = setting(tp.MLP(1, "relu"), width=8, inputs=5)
        >>> bool(((rescaled(own, "f").losses - own.losses).abs() < 1e-12).all())
        True
    """
    checks.one_of("name", name, RESCALINGS)
    c, rng = float(checks.real(scale, "scale", above=0)), np.random.default_rng(checks.seed(seed))
    return RESCALINGS[name].made(given, c, rng)[0]


@dataclass(frozen=True, slots=True)
class InvarianceRow(Shown):
    """A rescaling of a network, and a metric before and after it.

    Args:
        rescaling: Its letter.
        done: What is done.
        same: Whether losses of all inputs are what they were, times a number that is known:
            elsewhere it is no rescaling of this network.
        learns: Whether they are after a step of gradient descent, too.
        factor: The metric after it over the metric before.
        length: The same of GLEN of the inputs.
        expected: What GLEN is multiplied by; None where it is no rescaling of this network.
        invariant: Whether the metric is what it was; None likewise.
    """

    rescaling: str
    done: str
    same: bool
    learns: bool
    factor: float
    length: float
    expected: float | None
    invariant: bool | None


def invariance(
    metric: str | Callable[[Setting], Any],
    network: Any,
    *,
    scale: float = 2.0,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> tuple[InvarianceRow, ...]:
    """Whether a metric is the same for networks that are the same but for how they are written.

    Args:
        metric: ``"GLEN"``, ``"GVCS"`` (of inputs), ``"NLC"``, ``"LBIAS"``, ``"LSCALE"``,
            ``"LCORR"`` (of outputs), ``"LCORR of inputs"``, or a function of a ``Setting``.
        network: A network, its layers, or a ``Setting``.
        scale: c of the rescalings.
        tolerance: Relative differences up to here are none.
        seed: For what is drawn.

    Returns:
        A row for each rescaling.

    Raises:
        UnknownName: No such metric.
        UsageError: A scale that is not above 0.

    Source: Schoenherr, The nonlinearity coefficient, sections 9.1 to 9.3.

    Example:
        >>> import tpcalc as tp
        >>> rows = invariance("NLC", tp.MLP(1, "tanh"))
        >>> [row.rescaling for row in rows if row.invariant]
        ['b', 'd', 'e', 'f']
    """
    if isinstance(metric, str):
        checks.one_of("metric", metric, METRICS)
    measured = METRICS[metric] if isinstance(metric, str) else metric
    c = float(checks.real(scale, "scale", above=0))
    own = network if isinstance(network, Setting) else setting(network, seed=seed)
    both = measured, METRICS["GLEN"]
    start, trained, before = own.losses, own.stepped().losses, [_number(part(own)) for part in both]
    rows = []
    for name, (text, made) in RESCALINGS.items():
        other, expected = made(own, c, np.random.default_rng(seed))
        size = other.size / own.size
        same = _close(other.losses, size * start, tolerance)
        learns = _close(other.stepped().losses, size * trained, tolerance)
        factor, length = (
            _number(part(other)) / old for part, old in zip(both, before, strict=True)
        )
        known = (expected, abs(factor - 1) <= tolerance) if same else (None, None)
        rows.append(InvarianceRow(name, text, same, learns, factor, length, *known))
    return Rows(rows)


def _close(left: Tensor, right: Tensor, tolerance: float) -> bool:
    return bool((left - right).abs().max() <= tolerance * right.abs().max())


def _number(value: Any) -> float:
    return float(value.value if isinstance(value, Estimate) else value)
