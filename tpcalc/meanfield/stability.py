"""Gaussian stability: how deviations of a layer's length grow through a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    Bias,
    Gain,
    Input,
    LayerNorm,
    Product,
    SharedBias,
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import ONE, ZERO, means, propagate, spread, total
from tpcalc.meanfield.state import State, ratio
from tpcalc.program.base import Table
from tpcalc.shown import Shown

EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Stability(Shown):
    """How a relative deviation of the lengths of the inputs grows.

    Args:
        factors: For every layer, its relative deviation over that of the inputs.
        worst: The largest growth from any layer to any later one.
        label: ``"stable"``: deviations become smaller along all paths that lead through
            activations to what a later one reads, or to the output; ``"edge"``: along some they
            stay; ``"unstable"``: they grow. Layer norm takes them out, batch norm does not.
        numbers: For every layer the number s of its activation, by which it multiplies deviations
            by itself; None where there is none.
        along: The largest product along such paths, of s and of shares in sums with biases and
            other branches; 0 where layer norm cuts all of them.
        architecture: ``"GUA"``, a Gaussian unstable architecture: with biases left aside that
            product is above 1; ``"GEA"``: it is 1, at the edge; empty: below.
    """

    factors: tuple[Bounded, ...]
    worst: float
    label: str
    numbers: tuple[Bounded | None, ...]
    along: float
    architecture: str

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
    curved = any(
        _READS_MEANS(operation, sum(known[p].mean.value != 0 for p in read))
        for operation, read in graph.pairs
    )
    lengths: list[Bounded] = []
    means: list[Bounded] = []
    count = len(graph.layers)
    grown: dict[int, Array] = {}  # of layer k, by a deviation of one layer each, while it is read
    meant: dict[int, Array] = {}
    # Along paths, with biases and without: by the first activation, and whatever comes there.
    followed: dict[int, Array] = {}
    ends = {p: index for index, layer in enumerate(graph.layers) for p in layer.parents}
    read = {p for layer in graph.layers if layer.operation.bends for p in layer.parents}
    tops: list[float] = []
    numbers: list[Bounded | None] = []
    along = np.zeros(2)
    for index, layer in enumerate(graph.layers):
        operation, parents = layer.operation, [known[p] for p in layer.parents]
        length, mean = ZERO if parents else ONE, ZERO
        row, other, paths = np.zeros(count), np.zeros(count), np.zeros((2, 2, count))
        row[index] = 1.0
        parts = list(_PARTS(operation, known[index], curved, *parents))
        for part, p in zip(parts, layer.parents, strict=True):
            length = length + part.length * lengths[p] + part.length_by_mean * means[p]
            mean = mean + part.mean_by_length * lengths[p] + part.mean * means[p]
            row += part.length.value * grown[p] + part.length_by_mean.value * meant[p]
            other += part.mean_by_length.value * grown[p] + part.mean.value * meant[p]
            kept = part.length.value, (part.path or part.length).value
            paths += np.reshape(kept, (2, 1, 1)) * followed[p]
        if operation.bends:
            paths[:, 0] = paths[:, 1]
            before = [grown[p] for p in layer.parents]
            numbers.append(parts[0].length if len(before) == 1 else _growth(row, before))
        else:
            numbers.append(None)
        if index in read or index + 1 == count:
            through = np.where(paths[:, 0] != 0, np.abs(paths[:, 1]), 0.0)
            along = np.maximum(along, through.max(axis=1))
        if operation.normalises == "coordinates":  # its length is given: nothing starts there
            row[index] = 0.0
        paths[:, 1, index] = row[index]
        grown[index], meant[index], followed[index] = row, other, paths
        tops.append(float(np.abs(row).max()))
        for p in {p for p in layer.parents if ends[p] == index}:
            del grown[p], meant[p], followed[p]
        lengths.append(length)
        means.append(mean)
    doubt = EDGE + sum(s.error for s in numbers if s)
    label, usual = (_SIGNS[int(each > 1 - doubt) + int(each > 1 + doubt)] for each in along)
    known_as = _ARCHITECTURES[usual]
    return Stability(
        tuple(lengths), max(1.0, *tops), label, tuple(numbers), float(along[0]), known_as
    )


_SIGNS = ("stable", "edge", "unstable")
_ARCHITECTURES = {"stable": "", "edge": "GEA", "unstable": "GUA"}


def _growth(row: Array, before: list[Array]) -> Bounded:
    """How many times as large a deviation is behind a product as before it, at the most."""
    size = np.abs(before).max(axis=0)
    there = size > 0
    return Bounded(float((np.abs(row)[there] / size[there]).max(initial=0.0)))


class _Part(NamedTuple):
    """Relative deviations of second moments, and deviations of means, by those of a parent."""

    length: Bounded
    length_by_mean: Bounded = ZERO
    mean_by_length: Bounded = ZERO
    mean: Bounded = ZERO
    path: Bounded | None = None  # what a path counts in place of the length: biases count 1


_READS_MEANS: Table[bool] = Table(
    {
        LayerNorm: lambda operation, count: operation.centred and operation.epsilon and count > 0,
        Addition: lambda operation, count: count > 1,
    },
    lambda operation, count: False,
)
"""Whether the length of a layer depends on means, of so many that it reads."""


def _added(operation: Addition, own: State, curved: bool, *parents: State) -> Iterator[_Part]:
    terms = means(operation, parents)
    whole, size = total(terms), own.square.inverse()
    for weight, part, term in zip(operation.weights, parents, terms, strict=True):
        w = bounded(weight)
        by_mean = 2 * w * (whole - term) * size if curved else ZERO
        yield _Part(w * w * part.square * size, by_mean, mean=w)


def _activated(operation: Activation, own: State, curved: bool, read: State) -> list[_Part]:
    turn = mean_growth(operation.tau, read.square) if curved else ZERO
    return [_Part(stability_number(operation.tau, read.square), mean_by_length=turn)]


def mean_growth(tau: Expr, q: Bounded) -> Bounded:
    """The derivative of E tau(s) by log q: (E tau(s) s^2 / q - E tau(s)) / 2."""
    return (average(tau * Var(0) ** 2, q) * q.inverse() - Kernels(tau).mean(q)) * 0.5


def _normalised(operation: LayerNorm, own: State, curved: bool, read: State) -> list[_Part]:
    """Layer norm takes the length out, but for epsilon."""
    size = spread(operation, read)
    under = size + bounded(operation.epsilon)
    found = _Part(ZERO)
    if not operation.centred and read.mean.value != 0:
        mean = under.inverse().root()
        found = found._replace(
            mean_by_length=read.mean * read.square * mean * under.inverse() * -0.5, mean=mean
        )
    if not operation.epsilon:
        return [found]
    left = ratio(bounded(operation.epsilon), under * size)
    by_mean = -2 * left * read.mean if operation.centred else ZERO
    return [found._replace(length=left * read.square, length_by_mean=by_mean)]


def _biased(operation: Bias | SharedBias, own: State, curved: bool, read: State) -> list[_Part]:
    return [_Part(ratio(read.square, own.square), mean=ONE, path=ONE)]


_PARTS: Table[Iterable[_Part]] = Table(
    {
        Activation: _activated,
        Addition: _added,
        Product: lambda operation, own, curved, one, other: [
            _Part(ONE, mean=other.mean),
            _Part(ONE, mean=one.mean),
        ],
        Bias: _biased,
        SharedBias: _biased,
        Gain: lambda operation, own, curved, read: [_Part(ONE, mean=operation.mean)],
        LayerNorm: _normalised,
    },
    lambda operation, own, curved, *read: [_Part(ONE) for _ in read],  # kept, of a batch on average
)
"""How a layer reads deviations, a part for each layer that it reads."""
