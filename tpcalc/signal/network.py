"""Networks and layer graphs drawn at a finite width."""

from __future__ import annotations

from fractions import Fraction
from math import prod, sqrt
from typing import Any

from tpcalc.errors import StudyError, TraceError
from tpcalc.finite.layered import steps
from tpcalc.finite.networks.taps import Kind, Tap
from tpcalc.functions import Fn, Var
from tpcalc.networks.network import Architecture, written
from tpcalc.networks.own import as_network
from tpcalc.program.base import references
from tpcalc.program.program import Program
from tpcalc.signal.graph import Layer, LayerGraph
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
from tpcalc.signal.stretches import FEATURES, POWERS

__all__ = ["network_of", "steps_of"]

KINDS: dict[type[Operation], Kind] = {
    Input: "input",
    Dense: "weights",
    Bias: "biases",
    Activation: "coordinates",
    LayerNorm: "norm",
    Addition: "sum",
    Product: "product",
}


def steps_of(source: Layers) -> list[steps.Step]:
    """The layers as ``tpcalc.finite.layered`` takes them.

    Args:
        source: The network, or layers.

    Example:
        >>> from tpcalc.catalog.architectures import lookup
        >>> [type(step).__name__ for step in steps_of(lookup("mlp").make(1, "relu"))]
        ['Input', 'Dense', 'Elementwise', 'Dense']
    """
    graph = layers(source)
    return [_step(graph, layer) for layer in graph.layers]


def network_of(
    source: Layers,
    width: int,
    inputs: int,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> Any:
    r"""A network drawn at a width: a function of batches that shows all of its layers.

    Weights of a network have the variance 1 / fan-in times the squares of the factors in front of
    them, and shared weights are one matrix. It has as many outputs as it is wide, and shows the
    layers that the recursion reads; where the recursion does not hold it shows all vectors.

    Args:
        source: The network, or layers, each of which gets weights of its own.
        width: n.
        inputs: Features of an input.
        seed: For the weights.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``.
        dtype: ``"float64"``, ``"float32"`` or ``"bfloat16"``.

    Raises:
        StudyError: A rank or a width that no whole number of neurons has; weights with a power of
            n, a shared bias that is given.
        MissingBackend: No torch, or no such device.

    Example:
        >>> from tpcalc.signal.notation import parse_graph
        >>> network = network_of(parse_graph("x = input()\na = dense(x, width=1/2)"), 16, 4)
        >>> network.sizes
        (4, 8)
        >>> from tpcalc.catalog.architectures import lookup
        >>> network_of(lookup("mlp").make(2, "relu"), width=8, inputs=4).sizes
        (4, 8, 8, 8, 8, 8)
    """
    from tpcalc.finite.layered.network import Layered

    if isinstance(source, LayerGraph) or _is_batch(as_network(source)):
        return Layered(steps_of(source), width, inputs, seed, device, dtype)
    try:
        program = written(as_network(source), inputs, width)
    except (StudyError, TraceError):  # a last layer that is as wide as the others
        return Layered(steps_of(source), width, inputs, seed, device, dtype)
    return _drawn(as_network(source), program, width, seed, device, dtype)


def _is_batch(network: Architecture) -> bool:
    """Whether the inputs of a network are batches, of which the recursion reads one input."""
    if not network.axes:
        return False
    try:
        layers(network)
    except StudyError:
        return False
    return True


def _drawn(
    network: Architecture, program: Program, width: int, seed: int, device: str, dtype: str
) -> Any:
    from tpcalc.finite.networks.network import DrawnNetwork
    from tpcalc.finite.networks.uses import layout_of

    drawn = DrawnNetwork(program, width, seed, device, dtype, taps=_taps(network, program))
    for name, uses in drawn.uses.items():
        mark, weights = program.families[name].mark, drawn.parameters[name]
        if mark is None or mark.bias or not uses:
            continue
        layout = layout_of(uses[0])
        columns = [weights.shape[place] for place in layout.parameter[sum(layout.groups[:2]) :]]
        weights /= sqrt(width if mark.role in POWERS else prod(columns))
    return drawn


def _taps(network: Architecture, program: Program) -> tuple[Tap, ...]:
    """The layers that the recursion reads, as nodes of the program; none where it reads none."""
    try:
        graph = layers(network)
    except StudyError:
        return ()
    small = written(network, network.tokens * FEATURES, 1)
    shape, other = ([(type(n), references(n)) for n in p.nodes] for p in (small, program))
    if shape != other:  # its nodes depend on the size of the data
        return ()
    found = [_tap(layer) for layer in graph.layers]
    return tuple(tap for tap in found if tap is not None) if all(found) else ()


def _tap(layer: Layer) -> Tap | None:
    if layer.node is None:
        return None
    (node, cell, factor), operation = layer.node, layer.operation
    weights = operation.weights if isinstance(operation, Addition) else ()
    if type(operation) not in KINDS:
        return None
    kind = KINDS[type(operation)]
    return Tap(node, factor, cell, layer.parents, kind, tuple(map(float, weights)))


def _step(graph: LayerGraph, layer: Layer) -> steps.Step:
    operation, parents = layer.operation, layer.parents
    if isinstance(operation, Input):
        return steps.Input()
    if isinstance(operation, Dense):
        return _dense(graph, operation, parents)
    if isinstance(operation, Bias):
        return steps.Bias(operation.variance, "all", parents)
    if isinstance(operation, SharedBias):
        return steps.Bias(operation.variance, "scalar", parents)
    if isinstance(operation, Gain):
        return steps.Addition((sqrt(operation.square.value),), parents)
    return _joined(operation, parents)


def _dense(graph: LayerGraph, operation: Dense, parents: tuple[int, ...]) -> steps.Step:
    """Full rank means as many singular values as the narrower side has; entries keep the size."""
    variance, width, family = operation.variance, operation.width, operation.law
    below = graph.layers[parents[0]].operation
    read, rank = graph.widths[parents[0]] or 1, Fraction(1)
    if isinstance(below, Gain):  # a mask: some columns are 0
        family, rank = "padded", Fraction(below.square.value * read / width)
    elif family != "gaussian" and width > read:
        rank = Fraction(read / width)
    return steps.Dense(variance / rank, family, rank, width, operation.outputs, parents)  # type: ignore[arg-type]


def _joined(operation: Operation, parents: tuple[int, ...]) -> steps.Step:
    """A layer without parameters."""
    if isinstance(operation, Activation):
        return steps.Elementwise(operation.tau, parents)
    if isinstance(operation, LayerNorm):
        return steps.LayerNorm(float(operation.epsilon), parents, operation.centred)
    if isinstance(operation, BatchNorm):
        return steps.BatchNorm(float(operation.epsilon), parents)
    if isinstance(operation, Product):
        return steps.Elementwise(Fn(Var(0) * Var(1), 2), parents)
    assert isinstance(operation, Addition)
    return steps.Addition(operation.weights, parents)
