"""Gaussian stability: how deviations of a layer's length grow through a graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tpcalc.evaluate.bounded import Bounded, bounded
from tpcalc.functions import Expr, Var
from tpcalc.signal.graph import LayerGraph, propagate
from tpcalc.signal.kernels import Kernels, average
from tpcalc.signal.operations import (
    Activation,
    Addition,
    Bias,
    Input,
    LayerNorm,
    Operation,
    SharedBias,
    SpanBias,
)
from tpcalc.signal.state import State, ratio

__all__ = ["Stability", "stability", "stability_number"]

EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Stability:
    """How a relative deviation of the lengths of the inputs grows.

    Args:
        factors: For every layer, its relative deviation over that of the inputs.
        worst: The largest growth from any layer to any later one.
        label: ``"stable"``: no activation and no way through the graph makes deviations larger;
            ``"edge"``: some keep them; ``"unstable"``: they grow.
    """

    factors: tuple[Bounded, ...]
    worst: float
    label: str

    def reach(self, noise: float) -> int | None:
        """The first layer at which noise of the inputs is as large as the lengths; None: nowhere.

        Args:
            noise: The relative deviation: 1 / sqrt(width), or the rounding of a number format.
        """
        return next((k for k, f in enumerate(self.factors) if noise * abs(f.value) >= 1), None)

    def excess(self, width: int) -> float:
        """The largest relative deviation of a length that a width leads to, by its order.

        Args:
            width: The width.
        """
        return self.worst / sqrt(width)


def stability_number(tau: Expr, q: Bounded) -> Bounded:
    """The number s = lambda L'(lambda) / L(lambda), L^2 = E tau^2 at the variance q = lambda^2.

    Below 1 an activation makes relative deviations of lengths smaller, above 1 larger.

    Args:
        tau: The activation, an expression of ``Var(0)``.
        q: The variance.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6 and Theorem 6.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> round(stability_number(lookup("tanh").fn.expr, Bounded(1.0)).value, 6)
        0.461071
    """
    weighted = average(tau**2 * Var(0) ** 2, q)
    plain = Kernels(tau).second(q)
    return (ratio(weighted, q * plain) - 1) * 0.5


def stability(graph: LayerGraph, states: tuple[State, ...] | None = None) -> Stability:
    """The growth of relative deviations of lengths through a graph.

    Args:
        graph: The layers.
        states: Their states, where they are known.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6.

    Example:
        >>> from tpcalc.signal.graph import chain
        >>> square = Activation(Var(0) ** 2)
        >>> found = stability(chain(Input(1, 0), [Dense(1 / 3), square] * 5))
        >>> round(found.factors[-1].value, 9), found.label, found.reach(0.1)
        (32.0, 'unstable', 8)
    """
    known = propagate(graph) if states is None else states
    factors: list[Bounded] = []
    worst: list[float] = []  # the largest growth from any earlier layer
    numbers: list[Bounded] = []
    for index, layer in enumerate(graph.layers):
        shares = _shares(layer.operation, [known[p] for p in layer.parents], known[index])
        if isinstance(layer.operation, Activation):
            numbers += shares
        parts = list(zip(shares, layer.parents, strict=True))
        start = Bounded(1.0 if isinstance(layer.operation, Input) else 0.0)
        factors.append(sum((share * factors[p] for share, p in parts), start))
        worst.append(max(1.0, sum(abs(share.value) * worst[p] for share, p in parts)))
    return Stability(tuple(factors), max(worst), _label(numbers))


def _label(numbers: list[Bounded]) -> str:
    if any(abs(s.value) - s.error > 1 + EDGE for s in numbers):
        return "unstable"
    return "stable" if all(abs(s.value) + s.error < 1 - EDGE for s in numbers) else "edge"


def _shares(operation: Operation, parents: list[State], own: State) -> list[Bounded]:
    """How much a relative deviation of each layer that is read makes of this one's."""
    if isinstance(operation, Input):
        return []
    if isinstance(operation, Addition):
        return [
            bounded(w) * bounded(w) * ratio(part.square, own.square)
            for w, part in zip(operation.weights, parents, strict=True)
        ]
    (read,) = parents
    if isinstance(operation, Activation):
        return [stability_number(operation.tau, read.square)]
    if isinstance(operation, Bias | SpanBias | SharedBias):
        return [ratio(read.square, own.square)]
    # Layer norm takes the length out; the lengths of a batch are only kept on average.
    return [Bounded(0.0 if isinstance(operation, LayerNorm) else 1.0)]
