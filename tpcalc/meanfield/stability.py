"""Gaussian stability: how deviations of a layer's length grow through a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.integrals.quadrature.layer import layer_moments
from tpcalc.meanfield.graph import Layer
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
from tpcalc.results import Method
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
    known = layer_moments(tau, q.value)
    if known is not None and known.square.by_variance == 0:  # waves so short that phases are lost
        return Bounded(0.0, known.square.error / known.square.value, Method.QUADRATURE)
    weighted, plain = Kernels(Var(0) * tau).second(q), Kernels(tau).second(q)
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
    walk = _Walk(len(graph.layers))
    ends = {p: index for index, layer in enumerate(graph.layers) for p in layer.parents}
    read = {p for own in graph.layers if own.operation.bends for p in own.parents} | {graph.last}
    for index, layer in enumerate(graph.layers):
        parts = _PARTS(layer.operation, known[index], curved, *(known[p] for p in layer.parents))
        walk.step(index, layer, list(parts), index in read)
        for p in {p for p in layer.parents if ends[p] == index}:
            del walk.rows[p]
    doubt = EDGE + sum(s.error for s in walk.numbers if s)
    label, usual = (_SIGNS[int(each > 1 - doubt) + int(each > 1 + doubt)] for each in walk.along)
    factors, numbers = tuple(walk.lengths), tuple(walk.numbers)
    worst, along = max(1.0, *walk.tops), float(walk.along[0])
    return Stability(factors, worst, label, numbers, along, _ARCHITECTURES[usual])


_SIGNS = ("stable", "edge", "unstable")
_ARCHITECTURES = {"stable": "", "edge": "GEA", "unstable": "GUA"}


class _Walk:
    """Deviations of the layers so far, by one of the inputs and by one of each layer."""

    def __init__(self, count: int) -> None:
        self.lengths: list[Bounded] = []
        self.means: list[Bounded] = []
        self.numbers: list[Bounded | None] = []
        self.tops: list[float] = []
        self.along = np.zeros(2)
        # Of layers that are read again, by one of layer k each: of the length, of the mean, and
        # along paths with biases and without, through an activation and in any way.
        self.rows: dict[int, Array] = {}
        self.count = count

    def step(self, index: int, layer: Layer, parts: list[_Part], ends: bool) -> None:
        """One layer more; at some of them paths end."""
        length, mean = ZERO if parts else ONE, ZERO
        rows = np.zeros((6, self.count))
        for part, p in zip(parts, layer.parents, strict=True):
            length = length + part.length * self.lengths[p] + part.length_by_mean * self.means[p]
            mean = mean + part.mean_by_length * self.lengths[p] + part.mean * self.means[p]
            own, kept = self.rows[p], (part.path or part.length).value
            rows[0] += part.length.value * own[0] + part.length_by_mean.value * own[1]
            rows[1] += part.mean_by_length.value * own[0] + part.mean.value * own[1]
            rows[2:4] += part.length.value * own[2:4]
            rows[4:] += kept * own[4:]
        rows[0, index] = 1.0
        number = None
        if layer.operation.bends:
            rows[2::2] = rows[3::2]
            before = [self.rows[p][0] for p in layer.parents]
            number = parts[0].length if len(before) == 1 else _growth(rows[0], before)
        if ends:
            through = np.where(rows[2::2] != 0, np.abs(rows[3::2]), 0.0)
            self.along = np.maximum(self.along, through.max(axis=1))
        if layer.operation.normalises == "coordinates":  # its length is given: nothing starts there
            rows[0, index] = 0.0
        rows[3::2, index] = rows[0, index]
        self.rows[index] = rows
        self.tops.append(float(np.abs(rows[0]).max()))
        self.numbers.append(number)
        self.lengths.append(length)
        self.means.append(mean)


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
    return (Kernels(Var(0) ** 2 * tau).mean(q) * q.inverse() - Kernels(tau).mean(q)) * 0.5


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
