"""The layers of a network in words, for readers."""

from __future__ import annotations

from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.notation.notation import written
from tpcalc.meanfield.operations import Activation, Dense, Gain, Operation, SharedBias


def described(graph: LayerGraph) -> str:
    """The layers, one a line; what is a function of coordinates is written as a formula.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> from tpcalc.meanfield.reading import layers
        >>> print(described(layers(lookup("mlp").make(1, "tanh", norm="layer"))))
        h0 = input(1, 0)
        h1 = dense(h0, 1)
        h2 = layer_norm(h1)
        h3 = tanh(h2)
        h4 = dense(h3, 1)
    """
    return "\n".join(
        f"h{index} = {_line(layer.operation, [f'h{parent}' for parent in layer.parents])}"
        for index, layer in enumerate(graph.layers)
    )


def _line(operation: Operation, parents: list[str]) -> str:
    if isinstance(operation, Activation):
        if operation.label:
            return f"{operation.label}({parents[0]})"
        return f"f({parents[0]}), f(x0) = {operation.expr.text}"
    if isinstance(operation, Gain):
        return f"f(z)*{parents[0]}, f(x0) = {operation.tau.text}, z = N(0, {operation.variance})"
    word = {Dense: "dense", SharedBias: "shared_bias"}.get(type(operation))
    return written(operation, parents, word)
