"""The mean-field recursion: the state of every layer, by one rule for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from tpcalc.doors.budget import paced
from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Gain,
    Input,
    LayerNorm,
    Product,
    SharedBias,
)
from tpcalc.meanfield.state import State, exponential, logarithm, ratio
from tpcalc.program.base import Table

ZERO, ONE = Bounded(0.0), Bounded(1.0)


def propagate(graph: LayerGraph, known: Sequence[State] = ()) -> tuple[State, ...]:
    """The state of every layer; those of the first ones may be known.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.
    """
    found: list[State] = list(known)
    for index in paced(range(len(found), len(graph.layers)), f"{len(graph.layers)} layers"):
        with graph.at(index) as layer:
            read = [found[p] for p in layer.parents]
            try:
                found.append(STATE(layer.operation, *read))
            except EvaluationError as error:
                error.hint = _sizes(read[0]) if read else error.hint
                raise
    return tuple(found)


def _sizes(state: State) -> str:
    """What a layer read that could not be evaluated: mostly, lengths have exploded or died."""
    q, v = state.square.value, state.gap.value
    return f"It reads a layer with q = {q:.3g} and q - c = {v:.3g}; other variances may keep them."


def total(terms: Iterable[Bounded]) -> Bounded:
    """The sum of numbers with errors.

    Example:
        >>> total([Bounded(1.0), Bounded(0.5)]).value
        1.5
    """
    return sum(terms, ZERO)


def squares(operation: Addition) -> list[Bounded]:
    """The squares of the weights of a sum."""
    return [bounded(w) * bounded(w) for w in operation.weights]


def means(operation: Addition, parents: Sequence[State]) -> list[Bounded]:
    """The means of what a sum adds."""
    return [bounded(w) * part.mean for w, part in zip(operation.weights, parents, strict=True)]


def cross(operation: Addition, parents: Sequence[State]) -> Bounded:
    """What products of means of different layers add to second moments."""
    return total(2 * left * right for left, right in combinations(means(operation, parents), 2))


def spread(operation: LayerNorm, own: State) -> Bounded:
    """The variance of coordinates, or their mean square, that a layer is divided by."""
    return own.square - own.mean * own.mean if operation.centred else own.square


def _input(operation: Input) -> State:
    gap = bounded(operation.square - operation.comean)
    return State(ZERO, bounded(operation.square), gap, ZERO)


@lru_cache(maxsize=4096)  # designs that are compared have many layers in common
def _activation(operation: Activation, own: State) -> State:
    q, kernels = own.square, operation.kernels
    gradient = own.log_gradient + logarithm(kernels.slope(q))
    return State(kernels.mean(q), kernels.second(q), kernels.gap(q, own.gap), gradient)


def _scaled(operation: Dense | Gain, own: State) -> State:
    s, gradient = operation.factor, own.log_gradient
    return State(operation.mean * own.mean, s * own.square, s * own.gap, gradient + logarithm(s))


def _bias(operation: Bias, own: State) -> State:
    return State(own.mean, own.square + bounded(operation.variance), own.gap, own.log_gradient)


def _shared_bias(operation: SharedBias, own: State) -> State:
    b = operation.added
    square = own.square + b * b + 2 * b * own.mean
    return State(own.mean + b, square, own.gap, own.log_gradient)


def _layer_norm(operation: LayerNorm, own: State) -> State:
    size = spread(operation, own)
    under = size + bounded(operation.epsilon)
    square = ratio(size, under) if operation.epsilon else ONE
    mean = ZERO if operation.centred else own.mean * under.inverse().root()
    return State(mean, square, ratio(own.gap, under), own.log_gradient - logarithm(under))


def _batch_norm(operation: BatchNorm, own: State) -> State:
    under, size = own.gap + bounded(operation.epsilon), operation.batch
    square = ratio(own.gap, under) if operation.epsilon else ONE
    excess = ONE if size is None else bounded(Fraction(size - 2, size - 3))
    gradient = own.log_gradient - logarithm(under) + logarithm(excess)
    return State(ZERO, square, square, gradient)


def _addition(operation: Addition, *parents: State) -> State:
    largest = max(part.log_gradient.value for part in parents)
    pairs = list(zip(squares(operation), parents, strict=True))
    gradient = total(w * exponential(part.log_gradient - largest) for w, part in pairs)
    return State(
        total(means(operation, parents)),
        total(w * part.square for w, part in pairs) + cross(operation, parents),
        total(w * part.gap for w, part in pairs),
        logarithm(gradient) + largest,
    )


def _product(operation: Product, one: State, other: State) -> State:
    """Of the derivative x' y + x y' the terms are uncorrelated, as x' has mean 0 given x."""
    largest = max(one.log_gradient.value, other.log_gradient.value)
    gradient = exponential(one.log_gradient - largest) * other.square
    gradient = gradient + exponential(other.log_gradient - largest) * one.square
    return State(
        one.mean * other.mean,
        one.square * other.square,
        one.gap * other.square + one.comean * other.gap,
        logarithm(gradient) + largest,
    )


STATE: Table[State] = Table(
    {
        Input: _input,
        Activation: _activation,
        Dense: _scaled,
        Gain: _scaled,
        Bias: _bias,
        SharedBias: _shared_bias,
        LayerNorm: _layer_norm,
        BatchNorm: _batch_norm,
        Addition: _addition,
        Product: _product,
    }
)
