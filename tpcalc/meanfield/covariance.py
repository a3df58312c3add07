"""Any number of inputs: the second moments of all pairs through a layer graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import StudyError, TpcalcError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals import exact, quadrature
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.meanfield.graph import propagate
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
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.state import State, logarithm
from tpcalc.shown import Shown

ROUNDING = 8 * EPS


@dataclass(frozen=True)
class Covariance(Shown):
    """Second moments of a layer at N inputs.

    Args:
        values: The averages over coordinates of x_a x_b, shape (N, N).
        errors: Bounds on their errors, to first order in those of the layers before.
        means: The means of coordinates, shape (N,).
    """

    values: Array
    errors: Array
    means: Array


def covariance(network: Layers, gram: Array) -> Covariance:
    r"""The second moments of the last layer at any number of inputs.

    For a readout it is the covariance of the Gaussian process that a random network is.

    Args:
        network: The network; the moments of its ``Input`` are not used.
        gram: Second moments of the inputs, the averages of x_a x_b over coordinates, shape (N, N).

    Returns:
        The moments and bounds on their errors, shape (N, N).

    Raises:
        StudyError: A matrix of second moments that is none; a layer that has no state for a given
            set of inputs (batch norm).

    Source: Schoenherr, The nonlinearity coefficient, section 5.1.4 (Corollary 2).

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input(1, 0)\na = dense(x, 2)\nb = relu(a)")
        >>> found = covariance(net, [[1.0, 0.5], [0.5, 2.0]])
        >>> float(found.values[1, 1]), round(float(found.values[0, 1]), 9)
        (2.0, 0.728597763)
    """
    start, graph = _checked(gram), layers(network)
    found: list[Covariance] = []
    for index, layer in enumerate(graph.layers):
        try:
            if isinstance(layer.operation, Input):
                found.append(Covariance(start, np.zeros_like(start), np.zeros(len(start))))
            else:
                found.append(_of(layer.operation, [found[p] for p in layer.parents]))
        except TpcalcError as error:
            if error.where is None:
                error.where = f"layer {index} ({layer.operation.name})"
            raise
    return found[-1]


def _checked(gram: Array) -> Array:
    found = checks.reals(gram, "gram").astype(float)
    square = found.ndim == 2 and found.shape[0] == found.shape[1] and np.isfinite(found).all()
    if not square or not np.allclose(found, found.T, rtol=1e-12, atol=0):
        raise StudyError(
            f"second moments of inputs form a symmetric matrix of numbers, not one of the shape "
            f"{found.shape}.",
            where="covariance",
        )
    low = float(np.linalg.eigvalsh(found)[0])
    if not (found.diagonal() > 0).all() or low < -1e-10 * float(found.diagonal().max()):
        raise StudyError(
            f"second moments of inputs have the eigenvalue {low:.3g}.",
            where="covariance",
            hint="They are averages of products of inputs: no eigenvalue is negative.",
        )
    return found


def _of(operation: Operation, parents: list[Covariance]) -> Covariance:
    if isinstance(operation, Addition):
        return _sum(operation, parents)
    if isinstance(operation, Product):
        return _product(*parents)
    (own,) = parents
    if isinstance(operation, Dense):
        s = operation.factor
        zero = np.zeros_like(own.means)
        errors = s.value * own.errors + s.error * np.abs(own.values)
        return Covariance(s.value * own.values, errors, zero)
    if isinstance(operation, Bias):
        return Covariance(own.values + float(operation.variance), own.errors, own.means)
    if isinstance(operation, SharedBias):
        b = operation.added.value
        values = own.values + b * b + b * np.add.outer(own.means, own.means)
        return Covariance(values, own.errors + EPS * np.abs(values), own.means + b)
    if isinstance(operation, Gain):
        s = operation.square
        errors = s.value * own.errors + s.error * np.abs(own.values)
        return Covariance(s.value * own.values, errors, operation.mean.value * own.means)
    if isinstance(operation, Activation):
        return _activated(operation.tau, own)
    if isinstance(operation, LayerNorm):
        return _normalised(operation, own)
    raise StudyError(
        f"{operation.name} depends on the whole batch.",
        hint="propagate has its limit for inputs that are all alike.",
    )


def _sum(operation: Addition, parents: list[Covariance]) -> Covariance:
    weights = [float(w) for w in operation.weights]
    means: Any = sum(w * part.means for w, part in zip(weights, parents, strict=True))
    # Second moments add, and so do products of the means of different layers.
    values: Any = sum(
        w * w * (part.values - np.outer(part.means, part.means))
        for w, part in zip(weights, parents, strict=True)
    )
    errors: Any = sum(w * w * part.errors for w, part in zip(weights, parents, strict=True))
    return Covariance(values + np.outer(means, means), errors, means)


def _product(one: Covariance, other: Covariance) -> Covariance:
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


def _activated(tau: Expr, own: Covariance) -> Covariance:
    rows, cols = np.triu_indices(len(own.values))
    q = own.values.diagonal()
    limit = np.sqrt(q[rows] * q[cols])
    c = np.clip(own.values[rows, cols], -limit, limit)
    value, error = _expectation((tau, tau), [[q[rows], c], [c, q[cols]]])
    mean, _ = _expectation((tau,), [[q]])
    slope = derivative(tau, Var(0))
    steep, _ = _expectation((slope, slope), [[q, q], [q, q]])
    # |dC/dc| is at most the root of E tau'^2 at both; dC/dq by one step of its error.
    moved = own.errors.diagonal()
    above, _ = _expectation((tau, tau), [[(q + moved)[rows], c], [c, (q + moved)[cols]]])
    error = error + own.errors[rows, cols] * np.sqrt(steep[rows] * steep[cols])
    error = error + np.abs(above - value)
    values, errors = np.empty_like(own.values), np.empty_like(own.values)
    values[rows, cols] = values[cols, rows] = value
    errors[rows, cols] = errors[cols, rows] = error
    return Covariance(values, errors, np.broadcast_to(mean, q.shape))


def _expectation(factors: tuple[Expr, ...], cov: list[list[Array]]) -> tuple[Array, Array]:
    means = [0.0] * len(factors)
    for way in (exact, quadrature):
        if way.supported(factors):
            found = way.expectation(factors, means, cov)
            if found is not None:
                shape = np.shape(cov[0][0])
                return np.broadcast_to(found.value, shape), np.broadcast_to(found.error, shape)
    raise StudyError(f"no quadrature takes averages of {factors[0].text}.")


def kernel_slope(
    network: Layers, comean: Bounded | None = None, inputs: Input | None = None
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
    first = states[0].square if comean is None else comean
    if abs(first.value) - first.error > states[0].square.value:
        raise StudyError(
            f"inputs of the second moment {states[0].square.value:.6g} have no co-mean of "
            f"{first.value:.6g}.",
            where="kernel_slope",
            hint="It lies between -q and q.",
        )
    found: list[tuple[Bounded, Bounded]] = [(first, Bounded(1.0))]
    for index, layer in enumerate(graph.layers[1:], 1):
        parents = [(*found[p], states[p]) for p in layer.parents]
        value, slope = _moved(layer.operation, parents)
        # Equal inputs stay equal: of kinked activations the slope at q less rounding is another.
        found.append((states[index].square if comean is None else value, slope))
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
    graph = layers(network, inputs)
    states = propagate(graph)
    rise = logarithm(states[-1].gap) - logarithm(states[0].gap)
    total = logarithm(kernel_slope(graph)) - rise
    value = float(np.exp(total.value / 2))
    return Bounded(value, value * float(np.expm1(total.error / 2)), total.method)


def _moved(
    operation: Operation, parents: list[tuple[Bounded, Bounded, State]]
) -> tuple[Bounded, Bounded]:
    """The co-mean r of a pair and its derivative, one layer on."""
    if isinstance(operation, Addition):
        squares = [bounded(w) * bounded(w) for w in operation.weights]
        zero = Bounded(0.0)
        value = sum((s * part[0] for s, part in zip(squares, parents, strict=True)), zero)
        value = value + operation.cross([part[2] for part in parents])
        slope = sum((s * part[1] for s, part in zip(squares, parents, strict=True)), zero)
        return value, slope
    if isinstance(operation, Product):
        (one, by_one, _), (other, by_other, _) = parents
        return one * other, by_one * other + one * by_other
    ((r, dr, read),) = parents
    if isinstance(operation, Dense | Gain):
        s = operation.factor if isinstance(operation, Dense) else operation.square
        return s * r, s * dr
    if isinstance(operation, Activation):
        kernels = Kernels(operation.tau)
        q = read.square
        if r is q:
            return kernels.second(q), kernels.slope(q) * dr
        within = Bounded(min(r.value, q.value), r.error + ROUNDING * q.value, r.method)
        value = kernels.product(q, q, within)
        return value, kernels.slope_product(q, q, within) * dr
    if isinstance(operation, LayerNorm):
        under = operation.spread(read) + bounded(operation.epsilon)
        taken = read.square - operation.spread(read)
        return (r - taken) * under.inverse(), dr * under.inverse()
    if isinstance(operation, BatchNorm):
        under = (read.gap + bounded(operation.epsilon)).inverse()
        return (r - read.comean) * under, dr * under * operation.excess
    return r + operation.state([read]).square - read.square, dr
