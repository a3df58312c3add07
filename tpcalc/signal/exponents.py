"""Powers of n through a layer graph whose weights have other variances than 1 / fan-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

import numpy as np

from tpcalc.errors import StudyError
from tpcalc.functions import Call, Expr, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.fn import derivative
from tpcalc.functions.tape import evaluate
from tpcalc.signal.activations.homogeneous import degree
from tpcalc.signal.operations import (
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
from tpcalc.signal.reading import Layers, layers

__all__ = ["Exponents", "exponents"]

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Exponents:
    """A layer in powers of n: q, v = q - c and g are n to these powers.

    Args:
        square: The exponent of q.
        gap: That of v.
        gradient: That of g.
        verdict: What it means for an activation that reads the layer: ``"stationary"``,
            ``"unstable"`` (it grows), ``"trivial"`` (it vanishes, so that a smooth activation is
            linear there), or ``""`` where no activation reads it.
    """

    square: Fraction
    gap: Fraction
    gradient: Fraction
    verdict: str = ""


def exponents(network: Layers) -> tuple[Exponents, ...]:
    r"""The exponents of every layer.

    Args:
        network: The network; powers of n in front of weights say which are larger or
            smaller.

    Raises:
        StudyError: An activation that reads a growing layer and is not homogeneous, or a vanishing
            one at which it has no slope: what follows depends on more than exponents. A sum of
            layers that are not independent, where leading powers may cancel.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3, in powers of the width.

    Example:
        >>> from tpcalc.signal.notation import parse_graph
        >>> net = parse_graph(  # the variance is 1 / n^2
        ...     "x = input()\na = dense(x, exponent=-1)\nb = tanh(a)\nc = dense(b)"
        ... )
        >>> [each.square for each in exponents(net)], exponents(net)[1].verdict
        ([Fraction(0, 1), Fraction(-1, 1), Fraction(-1, 1), Fraction(-1, 1)], 'trivial')
    """
    graph = layers(network)
    read = {p for layer in graph.layers if _bends(layer.operation) for p in layer.parents}
    found: list[Exponents] = []
    spreads: list[Fraction] = []
    for index, layer in enumerate(graph.layers):
        parents = [found[p] for p in layer.parents]
        below = [spreads[p] for p in layer.parents]
        own = _of(layer.operation, parents, below, index)
        spreads.append(_spread(layer.operation, parents, below, own))
        if index in read:
            own = Exponents(own.square, own.gap, own.gradient, _verdict(own.square))
        found.append(own)
    return tuple(found)


def _bends(operation: Operation) -> bool:
    return isinstance(operation, Activation)


def _verdict(square: Fraction) -> str:
    return "stationary" if square == 0 else "unstable" if square > 0 else "trivial"


def _spread(
    operation: Operation, parents: Sequence[Exponents], below: Sequence[Fraction], own: Exponents
) -> Fraction:
    """The exponent of q - m^2: an activation may leave little besides its mean."""
    if isinstance(operation, Activation) and parents[0].square < 0:
        return min(own.square, own.square if degree(operation.tau) else parents[0].square)
    if isinstance(operation, Addition):
        return max(below)
    if isinstance(operation, Product):
        return max(below[0] + parents[1].square, below[1] + parents[0].square)
    if isinstance(operation, Bias | SharedBias):
        return max(below[0], ZERO)
    return own.square


def _of(
    operation: Operation, parents: Sequence[Exponents], below: Sequence[Fraction], index: int
) -> Exponents:
    if isinstance(operation, Input):
        return Exponents(ZERO, ZERO, ZERO)
    if isinstance(operation, Addition):  # all weights are of order one
        return Exponents(
            max(part.square for part in parents),
            max(part.gap for part in parents),
            max(part.gradient for part in parents),
        )
    if isinstance(operation, Product):
        one, other = parents
        return Exponents(
            one.square + other.square,
            max(one.gap + other.square, one.square + other.gap),
            max(one.gradient + other.square, one.square + other.gradient),
        )
    (own,) = parents
    if isinstance(operation, Gain):
        return Exponents(own.square, own.gap, own.gradient)
    if isinstance(operation, Dense):
        e = operation.exponent
        return Exponents(own.square + e, own.gap + e, own.gradient + e)
    if isinstance(operation, Bias | SharedBias):
        return Exponents(max(own.square, ZERO), own.gap, own.gradient)
    if isinstance(operation, LayerNorm | BatchNorm):
        size = own.gap
        if isinstance(operation, LayerNorm):
            size = below[0] if operation.centred else own.square
        over = max(size, ZERO) if operation.epsilon else size
        return Exponents(size - over, own.gap - over, own.gradient - over)
    assert isinstance(operation, Activation)
    return _activated(operation, own, index)


def _activated(operation: Activation, own: Exponents, index: int) -> Exponents:
    power = degree(operation.tau)
    if own.square == 0:
        return Exponents(ZERO, own.gap, own.gradient)
    if power is not None:
        more = (power - 1) * own.square
        return Exponents(power * own.square, own.gap + more, own.gradient + more)
    if own.square > 0:
        raise StudyError(
            f"it reads a layer that grows like n^({own.square / 2}), where what {operation.name} "
            "does is no power of it.",
            where=f"layer {index} ({operation.name})",
            hint="The network is unstable there; normalise the layer, or make its weights smaller.",
        )
    start, slope = (_at_zero(part) for part in (operation.tau, derivative(operation.tau, Var(0))))
    if start is None or not slope:
        raise StudyError(
            f"it reads a layer that vanishes like n^({own.square / 2}), and {operation.name} has "
            "no slope at 0 that is known and not 0.",
            where=f"layer {index} ({operation.name})",
            hint="tpcalc.orders of tpcalc.signal.program_of(graph) follows such functions.",
        )
    return Exponents(ZERO if start else own.square, own.gap, own.gradient)


def _at_zero(expr: Expr) -> float | None:
    """The value at 0, where the function is smooth."""
    if any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(expr)):
        return None
    with np.errstate(all="ignore"):
        found = float(evaluate(Fn(expr, 1), (np.zeros(1),), ())[0])
    return found if isfinite(found) else None
