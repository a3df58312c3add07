"""Gaussian stability: how deviations of a layer's length grow through a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.graph import propagate
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    Bias,
    Gain,
    Input,
    LayerNorm,
    Operation,
    Product,
    SharedBias,
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.state import State, ratio
from tpcalc.shown import Shown

EDGE = 1e-9
RESET = 0.01  # of a deviation: what a normalisation leaves of it does not build up


@dataclass(frozen=True, slots=True)
class Stability(Shown):
    """How a relative deviation of the lengths of the inputs grows.

    Args:
        factors: For every layer, its relative deviation over that of the inputs.
        worst: The largest growth from any layer to any later one.
        label: ``"stable"``: no activation makes deviations larger that come to it from layers
            before and go on behind it, and are not reset by layer norm; ``"edge"``: some keep them;
            ``"unstable"``: they grow.
    """

    factors: tuple[Bounded, ...]
    worst: float
    label: str

    def reach(self, noise: float) -> int | None:
        """The first layer where noise of the inputs is as large as the lengths; None: nowhere."""
        return next((k for k, f in enumerate(self.factors) if noise * abs(f.value) >= 1), None)

    def excess(self, width: int) -> float:
        """The largest relative deviation of a length that a width leads to, by its order."""
        return self.worst / sqrt(width)


@of_activation
def stability_number(tau: Expr, q: Bounded | float) -> Bounded:
    """The number s = lambda L'(lambda) / L(lambda), L^2 = E tau^2 at the variance q = lambda^2.

    Below 1 an activation makes relative deviations of lengths smaller, above 1 larger.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance.

    Returns:
        s, with a bound on its error.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6 and Theorem 6.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> round(stability_number(lookup("tanh").fn.expr, Bounded(1.0)).value, 6)
        0.461071
    """
    q = bounded(q)
    weighted = average(tau**2 * Var(0) ** 2, q)
    plain = Kernels(tau).second(q)
    return (ratio(weighted, q * plain) - 1) * 0.5


def stability(
    network: Layers, states: tuple[State, ...] | None = None, inputs: Input | None = None
) -> Stability:
    """The growth of relative deviations of lengths through a graph.

    Args:
        network: The network.
        states: Their states, where they are known.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        A factor for each layer, the worst of them, and a word for the network.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> found = stability(mlp(5, Design("square", 1 / 3)))
        >>> round(found.factors[-1].value, 9), found.label, found.reach(0.1)
        (32.0, 'unstable', 8)
    """
    graph = layers(network, inputs)
    known = propagate(graph) if states is None else states
    curved = any(_reads_means(o, [known[p] for p in read]) for o, read in graph.pairs)
    lengths: list[Bounded] = []
    means: list[Bounded] = []
    count = len(graph.layers)
    grown: dict[int, Array] = {}  # of layer k, by a deviation of one layer each, while it is read
    meant: dict[int, Array] = {}
    ends = {p: index for index, layer in enumerate(graph.layers) for p in layer.parents}
    tops: list[float] = []
    reached = np.zeros(count)  # the most that a deviation of a layer is, where numbers are read
    numbers: list[tuple[int, int, Bounded]] = []  # activation, what it reads, how much it adds
    for index, layer in enumerate(graph.layers):
        operation, parents = layer.operation, [known[p] for p in layer.parents]
        length, mean = Bounded(1.0 if isinstance(operation, Input) else 0.0), Bounded(0.0)
        row, other = np.zeros(count), np.zeros(count)
        row[index] = 1.0
        parts = _parts(operation, parents, known[index], curved)
        for part, p in zip(parts, layer.parents, strict=True):
            length = length + part.length * lengths[p] + part.length_by_mean * means[p]
            mean = mean + part.mean_by_length * lengths[p] + part.mean * means[p]
            row += part.length.value * grown[p] + part.length_by_mean.value * meant[p]
            other += part.mean_by_length.value * grown[p] + part.mean.value * meant[p]
            if isinstance(operation, Activation):
                numbers.append((index, p, part.length))
        if isinstance(operation, Product):
            before = np.abs([grown[p] for p in layer.parents]).max(axis=0)
            numbers.append((index, layer.parents[0], _growth(row, before)))
        if isinstance(operation, LayerNorm):  # its length is given: nothing starts there
            row[index] = 0.0
        grown[index], meant[index], size = row, other, np.abs(row)
        tops.append(float(size.max()))
        if index + 1 == count:
            reached = np.maximum(reached, size)
        elif isinstance(operation, Activation | Product):
            reached[:index] = np.maximum(reached, size)[:index]
        for p in {p for p in layer.parents if ends[p] == index}:
            del grown[p], meant[p]
        lengths.append(length)
        means.append(mean)
    chained = [s for index, read, s in numbers if min(tops[read], reached[index]) > RESET]
    return Stability(tuple(lengths), max(1.0, *tops), _label(chained))


def _growth(row: Array, before: Array) -> Bounded:
    """How many times as large a deviation is behind a product as before it, at the most."""
    there = before > 0
    return Bounded(float((np.abs(row)[there] / before[there]).max(initial=0.0)))


def _label(numbers: list[Bounded]) -> str:
    if any(abs(s.value) - s.error > 1 + EDGE for s in numbers):
        return "unstable"
    return "stable" if all(abs(s.value) + s.error < 1 - EDGE for s in numbers) else "edge"


class _Part(NamedTuple):
    """Relative deviations of second moments, and deviations of means, by those of a parent."""

    length: Bounded
    length_by_mean: Bounded = Bounded(0.0)
    mean_by_length: Bounded = Bounded(0.0)
    mean: Bounded = Bounded(0.0)


def _reads_means(operation: Operation, parents: list[State]) -> bool:
    """Whether the length of a layer depends on means of what it reads."""
    with_mean = sum(part.mean.value != 0 for part in parents)
    if isinstance(operation, LayerNorm):
        return operation.centred and operation.epsilon != 0 and with_mean > 0
    return isinstance(operation, Addition) and with_mean > 1


def _parts(operation: Operation, parents: list[State], own: State, curved: bool) -> Iterator[_Part]:
    if isinstance(operation, Addition):
        terms = [bounded(w) * part.mean for w, part in zip(operation.weights, parents, strict=True)]
        total, size = sum(terms, Bounded(0.0)), own.square.inverse()
        for weight, part, term in zip(operation.weights, parents, terms, strict=True):
            w = bounded(weight)
            by_mean = 2 * w * (total - term) * size if curved else Bounded(0.0)
            yield _Part(w * w * part.square * size, by_mean, mean=w)
        return
    if isinstance(operation, Product):
        one, other = parents
        yield _Part(Bounded(1.0), mean=other.mean)
        yield _Part(Bounded(1.0), mean=one.mean)
        return
    for read in parents:
        if isinstance(operation, Activation):
            tau, q = operation.tau, read.square
            turn = _mean_growth(tau, q) if curved else Bounded(0.0)
            yield _Part(stability_number(tau, q), mean_by_length=turn)
        elif isinstance(operation, Bias | SharedBias):
            yield _Part(ratio(read.square, own.square), mean=Bounded(1.0))
        elif isinstance(operation, Gain):
            yield _Part(Bounded(1.0), mean=operation.mean)
        elif isinstance(operation, LayerNorm):
            yield _normalised(operation, read)
        else:  # the lengths of a batch are only kept on average
            yield _Part(Bounded(1.0))


def _mean_growth(tau: Expr, q: Bounded) -> Bounded:
    """The derivative of E tau(s) by log q: (E tau(s) s^2 / q - E tau(s)) / 2."""
    return (average(tau * Var(0) ** 2, q) * q.inverse() - Kernels(tau).mean(q)) * 0.5


def _normalised(operation: LayerNorm, read: State) -> _Part:
    """Layer norm takes the length out, but for epsilon."""
    spread = operation.spread(read)
    under = spread + bounded(operation.epsilon)
    found = _Part(Bounded(0.0))
    if not operation.centred and read.mean.value != 0:
        mean = under.inverse().root()
        found = found._replace(
            mean_by_length=read.mean * read.square * mean * under.inverse() * -0.5, mean=mean
        )
    if not operation.epsilon:
        return found
    left = ratio(bounded(operation.epsilon), under * spread)
    by_mean = -2 * left * read.mean if operation.centred else Bounded(0.0)
    return found._replace(length=left * read.square, length_by_mean=by_mean)
