"""One learning rate for all: powers of the scale of weights in gradients, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, fsum, log
from typing import Literal, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions.form import degree
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.nonlinearity import steps
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
from tpcalc.meanfield.recursion import propagate
from tpcalc.practice.rewrites import rebuilt, scale_weights
from tpcalc.program.base import Table
from tpcalc.results import Estimate, Method
from tpcalc.results.scales import GradientScale, GradientScales

STEP = 0.05  # of log v, between the four places that slopes are taken from
ROUNDING = 1e-11 / STEP
LOSSES = ("normalised", "plain")


def gradient_scales(
    network: Layers,
    loss: Literal["normalised", "plain"] = "normalised",
    inputs: Input | None = None,
) -> GradientScales:
    r"""The powers of v in gradients, where the variances of all weights are multiplied by v.

    Where one learning rate serves all parameters, they are the same for all. Of homogeneous
    activations they follow from their degrees; otherwise they are slopes of logarithms at v = 1.

    Args:
        network: The network.
        loss: ``"normalised"``: the loss divides outputs by their LSCALE, as it is at that v;
            ``"plain"``: it takes them as they are, with slopes that do not depend on v.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        A row for each layer of weights, and the powers in NLC and LSCALE.

    Raises:
        UsageError: Another loss, or a network without weights.
        EvaluationError: Averages that are infinite or not known.

    Source: Schoenherr, The nonlinearity coefficient, sections 6.2 and 9.1.2.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = gradient_scales(lookup("mlp").make(4, "relu"))
        >>> [row.biases.value for row in found.rows], found.rows[0].weights.value, found.exact
        ([-0.5, -1.0, -1.5, -2.0, -2.5], -0.5, True)
    """
    checks.one_of("loss", loss, LOSSES)
    graph, normalised = layers(network, inputs), loss == LOSSES[0]
    places = [k for k, (operation, _) in enumerate(graph.pairs) if operation.matrix]
    if not places:
        raise UsageError("the network has no weights.", hint="Give one with dense layers.")
    try:
        exact = _powers(graph, normalised)
        sizes = [_Column(*(Estimate(float(x), 0.0, Method.EXACT) for x in row)) for row in exact]
        return _found(graph, places, sizes, True)
    except _MixedError:
        return _found(graph, places, _slopes(graph, normalised), False)


class _Column(NamedTuple):
    """Of a layer: q, v = q - c, and the mean square of the gradient; powers, or logarithms."""

    square: Estimate
    gap: Estimate
    gradient: Estimate


def _found(
    graph: LayerGraph, places: Sequence[int], sizes: Sequence[_Column], exact: bool
) -> GradientScales:
    first, last, rows = sizes[0], sizes[-1], []
    for k in places:
        own, (below,) = sizes[k], graph.layers[k].parents
        parts = (own.square,), (own.gradient,), (own.gradient, sizes[below].square)
        scale, gradient, weights = (_half(*part) for part in parts)
        rows.append(GradientScale(k, scale, gradient, weights, gradient))
    every = sorted(
        (own for row in rows for own in (row.weights, row.biases)), key=lambda own: own.value
    )
    spread = _half(every[-1], every[-1], minus=(every[0], every[0]))
    nlc = _half(first.gradient, first.gap, minus=(last.gradient, last.gap))
    whole = _half(last.square), _half(first.gradient), spread
    return GradientScales(nlc, *whole, exact, tuple(rows))


def _half(*terms: Estimate, minus: Sequence[Estimate] = ()) -> Estimate:
    value = fsum(own.value for own in terms) - fsum(own.value for own in minus)
    both = (*terms, *minus)
    error = fsum(own.stderr for own in both)
    return Estimate(value / 2, error / 2, max(own.method for own in both))


class _MixedError(Exception):
    """Sizes that are no power of v."""


@dataclass(frozen=True)
class _Power:
    """Powers of v in q and q - c, and in what the gradient is multiplied by on its way back."""

    square: Fraction = Fraction(0)
    gap: Fraction = Fraction(0)
    back: Fraction = Fraction(0)


def _powers(graph: LayerGraph, normalised: bool) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    found: list[_Power] = []
    for operation, parents in graph.pairs:
        found.append(_POWER(operation, *(found[k] for k in parents)))
    back: dict[int, Fraction] = {graph.last: -found[-1].square if normalised else Fraction(0)}
    for k in range(graph.last, 0, -1):
        for parent in graph.layers[k].parents if k in back else ():
            own = back[k] + found[k].back
            if back.setdefault(parent, own) != own:
                raise _MixedError
    unread = Fraction(0)
    return ((p.square, p.gap, back.get(k, unread)) for k, p in enumerate(found))


def _dense(operation: Dense, one: _Power) -> _Power:
    return _Power(one.square + 1, one.gap + 1, Fraction(1))


def _sum(operation: Operation, *parts: _Power) -> _Power:
    """Layers that grow alike."""
    if len({(own.square, own.gap) for own in parts}) > 1:
        raise _MixedError
    return replace(parts[0], back=Fraction(0))


def _still(operation: Operation, *parts: _Power) -> _Power:
    """What adds numbers that do not depend on v, or multiplies layers: these must not either."""
    if any(own.square for own in parts):
        raise _MixedError
    return _sum(operation, *parts)


def _activation(operation: Activation, one: _Power) -> _Power:
    if one.square == one.gap == 0:
        return _Power()
    power = degree(operation.expr)
    if power is None or one.square != one.gap:
        raise _MixedError
    return _Power(power * one.square, power * one.gap, (power - 1) * one.square)


def _norm(operation: LayerNorm | BatchNorm, one: _Power, size: Fraction) -> _Power:
    if operation.epsilon and size:
        raise _MixedError
    return _Power(Fraction(0), one.gap - size, -size)


_POWER: Table[_Power] = Table(
    {
        Input: lambda operation: _Power(),
        Dense: _dense,
        Gain: _sum,
        Bias: _still,
        SharedBias: _still,
        Addition: _sum,
        Activation: _activation,
        Product: _still,
        LayerNorm: lambda operation, one: _norm(operation, one, one.square),
        BatchNorm: lambda operation, one: _norm(operation, one, one.gap),
    }
)


def _slopes(graph: LayerGraph, normalised: bool) -> list[_Column]:
    """Slopes of logarithms at v = 1, from two places and from four."""
    near, far = (
        [_sizes(rebuilt(graph, scale_weights(exp(sign * step))), normalised) for sign in (1, -1)]
        for step in (STEP, 2 * STEP)
    )
    two = (near[0] - near[1]) / (2 * STEP)
    four = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * STEP)
    errors = np.abs(two - four) + ROUNDING
    return [
        _Column(
            *(Estimate(float(a), float(e), Method.QUADRATURE) for a, e in zip(*own, strict=True))
        )
        for own in zip(four, errors, strict=True)
    ]


def _sizes(graph: LayerGraph, normalised: bool) -> Array:
    """A row for each layer: logarithms of q, of q - c, of the mean square of the gradient."""
    states = propagate(graph)
    back = {graph.last: -log(states[-1].square.value) if normalised else 0.0}
    for k in range(graph.last, 0, -1):
        for parent, weight, factor in steps(graph, states, k) if k in back else ():
            gaps = log(states[k].gap.value) - log(states[parent].gap.value)
            own = back[k] + log(weight.value) + log(factor.value) + gaps
            back[parent] = float(np.logaddexp(back[parent], own)) if parent in back else own
    rows = ((log(s.square.value), log(s.gap.value), back.get(k, 0.0)) for k, s in enumerate(states))
    return np.array([*rows])
