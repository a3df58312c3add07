"""Any number of inputs: the second moments of all pairs through a layer graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import StudyError
from tpcalc.evaluate.limit import limit
from tpcalc.integrals.activation_moments import means
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.meanfield.layers.parts import NotFollowed
from tpcalc.meanfield.maps.gram import applied, checked_gram
from tpcalc.meanfield.nonlinearity import log_square
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Gain,
    Input,
    LayerNorm,
    Operation,
    Product,
    SharedBias,
    batches,
)
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import cross, propagate, squares, total
from tpcalc.meanfield.state import State, exponential, ratio
from tpcalc.program.base import Table
from tpcalc.shown import Shown

ROUNDING = 8 * EPS
Pair = tuple[Bounded, Bounded, State]  # a co-mean, its derivative in that of the inputs, the layer


@dataclass(frozen=True)
class Covariance(Shown):
    """Second moments of a layer at N inputs.

    Args:
        values: The averages over coordinates of x_a x_b, shape (N, N).
        errors: Bounds on their errors, to first order in those of the layers before; standard
            errors where the program of the network was sampled.
        means: The means of coordinates, shape (N,).
    """

    values: Array
    errors: Array
    means: Array

    @property
    def rank(self) -> int:
        """How many eigenvalues of the values are above 0 beyond errors and rounding."""
        found = np.linalg.eigvalsh(self.values)
        lost = np.linalg.norm(self.errors) + ROUNDING * len(found) * abs(found[-1])
        return int((found > lost).sum())


def covariance(network: Layers, gram: Array, seed: int = 0) -> Covariance:
    r"""The second moments of the last layer at any number of inputs.

    For a readout it is the covariance of the Gaussian process that a random network is. Batch norm
    is over a large batch whose inputs have the moments of the network's ``Input``, its co-mean with
    the given ones too. Where the recursion does not hold, the program of the network is evaluated.

    Args:
        network: The network; the moments of its ``Input`` are those of a batch, if there is one.
        gram: Second moments of the inputs, the averages of x_a x_b over coordinates, shape (N, N).
        seed: For programs that are sampled.

    Returns:
        The moments and bounds on their errors, shape (N, N).

    Raises:
        StudyError: A matrix of second moments that is none, with those of a batch or without.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1.4 (Corollary 2).

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input(1, 0)\na = dense(x, 2)\nb = relu(a)")
        >>> found = covariance(net, [[1.0, 0.5], [0.5, 2.0]])
        >>> float(found.values[1, 1]), round(float(found.values[0, 1]), 9)
        (2.0, 0.728597763)
    """
    start, batched = checked_gram(gram, "covariance"), False
    if not start.diagonal().all():
        raise StudyError("an input has the length 0.", where="covariance", hint="Leave it out.")
    try:
        graph = layers(network)
    except NotFollowed:
        return _by_program(network, start, seed)
    if batches(operation for operation, _ in graph.pairs):
        start, batched = _with_batch(start, cast("Input", graph.layers[0].operation)), True
    found = [Covariance(start, np.zeros_like(start), np.zeros(len(start)))]
    for index in range(1, len(graph.layers)):
        with graph.at(index) as layer:
            found.append(_NEXT(layer.operation, *(found[p] for p in layer.parents)))
    last, end = found[-1], len(start) - 2 if batched else len(start)
    return Covariance(last.values[:end, :end], last.errors[:end, :end], last.means[:end])


def _with_batch(gram: Array, batch: Input) -> Array:
    """The moments with those of two inputs of a batch, the last rows."""
    q, c = float(batch.square), float(batch.comean)
    whole = np.full((len(gram) + 2,) * 2, c)
    whole[:-2, :-2], whole[-1, -1], whole[-2, -2] = gram, q, q
    return checked_gram(whole, "covariance: the inputs with two of their batch")


def _by_program(network: Layers, gram: Array, seed: int) -> Covariance:
    """The moments of the last vector of the program of the network, whose outputs come last."""
    program, size = program_of(network, gram), len(gram)
    rows, columns = np.tril_indices(size)
    names = list(program.output)[-(2 * size + len(rows)) :]
    starts = [a * (a + 5) // 2 for a in range(size)]  # before it m, all c and g of the others
    pairs = [names[starts[a] + 1 + b] for a, b in zip(rows, columns, strict=True)]
    firsts = [names[start] for start in starts]
    found = limit(program, seed=seed, outputs=[*firsts, *pairs])
    values, errors = np.zeros((2, size, size))
    values[rows, columns] = values[columns, rows] = [found[name].value for name in pairs]
    errors[rows, columns] = errors[columns, rows] = [found[name].stderr for name in pairs]
    return Covariance(values, errors, np.array([found[name].value for name in firsts]))


def _scaled(operation: Dense | Gain, own: Covariance) -> Covariance:
    s = operation.factor
    errors = s.value * own.errors + s.error * np.abs(own.values)
    return Covariance(s.value * own.values, errors, operation.mean.value * own.means)


def _shared_bias(operation: SharedBias, own: Covariance) -> Covariance:
    b = operation.added.value
    values = own.values + b * b + b * np.add.outer(own.means, own.means)
    return Covariance(values, own.errors + EPS * np.abs(values), own.means + b)


def _sum(operation: Addition, *parents: Covariance) -> Covariance:
    pairs = list(zip(map(float, operation.weights), parents, strict=True))
    means: Any = sum(w * part.means for w, part in pairs)
    # Second moments add, and so do products of the means of different layers.
    values: Any = sum(w * w * (part.values - np.outer(part.means, part.means)) for w, part in pairs)
    errors: Any = sum(w * w * part.errors for w, part in pairs)
    return Covariance(values + np.outer(means, means), errors, means)


def _product(operation: Product, one: Covariance, other: Covariance) -> Covariance:
    values = one.values * other.values
    errors = one.errors * np.abs(other.values) + (np.abs(one.values) + one.errors) * other.errors
    return Covariance(values, errors + EPS * np.abs(values), one.means * other.means)


def _normalised(operation: LayerNorm, own: Covariance) -> Covariance:
    taken = np.outer(own.means, own.means) if operation.centred else 0.0
    centred = own.values - taken
    spread = centred.diagonal() + float(operation.epsilon)
    scale = 1 / np.sqrt(np.outer(spread, spread))
    relative = own.errors.diagonal() / spread
    errors = own.errors * scale + np.abs(centred * scale) * np.add.outer(relative, relative) / 2
    means = 0.0 if operation.centred else 1.0 / np.sqrt(spread)
    return Covariance(centred * scale, errors, own.means * means)


def _activated(operation: Activation, own: Covariance) -> Covariance:
    found = applied(operation.tau, Bounded(own.values, own.errors))
    mean = means((operation.tau,), own.values.diagonal())
    return Covariance(found.value, found.error, mean.value)


def _batch_normed(operation: BatchNorm, own: Covariance) -> Covariance:
    """The mean of the batch, with which the last two inputs have the co-mean of each other."""
    whole, off = own.values, own.errors
    mean, lost = whole[:, -2].copy(), off[:, -2].copy()
    mean[-2], lost[-2] = mean[-1], lost[-1]
    under = whole[-1, -1] - mean[-1] + float(operation.epsilon)
    values = (whole - np.add.outer(mean, mean) + mean[-1]) / under
    errors = off + np.add.outer(lost, lost) + lost[-1] + EPS * np.abs(whole)
    errors = (errors + np.abs(values) * (off[-1, -1] + lost[-1])) / under
    return Covariance(values, errors, np.zeros(len(values)))


_NEXT: Table[Covariance] = Table(
    {
        Activation: _activated,
        Addition: _sum,
        BatchNorm: _batch_normed,
        Bias: lambda operation, own: replace(own, values=own.values + float(operation.variance)),
        Dense: _scaled,
        Gain: _scaled,
        LayerNorm: _normalised,
        Product: _product,
        SharedBias: _shared_bias,
    }
)


def kernel_slope(
    network: Layers, comean: Bounded | float | None = None, inputs: Input | None = None
) -> Bounded:
    r"""The derivative of the output's co-mean in that of the inputs, at a co-mean r of the inputs.

    At r = q it is g, the mean square of derivatives of the output. With batch norm, r belongs to
    one special pair of inputs; all others have the co-mean c.

    Args:
        network: The network.
        comean: r, at most q; q by default.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The derivative, with a bound on its error.

    Raises:
        StudyError: A co-mean that is larger than q.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 19 and section 11.6.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input(1, 0)\na = dense(x, 2)\nb = relu(a)")
        >>> round(kernel_slope(net, Bounded(0.0)).value, 9)
        0.5
    """
    graph = layers(network, inputs)
    states = propagate(graph)
    if comean is None:  # equal inputs stay equal
        return exponential(states[-1].log_gradient)
    first = bounded(comean)
    if abs(first.value) - first.error > states[0].square.value:
        raise StudyError(
            f"inputs of the second moment {states[0].square.value:.6g} have no co-mean of "
            f"{first.value:.6g}.",
            where="kernel_slope",
            hint="It lies between -q and q.",
        )
    found = [(first, Bounded(1.0))]
    for layer, state in zip(graph.layers[1:], states[1:], strict=True):
        pairs = [(*found[p], states[p]) for p in layer.parents]
        found.append(_PAIRS(layer.operation, state, *pairs))
    return found[-1][1]


def bandwidth(network: Layers, inputs: Input | None = None) -> Bounded:
    r"""The nonlinearity coefficient as the bandwidth of the covariance kernel.

    sqrt(C'(q) (q - c) / (C(q) - C(c))): how steep the kernel is at equal inputs, over its mean
    slope between c and q.

    Args:
        network: The network.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        The coefficient, with a bound on its error.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 19.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input(1, 0)\na = dense(x, 2)\nb = relu(a)")
        >>> round(bandwidth(net).value, 9)
        1.211173896
    """
    states = propagate(layers(network, inputs))  # C'(q) is the square of the derivative
    return exponential(log_square(states[0], states[-1]) * 0.5)


def _added_pairs(operation: Addition, own: State, *parts: Pair) -> tuple[Bounded, Bounded]:
    rows = list(zip(squares(operation), parts, strict=True))
    value = total(s * r for s, (r, _, _) in rows) + cross(operation, [one[2] for one in parts])
    return value, total(s * slope for s, (_, slope, _) in rows)


def _activated_pair(operation: Activation, own: State, part: Pair) -> tuple[Bounded, Bounded]:
    r, dr, read = part
    q, kernels = read.square, operation.kernels
    within = Bounded(min(r.value, q.value), r.error + ROUNDING * q.value, r.method)
    return kernels.product(q, q, within), kernels.slope_product(q, q, within) * dr


def _linear_pair(operation: Operation, own: State, part: Pair) -> tuple[Bounded, Bounded]:
    """All other kinds are linear in the co-mean, and squared derivatives grow as its slope."""
    r, dr, read = part
    rise = exponential(own.log_gradient - read.log_gradient)
    return own.square - rise * (read.square - r), rise * dr


def _batch_pair(operation: BatchNorm, own: State, part: Pair) -> tuple[Bounded, Bounded]:
    """Derivatives grow with the fluctuations of a batch besides."""
    r, _, read = part
    _, slope = _linear_pair(operation, own, part)
    return own.square - ratio(own.gap, read.gap) * (read.square - r), slope


_PAIRS: Table[tuple[Bounded, Bounded]] = Table(
    {
        Activation: _activated_pair,
        Addition: _added_pairs,
        BatchNorm: _batch_pair,
        Product: lambda operation, own, one, other: (
            one[0] * other[0],
            one[1] * other[0] + one[0] * other[1],
        ),
    },
    _linear_pair,
)
"""The co-mean r of a pair and its derivative, one layer on."""
