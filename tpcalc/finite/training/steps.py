"""Networks of a setting at their start, and their steps, in terms of effective weights.

A network holds W = n^(-a) w, so that a step of SGD multiplies each gradient by one number, and no
gradient is formed. Other optimizers are their text, read over arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.finite.axes import contracted
from tpcalc.finite.networks.coordinatewise import evaluated
from tpcalc.finite.networks.gradients import Gradients, times
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.scales import Scales
from tpcalc.networks.network import INPUT
from tpcalc.program.family import Mark
from tpcalc.program.program import Program

Tensor = Any

# Entries that one thread takes at a time.
_BLOCK = 2**15
# A trial's network is the network of this seed; that of trial 0 has the seed itself.
_TRIALS = 64


def begun(
    program: Program,
    scales: Scales,
    std: float,
    seed: int = 0,
    trial: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> DrawnNetwork:
    """A network at its start.

    The entries of w^l are N(mean_l, std^2) in the layers 1..L and N(mean_{L+1}, 1) in the last;
    those of the first layer, weights and biases, are divided by sqrt(d + 1), so that inputs with
    entries of order one give preactivations of order one.

    Source: Hajjar, Chizat, Giraud, section 6.1.
    """
    inputs = prod(size for _, size in program.types[program.inputs[INPUT]].axes)
    last = max(mark.layer for mark in marks_of(program).values())

    def entries(mark: Mark) -> tuple[float, float]:
        spread = 1.0 if mark.layer == last else std
        if mark.layer == 1:
            spread /= (inputs + 1) ** 0.5
        scale, mean = scales.start(mark)
        return spread * scale, mean / spread

    return DrawnNetwork(program, scales.width, seed + (trial << _TRIALS), device, dtype, entries)


def marks_of(program: Program) -> dict[str, Mark]:
    """The marks of what is trained, by name."""
    marks = ((name, family.mark) for name, family in program.families.items())
    return {name: mark for name, mark in marks if mark is not None and mark.trained}


class _Rule:
    """How a parameter is trained, as numbers."""

    def __init__(self, mark: Mark, scales: Scales) -> None:
        self.mark, self.optimizer = mark, scales.training.optimizer_of(mark)
        self.unit, self.numbers = scales.unit(mark), scales.numbers(mark)
        self._scales, self._rates = scales, dict[int, float]()
        # Other tables than those of the run: that they stay is not known.
        self._own = self.optimizer.degree != scales.training.parameterization.degree

    def rate(self, step: int) -> float:
        """Its rate at a step, the schedule and the base rate aside."""
        first = step if self._own else self._scales.first[step]
        if first not in self._rates:
            self._rates[first] = self._scales.rate(self.mark, first)
        return self._rates[first]

    def left(self, kept: Sequence[float]) -> float:
        """What it is multiplied by before an update."""
        return 1.0 if self.mark.bias else kept[self.mark.layer - 1]


class Updates:
    """The steps of a network in training, with the states of its optimizers.

    Args:
        network: The network, as ``begun`` gives it.
        scales: The run, at its width.

    Attributes:
        states: For each parameter whose optimizer is not plain SGD the parts of its state.
    """

    def __init__(self, network: DrawnNetwork, scales: Scales) -> None:
        self.network, self.scales = network, scales
        self._rules = {n: _Rule(mark, scales) for n, mark in marks_of(network.program).items()}
        self.states: dict[str, dict[str, Tensor]] = {}
        for name, rule in self._rules.items():
            if not rule.optimizer.is_plain:
                weight = network.parameters[name]
                self.states[name] = {part: weight * 0 for part in rule.optimizer.parts[2:]}

    def to(self, dtype: str) -> None:
        """Round the network and all states to another number format."""
        self.network.to(dtype)
        for state in self.states.values():
            state.update({part: found.to(self.network.dtype) for part, found in state.items()})

    def take(self, gradients: Gradients, step: int, rates: Sequence[float]) -> None:
        """One step, in place."""
        scaled: dict[str, float] = {}
        kept: dict[str, float] = {}
        left = self.scales.kept(step)
        factor = float(self.scales.training.factors[step])
        for name, rule in self._rules.items():
            kept[name] = rule.left(left)
            rate = rates[rule.mark.layer - 1] * factor * rule.rate(step)
            if name not in self.states:
                scaled[name] = rate
                continue
            weight, gradient = self.network.parameters[name], gradients.formed(name)
            parts = {"w": weight, "g": gradient, **self.states[name]}
            _advance(rule, parts, step, rate, kept[name])
        gradients.step(scaled, kept)

    def contribution(self, gradients: Gradients, name: str, read: Tensor) -> Tensor:
        """What the first step, with the base rate 1, adds to the sum that a parameter writes."""
        rule = self._rules[name]
        rate = rule.rate(0)
        product = next(iter(gradients.products.get(name, ())), None)
        if name not in self.states:
            if product is None:
                return times(gradients.formed(name), -rate)
            found = times(product.written.clone(), -rate * product.factor)
            return (read @ product.read.t()) @ found
        left, weight = rule.left(self.scales.kept(0)), self.network.parameters[name]
        state = {part: found.clone() for part, found in self.states[name].items()}
        parts = {"w": weight.clone(), "g": gradients.formed(name), **state}
        _advance(rule, parts, 0, rate, left)
        change = parts["w"] - weight * left
        if product is None:
            return change
        use = product.use
        return contracted([(change, use.parameter), (read, use.value)], use.result)


def _advance(rule: _Rule, parts: Mapping[str, Tensor], step: int, rate: float, kept: float) -> None:
    """A step of an optimizer, in place, on blocks that fit the caches; the gradient is used up."""
    lines, names, unit = rule.optimizer.lines(step + 1, rule.numbers), tuple(parts), rule.unit
    for block in _blocks(parts):
        if unit * kept != 1:
            times(block["w"], unit * kept)
        if unit != 1:
            times(block["g"], 1 / unit)
        found = dict(block)
        for name, fn in lines:
            found[name] = evaluated(fn, *(found[part] for part in names), rate)
        if unit != 1:
            times(found["w"], 1 / unit)
        for name in names[:1] + names[2:]:
            block[name].copy_(found[name])


def _blocks(parts: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Views of some rows of all parts at a time."""
    torch, weight = load_torch(), parts["w"]
    cells = _BLOCK * torch.get_num_threads() if weight.device.type == "cpu" else weight.numel()
    rows = max(1, cells * len(torch.atleast_1d(weight)) // max(1, weight.numel()))
    split = [torch.atleast_1d(part).split(rows) for part in parts.values()]
    for views in zip(*split, strict=True):
        yield dict(zip(parts, views, strict=True))


@contextmanager
def quiet() -> Iterator[None]:
    """Without graphs that torch keeps for derivatives unless asked, and on one thread, as in tasks.

    The last digits of products depend on the number of threads, and small products lose more by
    waiting for other threads than they gain.
    """
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)
