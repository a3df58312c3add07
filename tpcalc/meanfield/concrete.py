"""A layer graph with the variances that concrete parameters have: metrics with a hat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tpcalc.errors import UsageError
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.network import KINDS
from tpcalc.meanfield.operations import Bias
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.nonlinearity.tensors.jacobians import layer_variances


def concrete(source: Layers, network: Any) -> LayerGraph:
    """The graph with |W|_F^2 / d_l and |b|^2 / d_l of a network in place of its variances.

    What is computed from it (states, coefficients) is what the recursion says of these weights,
    trained or not; the weights of low rank become those of full rank with the same norm, biases in
    a span independent ones. A layer of biases that are all 0 is left out, and one behind a readout
    is added.

    Args:
        source: The network in theory, or layers.
        network: A network of the graph, or a torch module with as many linear layers, in order.

    Returns:
        Layers of the same kinds with these variances.

    Raises:
        UsageError: Other layers than the graph has.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.3 (metric 22).

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> from tpcalc.meanfield.network import network_of
        >>> from tpcalc.meanfield.nonlinearity import nlc
        >>> graph = mlp(2, Design("tanh", 1.5))
        >>> found = concrete(graph, network_of(graph, width=200, inputs=200))
        >>> abs(nlc(found).value - nlc(graph).value) < 0.01
        True
    """
    graph, rows = layers(source), layer_variances(network)
    weights = iter([row.value for row in rows if row.kind == "weights"])
    biases = iter([row.value for row in rows if row.kind == "biases"])
    found: list[Layer] = []
    place: list[int] = []  # where each layer of the graph is now
    for layer in graph.layers:
        operation: Any = layer.operation
        parents, kind = tuple(place[p] for p in layer.parents), KINDS[type(operation)]
        if kind == "weights":
            operation = replace(operation, variance=_next(weights, "weights"))
        if kind == "biases":
            variance = _next(biases, "biases")
            if variance == 0:
                place.append(parents[0])
                continue
            operation = Bias(variance)
        place.append(len(found))
        found.append(Layer(operation, parents))
    end: Any = graph.layers[-1].operation
    last = next(biases, None) if end.matrix and end.outputs else None  # which no line of it reads
    if last:
        found.append(Layer(Bias(last), (len(found) - 1,)))
    if next(weights, None) is not None or next(biases, None) is not None:
        raise UsageError("the network has more linear layers or biases than the graph.")
    return LayerGraph(tuple(found))


def _next(values: Iterator[float], what: str) -> float:
    found = next(values, None)
    if found is None:
        raise UsageError(f"the network has {what} for fewer layers than the graph.")
    return found
