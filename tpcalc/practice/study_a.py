"""Networks of study A at a finite width, with orthogonal starts, trained on images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.draws import Network, orthogonal
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.functions import Fn
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.notation.macro_layers import MacroLayers, drawn_macro_layers
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    LayerNorm,
)
from tpcalc.meanfield.recursion import propagate
from tpcalc.nonlinearity.tensors.gradients import parameter_shift
from tpcalc.practice.tables import words_of
from tpcalc.practice.training import rate_grid
from tpcalc.program.base import Table
from tpcalc.program.family import Family
from tpcalc.progress import Progress
from tpcalc.results.images import Images
from tpcalc.results.scales import StudyPoint

Tensor = Any
Rule = Callable[[Sequence[Tensor]], Tensor]
MILLION = 10**6
STREAM, DATA = "study", 0


def study_width(design: MacroLayers, inputs: int, outputs: int, parameters: int = MILLION) -> int:
    """The width at which the weight matrices of a network of study A have so many entries.

    Args:
        design: The network.
        inputs: Features of an input.
        outputs: Outputs, the width of the last macro-layer.
        parameters: Entries of all matrices.

    Returns:
        The width of all other layers.

    Raises:
        UsageError: Numbers that are none, or a single layer.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1.

    Example:
        >>> [study_width(MacroLayers(m, "relu"), 810, 10) for m in (3, 25, 49)]
        [671, 191, 137]
    """
    inner = checks.whole(design.count, "count", least=2) - 2
    sides = checks.whole(inputs, "inputs", least=1) + checks.whole(outputs, "outputs", least=1)
    whole = checks.whole(parameters, "parameters", least=1)
    # (M - 2) w^2 + (inputs + outputs) w = parameters
    return max(1, round(2 * whole / (sides + sqrt(sides**2 + 4 * inner * whole))))


class StudyNetwork:
    """Layers as tensors that are trained: every dense layer with a bias, which starts at 0.

    From the last dense layer on layers have as many coordinates as there are outputs; what a sum
    adds to them comes through a matrix of its own, which stays. Batch norm is over the batch.
    """

    def __init__(
        self, graph: LayerGraph, inputs: int, outputs: int, width: int, seed: int = 0
    ) -> None:
        self._network, self._torch = Network(seed, width), load_torch()
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []
        self._graph, self._rules = graph, list[Rule]()
        last = max(k for k, (operation, _) in enumerate(graph.pairs) if operation.matrix)
        self._sizes = [inputs]
        for k, (operation, parents) in enumerate(graph.pairs[1:], 1):
            before = self._sizes[parents[-1]]
            size = outputs if k == last else width if operation.matrix else before
            self._sizes.append(size)
            self._rules.append(_RULES(operation, self, parents))

    @property
    def parameters(self) -> list[Tensor]:
        """All that is trained."""
        return [*self.weights, *self.biases]

    def matrix(self, rows: int, name: str) -> Tensor:
        """An orthogonal matrix whose products keep sizes, into the layer that is being made."""
        family = Family(name, ("n", "m"), law="orthogonal")
        entries = orthogonal(family, self._network, rows, self._sizes[-1]) / sqrt(rows)
        return self._torch.as_tensor(np.ascontiguousarray(entries))

    def __call__(self, x: Tensor) -> Tensor:
        values = [x]
        for rule in self._rules:
            values.append(rule(values))
        return values[-1]

    def dense(self, operation: Dense, parents: Sequence[int]) -> Rule:
        """Weights and a bias of 0."""
        own = self.matrix(self._sizes[parents[0]], f"W{len(self.weights)}")
        weights = (own * float(operation.variance) ** 0.5).requires_grad_()
        biases = self._torch.zeros(self._sizes[-1], dtype=own.dtype, requires_grad=True)
        self.weights.append(weights)
        self.biases.append(biases)
        return lambda values: values[parents[0]] @ weights + biases

    def bias(self, operation: Bias, parents: Sequence[int]) -> Rule:
        """The start of the bias of the layer before."""
        stream = self._network.stream(STREAM, f"b{len(self.biases)}")
        entries = stream.standard_normal(self._sizes[-1]) * float(operation.variance) ** 0.5
        with self._torch.no_grad():
            self.biases[-1].copy_(self._torch.as_tensor(entries))
        return lambda values: values[parents[0]]

    def addition(self, operation: Addition, parents: Sequence[int]) -> Rule:
        """A weighted sum; what has another size goes through a matrix that is not trained."""
        maps: list[tuple[int, float, Tensor]] = []
        for parent, weight in zip(parents, operation.weights, strict=True):
            size, own = self._sizes[parent], None
            if size != self._sizes[-1]:
                own = self.matrix(size, f"S{parent}")
            maps.append((parent, float(weight), own))

        def rule(values: Sequence[Tensor]) -> Tensor:
            parts = (w * (values[k] if own is None else values[k] @ own) for k, w, own in maps)
            return sum(parts)

        return rule


def _normed(turned: bool) -> Callable[..., Rule]:
    """Layer norm; of the matrix the other way round it is batch norm."""

    def made(operation: LayerNorm | BatchNorm, net: StudyNetwork, parents: Sequence[int]) -> Rule:
        norm, eps = load_torch().nn.functional.layer_norm, float(operation.epsilon)

        def rule(values: Sequence[Tensor]) -> Tensor:
            own = values[parents[0]]
            own = own.T if turned else own
            found = norm(own, own.shape[1:], eps=eps)
            return found.T if turned else found

        return rule

    return made


def _activated(operation: Activation, net: StudyNetwork, parents: Sequence[int]) -> Rule:
    fn = Fn(operation.expr, 1)
    return lambda values: coordinatewise(fn, values[parents[0]])


_RULES: Table[Rule] = Table(
    {
        Dense: lambda operation, net, parents: net.dense(operation, parents),
        Bias: lambda operation, net, parents: net.bias(operation, parents),
        Addition: lambda operation, net, parents: net.addition(operation, parents),
        LayerNorm: _normed(False),
        BatchNorm: _normed(True),
        Activation: _activated,
    }
)


@dataclass(frozen=True)
class StudyPlan:
    """How networks of study A are trained.

    Args:
        parameters: Entries of the matrices of a network.
        rates: How many learning rates are tried.
        factor: The quotient of two neighbours.
        smallest: The relative length of a step with the first of them.
        epochs: Passes over the training images with each.
        batch: Images of a step.
    """

    parameters: int = 20_000
    rates: int = 5
    factor: float = 5.0
    smallest: float = 1e-3
    epochs: int = 8
    batch: int = 100


@dataclass(frozen=True)
class Digits:
    """Images as tensors: to train on, to choose rates by, to test on."""

    train: tuple[Tensor, Tensor]
    chosen: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]

    @staticmethod
    def of(images: Images) -> Digits:
        """A fifth of the training images chooses rates; classes may stand in an order."""
        torch = load_torch()

        def pair(x: Array, y: Array) -> tuple[Tensor, Tensor]:
            return torch.as_tensor(np.array(x, float)), torch.as_tensor(np.array(y, np.int64))

        order = Network(0, 1).stream(STREAM, "chosen").permutation(len(images.train))
        ends = order[len(order) // 5 :], order[: len(order) // 5]
        parts = ((images.train[at], images.train_labels[at]) for at in ends)
        return Digits(*(pair(*part) for part in parts), pair(images.test, images.test_labels))


def study_point(
    shared: tuple[StudyPlan, Images], seed: int, progress: Progress
) -> Iterator[StudyPoint]:
    """A random network of study A, trained with each of the rates; the best one is told.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.
    """
    plan, images = shared
    design, data = drawn_macro_layers(seed), Digits.of(images)
    graph = design.network().read
    states = propagate(graph)
    width = study_width(design, images.dimension, images.classes, plan.parameters)

    def fresh() -> StudyNetwork:
        return StudyNetwork(graph, images.dimension, images.classes, width, seed)

    with load_torch().enable_grad():
        rates = _rates(fresh(), data, plan)
        best = inf, nan, nan, nan, nan
        for k, rate in enumerate(rates):
            best = min(best, _run(fresh(), data, plan, rate, seed), key=lambda own: own[0])
            progress((k + 1) / len(rates), f"rate {rate:.3g}")
    found = coefficient(states[0], states[-1]), states[-1].shared.estimate()
    yield StudyPoint(seed, words_of(design), width, *found, *best[1:])


def _rates(net: StudyNetwork, data: Digits, plan: StudyPlan) -> tuple[float, ...]:
    """The rates that are tried; none where nothing has a gradient that is a number."""
    scale, loss = _scale(net, data), load_torch().nn.functional.cross_entropy
    updates = [
        load_torch().autograd.grad(loss(net(x) / scale, y), net.weights)
        for x, y in _batches(data, plan, 0, DATA)
    ]
    try:
        return rate_grid(
            net.weights, updates, count=plan.rates, factor=plan.factor, smallest=plan.smallest
        )
    except UsageError:  # of 0 or infinite length
        return ()


def _scale(net: StudyNetwork, data: Digits) -> float:
    """LSCALE of the outputs at the start, by which the loss divides them."""
    with load_torch().no_grad():
        return float((net(data.train[0]) ** 2).mean().sqrt())


def _batches(
    data: Digits, plan: StudyPlan, epoch: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    x, y = data.train
    order = Network(seed, epoch + 1).stream(STREAM, "batches").permutation(len(x))
    for start in range(0, len(x) - len(x) % plan.batch or len(x), plan.batch):
        rows = order[start : start + plan.batch]
        yield x[rows], y[rows]


def _run(
    net: StudyNetwork, data: Digits, plan: StudyPlan, rate: float, seed: int
) -> tuple[float, float, float, float, float]:
    """The error that chooses the rate; the rate, errors in training and test, PARMSHIFT."""
    torch, start = load_torch(), [own.detach().clone() for own in net.parameters]
    scale = _scale(net, data)
    for epoch in range(plan.epochs):
        for x, y in _batches(data, plan, epoch, seed):
            loss = torch.nn.functional.cross_entropy(net(x) / scale, y)
            if not bool(torch.isfinite(loss)):
                return inf, rate, nan, nan, nan
            gradients = torch.autograd.grad(loss, net.parameters)
            with torch.no_grad():
                for own, gradient in zip(net.parameters, gradients, strict=True):
                    own -= rate * gradient
    with torch.no_grad():
        errors = [
            float((net(x).argmax(1) != y).double().mean())
            for x, y in (data.chosen, data.train, data.test)
        ]
    return errors[0], rate, *errors[1:], parameter_shift(net.parameters, start)
