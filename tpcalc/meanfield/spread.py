"""What does not self-average: the law of a state over draws of shared biases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from tpcalc import checks
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.operations import Operation, SharedBias
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.program.base import Table
from tpcalc.results import Estimate, Method, Status
from tpcalc.shown import Rows, Shown


@dataclass(frozen=True, slots=True)
class Spread(Shown):
    """Second moments of a layer over draws of the shared biases.

    Args:
        mean: Of q.
        deviation: The standard deviation of q, which no width makes smaller.
    """

    mean: Estimate
    deviation: Estimate


def draw(graph: LayerGraph, seed: int) -> LayerGraph:
    r"""The graph with a value for each shared bias that has none.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input()\na = dense(x, rank=1/2)\nb = shared_bias(a, 0.1, 1/2)")
        >>> graph = layers(net)
        >>> draw(graph, 0).layers[2].operation.drawn is None
        False
    """
    rng = np.random.default_rng(seed)
    drawn = (_DRAWN(layer.operation, rng) for layer in graph.layers)
    pairs = zip(graph.layers, drawn, strict=True)
    return LayerGraph(tuple(replace(layer, operation=operation) for layer, operation in pairs))


def _drawn(operation: SharedBias, rng: np.random.Generator) -> SharedBias:
    if operation.drawn is not None:
        return operation
    return replace(operation, drawn=float(rng.normal(0.0, sqrt(operation.variance))))


_DRAWN: Table[Operation] = Table({SharedBias: _drawn}, lambda operation, rng: operation)


def spread(network: Layers, draws: int = 200, seed: int = 0) -> tuple[Spread, ...]:
    r"""Mean and standard deviation of every layer's second moment over draws of shared biases.

    Args:
        network: The network.
        draws: How many times the biases are drawn.
        seed: For the draws.

    Returns:
        Mean and deviation for each layer, with standard errors.

    Raises:
        UsageError: Fewer than 2 draws.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, with the
        bias as it is printed there.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> net = parse_graph("x = input()\na = dense(x, rank=1/4)\nb = shared_bias(a, 0.4, 1/4)")
        >>> found = spread(net, draws=1000)[-1]
        >>> bool(abs(found.deviation.value - 2**0.5 / 10) < 5 * found.deviation.stderr)
        True
    """
    draws, seed = checks.whole(draws, "draws", least=2), checks.seed(seed)
    graph, rng = layers(network), np.random.default_rng(seed)
    seeds = rng.integers(0, 2**63, draws)
    first = next((k for k, (o, _) in enumerate(graph.pairs) if o.span), 1)
    known = propagate(LayerGraph(graph.layers[:first]))  # what no draw changes
    drawn = (propagate(draw(graph, int(k)), known) for k in seeds)
    rows = [[state.square.value for state in states] for states in drawn]
    return Rows(_spread(column, seed) for column in np.array(rows).T)


def _spread(values: np.ndarray, seed: int) -> Spread:
    size = len(values)
    variance = float(values.var(ddof=1))
    fourth = float(((values - values.mean()) ** 4).mean())
    # The standard error of a variance, and of its root by the delta method.
    error = sqrt(max(fourth - variance**2 * (size - 3) / (size - 1), 0.0) / size)
    sd = sqrt(variance)
    return Spread(
        _sampled(float(values.mean()), sd / sqrt(size), seed),
        _sampled(sd, error / (2 * sd) if sd else 0.0, seed),
    )


def _sampled(value: float, error: float, seed: int) -> Estimate:
    return Estimate(value, error, Method.PARTICLES, Status.CONVERGED, seed=seed)
