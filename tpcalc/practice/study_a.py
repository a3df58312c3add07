"""Networks of study A at a finite width, with orthogonal starts, trained on images.

The first coordinates of their last layer are the outputs, so that all layers are equally wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.draws import Network
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.notation.macro_layers import MacroLayers, drawn_macro_layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.nonlinearity.tensors.gradients import parameter_shift
from tpcalc.practice.rewrites import orthogonal, rewritten
from tpcalc.practice.training import rate_grid
from tpcalc.progress import Progress
from tpcalc.results.images import Images
from tpcalc.results.scales import StudyPoint

Tensor = Any
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


def words_of(design: MacroLayers) -> str:
    """A design in a few words, with what is not usual of it."""
    parts = [f"{design.count} x {design.activation}"]
    parts += [f"d = {design.dilate:g}"] * (design.dilate != 1)
    parts += [f"h = {design.shift:g}"] * (design.shift != 0)
    parts += [f"w = {design.scale:g}"] * (design.scale != 1)
    parts += ["debiased"] * design.debias + ["biases"] * design.bias
    parts += [f"{design.norm} norm"] * (design.norm != "none")
    parts += [f"skip {float(design.skip):g} from the {design.start}"] * bool(design.skip)
    return ", ".join(parts)


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
    rates: int = 4
    factor: float = 8.0
    smallest: float = 1e-3
    epochs: int = 6
    batch: int = 100


@dataclass(frozen=True)
class Digits:
    """Images as tensors: to train on, to choose rates by, to test on."""

    train: tuple[Tensor, Tensor]
    chosen: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    classes: int

    @staticmethod
    def of(images: Images) -> Digits:
        """A fifth of the training images chooses rates; classes may stand in an order."""
        torch = load_torch()

        def pair(x: Array, y: Array) -> tuple[Tensor, Tensor]:
            return torch.as_tensor(np.array(x, float)), torch.as_tensor(np.array(y, np.int64))

        order = Network(0, 1).stream(STREAM, "chosen").permutation(len(images.train))
        ends = order[len(order) // 5 :], order[: len(order) // 5]
        parts = ((images.train[own], images.train_labels[own]) for own in ends)
        train, chosen = (pair(*part) for part in parts)
        return Digits(train, chosen, pair(images.test, images.test_labels), images.classes)


def study_point(
    shared: tuple[StudyPlan, Images], seed: int, progress: Progress
) -> Iterator[StudyPoint]:
    """A random network of study A, trained with each of the rates; the best one is told.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.
    """
    plan, images = shared
    design, data = drawn_macro_layers(seed), Digits.of(images)
    states = propagate(design.network().read)
    width = study_width(design, images.dimension, images.classes, plan.parameters)

    lines = rewritten(design.network(), orthogonal)
    net = Trainee(network_of(lines, width, images.dimension, seed), data)
    with load_torch().enable_grad():
        best = inf, nan, nan, nan, nan
        rates = _rates(net, plan)
        for k, rate in enumerate(rates):
            best = min(best, _run(net, plan, rate, seed), key=lambda own: own[0])
            progress((k + 1) / len(rates), f"rate {rate:.3g}")
    found = coefficient(states[0], states[-1]), states[-1].shared.estimate()
    yield StudyPoint(seed, words_of(design), width, *found, *best[1:])


class Trainee:
    """A drawn network whose first coordinates are its outputs, over their LSCALE at the start."""

    def __init__(self, drawn: DrawnNetwork, data: Digits) -> None:
        self._drawn, self.data = drawn, data
        self.parameters = [own.requires_grad_() for own in drawn.parameters.values()]
        self.start = [own.detach().clone() for own in self.parameters]
        self._scale = 1.0
        with load_torch().no_grad():
            self._scale = float((self(data.train[0]) ** 2).mean().sqrt())

    def __call__(self, x: Tensor) -> Tensor:
        return self._drawn(x)[:, : self.data.classes] / self._scale

    def gradients(self, x: Tensor, y: Tensor) -> tuple[float, list[Tensor]]:
        """The loss of a batch, and its gradients."""
        torch = load_torch()
        loss = torch.nn.functional.cross_entropy(self(x), y)
        return float(loss.detach()), list(torch.autograd.grad(loss, self.parameters))

    def move(self, steps: Sequence[Tensor], rate: float) -> None:
        """Take a step, in place."""
        with load_torch().no_grad():
            for own, step in zip(self.parameters, steps, strict=True):
                own -= rate * step

    def error(self, part: tuple[Tensor, Tensor]) -> float:
        """The share of images that it names wrongly."""
        x, y = part
        with load_torch().no_grad():
            return float((self(x).argmax(1) != y).double().mean())


def _rates(net: Trainee, plan: StudyPlan) -> tuple[float, ...]:
    """The rates that are tried; none where gradients are no numbers."""
    matrices = [k for k, own in enumerate(net.start) if own.ndim > 1]
    updates = []
    for x, y in _batches(net.data, plan, 0, DATA):
        found = net.gradients(x, y)[1]
        updates.append([found[k] for k in matrices])
    try:
        return rate_grid(
            [net.start[k] for k in matrices],
            updates,
            count=plan.rates,
            factor=plan.factor,
            smallest=plan.smallest,
        )
    except UsageError:  # of 0 or infinite length
        return ()


def _batches(
    data: Digits, plan: StudyPlan, epoch: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    x, y = data.train
    order = Network(seed, epoch + 1).stream(STREAM, "batches").permutation(len(x))
    for start in range(0, len(x) - len(x) % plan.batch or len(x), plan.batch):
        rows = order[start : start + plan.batch]
        yield x[rows], y[rows]


def _run(
    net: Trainee, plan: StudyPlan, rate: float, seed: int
) -> tuple[float, float, float, float, float]:
    """The error that chooses the rate; the rate, errors in training and test, PARMSHIFT."""
    data = net.data
    net.move([own - then for own, then in zip(net.parameters, net.start, strict=True)], 1)
    for epoch in range(plan.epochs):
        for x, y in _batches(data, plan, epoch, seed):
            loss, found = net.gradients(x, y)
            if not isfinite(loss):
                return inf, rate, nan, nan, nan
            net.move(found, rate)
    train, test = net.error(data.train), net.error(data.test)
    return net.error(data.chosen), rate, train, test, parameter_shift(net.parameters, net.start)
