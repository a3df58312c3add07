"""What a question of signal propagation is asked of, as layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tpcalc import checks
from tpcalc.dsl.operands import user_line
from tpcalc.errors import UsageError
from tpcalc.meanfield import recursion
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.layers.stretches import stretches
from tpcalc.meanfield.notation.lines import Lines
from tpcalc.meanfield.operations import Input
from tpcalc.meanfield.state import State
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import as_network, is_network
from tpcalc.shown import Rows

Layers = LayerGraph | Architecture | Callable[..., Any]
"""Layers, or a network: ``tp.MLP(2)``, a function ``net(t, x)``, a class of ``tp.Network``."""


def layers(source: Layers, inputs: Input | None = None) -> LayerGraph:
    """The layers of whatever a user hands over for a network.

    Args:
        source: Layers as they are, or a network. A network stands at its start with weights of
            the variance 1 / fan-in, times the squares of the factors in front of them.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        Layers in the order in which they are computed, the input first.

    Raises:
        UsageError: It is no network.
        StudyError: A network that the recursion does not follow; the node and the user's line are
            told.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = layers(lookup("resnet").make(1, "relu"), Input(2, 1))
        >>> [layer.operation.name for layer in found.layers]
        ['input', 'dense', 'relu', 'dense', 'addition', 'dense']
    """
    if inputs is not None:
        checks.of_type(inputs, Input, "inputs")
    if isinstance(source, LayerGraph | Lines):
        found = source if isinstance(source, LayerGraph) else source.read
        first = found.layers[0] if inputs is None else Layer(inputs, ())
        return replace(found, layers=(first, *found.layers[1:]))
    if not is_network(source):
        raise UsageError(
            f"the network is {source!r}.",
            where=user_line(),
            hint="Give tp.MLP(2, 'relu'), a function net(t, x), a class that inherits from "
            "tp.Network, or what tp.signal.parse_graph and tp.signal.mlp make.",
        )
    return stretches(as_network(source), inputs or Input())


def start_of(source: Any) -> Input:
    """The second moments of inputs that a network is asked about by default."""
    return source.start if isinstance(source, Lines) else Input()


def numbered(graph: LayerGraph, layer: int | str | None) -> int:
    """The number of a layer.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> numbered(layers(lookup("mlp").make(2, "relu")), "h[2]")
        3
    """
    if layer is None:
        return graph.last
    if isinstance(layer, str):
        names = dict(graph.names)
        checks.one_of("layer", layer, names)
        return names[layer]
    return checks.whole(layer, "a layer")


def propagate(
    source: Layers, known: Sequence[State] = (), inputs: Input | None = None
) -> tuple[State, ...]:
    """The state of every layer.

    Args:
        source: The network, or layers.
        known: The states of its first layers, where they are known.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        A state for each layer, the input first.

    Raises:
        StudyError: Layers that no matrix separates are not independent.
        TpcalcError: A layer has no state; it is told.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = propagate(lookup("mlp").make(2, "relu", weight_variance=2))
        >>> round(found[-1].square.value, 9), round(found[-1].bias, 6)
        (1.0, 1.40543)
    """
    return Rows(recursion.propagate(layers(source, inputs), known))
