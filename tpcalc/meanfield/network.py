"""Networks drawn at a finite width."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import prod, sqrt
from typing import TYPE_CHECKING

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.finite.networks.uses import Kind, Tap
from tpcalc.meanfield.graph import Layer, LayerGraph
from tpcalc.meanfield.layers.batch import alone
from tpcalc.meanfield.layers.stretches import NUMBERS
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Gain,
    Input,
    LayerNorm,
    Number,
    Operation,
    Product,
    SharedBias,
    weights_of,
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.networks.network import Architecture, traced
from tpcalc.networks.own import as_network
from tpcalc.program.base import Table, references
from tpcalc.program.program import Program

if TYPE_CHECKING:
    from tpcalc.finite.networks.network import DrawnNetwork

KINDS: dict[type[Operation], Kind] = {
    Input: "input",
    Dense: "weights",
    Bias: "biases",
    SharedBias: "biases",
    Activation: "coordinates",
    LayerNorm: "norm",
    BatchNorm: "norm",
    Addition: "sum",
    Gain: "sum",  # a sum of one, multiplied by numbers of this mean square
    Product: "product",
}


def network_of(
    source: Layers,
    width: int,
    inputs: int,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> DrawnNetwork:
    r"""A network drawn at a width: a function of batches that shows all of its layers.

    Weights of a network have the variance 1 / fan-in times the squares of the factors in front of
    them, and shared weights are one matrix. It has as many outputs as it is wide, and shows the
    layers that the recursion reads; where the recursion does not hold it shows all vectors. Batch
    norm is over the batch at hand.

    Args:
        source: The network.
        width: n.
        inputs: Features of an input.
        seed: For the weights.
        device: ``"cpu"``, ``"cuda"``, ``"auto"``.
        dtype: ``"float64"``, ``"float32"`` or ``"bfloat16"``.

    Returns:
        A function of batches of torch, with ``layers`` and ``sizes``.

    Raises:
        UsageError: A rank or a width that no whole number of neurons has; layers that are no
            network.
        StudyError: Features that the axes of an input cannot share, an infinite batch whose inputs
            are joined otherwise than by averages.
        MissingBackend: No torch, or no such device.

    Example:
        >>> from tpcalc.meanfield.notation.notation import parse_graph
        >>> network = network_of(parse_graph("x = input()\na = dense(x, width=1/2)"), 16, 4)
        >>> network.sizes
        (4, 8)
        >>> from tpcalc.networks.architectures import lookup
        >>> network_of(lookup("mlp").make(2, "relu"), width=8, inputs=4).sizes
        (4, 8, 8, 8, 8, 8)
    """
    from tpcalc.finite.networks.network import DrawnNetwork
    from tpcalc.finite.networks.uses import layout_of

    network, width = as_network(source), checks.whole(width, "width", least=1)
    inputs = checks.whole(inputs, "inputs", least=1)
    program, taps = (_known if isinstance(network, Hashable) else _read)(network, inputs, width)
    drawn = DrawnNetwork(program, width, seed, device, dtype, taps=taps)
    for name, uses in drawn.uses.items():
        mark, weights = program.families[name].mark, drawn.parameters[name]
        if mark is None or mark.bias or not uses:
            continue
        layout = layout_of(uses[0])
        columns = [weights.shape[place] for place in layout.parameter[sum(layout.groups[:2]) :]]
        weights /= sqrt(width if mark.keeping.constant else prod(columns))
    return drawn


def _read(network: Architecture, inputs: int, width: int) -> tuple[Program, tuple[Tap, ...]]:
    """The program of a network, and its layers in it."""
    graph = _followed(network)
    program = _written(network, graph, inputs, width)
    return program, () if graph is None else _taps(network, graph, program)


_known = lru_cache(maxsize=16)(_read)  # other seeds ask for the same


def _followed(network: Architecture) -> LayerGraph | None:
    """The layers that the recursion reads; None where it reads none."""
    try:
        return layers(network)
    except StudyError:
        return None


def _written(network: Architecture, graph: LayerGraph | None, inputs: int, outputs: int) -> Program:
    """The program: of one input where the cells of an axis are a batch."""
    if network.infinite or (network.axes and graph is not None):
        return alone(network, traced(network, network.tokens * inputs, outputs))
    return traced(network, inputs, outputs)


def _taps(network: Architecture, graph: LayerGraph, program: Program) -> tuple[Tap, ...]:
    """The layers as nodes of the program; none where a layer is no multiple of a node."""
    small = _written(network, graph, NUMBERS, 1)
    shape, other = ([(type(n), references(n)) for n in p.nodes] for p in (small, program))
    if shape != other:  # its nodes depend on the size of the data
        return ()
    found = [_tap(layer) for layer in graph.layers]
    return tuple(tap for tap in found if tap is not None) if all(found) else ()


def _tap(layer: Layer) -> Tap | None:
    if layer.node is None:
        return None
    (node, cell, factor), operation = layer.node, layer.operation
    weights = tuple(map(float, _FACTORS(operation)))
    return Tap(node, factor, cell, layer.parents, KINDS[type(operation)], weights)


_FACTORS: Table[tuple[Number, ...]] = Table(
    {Gain: lambda operation: (sqrt(operation.factor.value),)}, weights_of
)
