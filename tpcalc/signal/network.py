"""A layer graph as a network of finite width."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any

from tpcalc.errors import StudyError
from tpcalc.finite.layered import steps
from tpcalc.functions import Fn, Var
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

__all__ = ["network_of", "steps_of"]


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

    Args:
        source: The network, or layers; every layer gets weights of its own.
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
    """
    from tpcalc.finite.layered.network import Layered

    return Layered(steps_of(source), width, inputs, seed, device, dtype)


def _step(graph: LayerGraph, layer: Layer) -> steps.Step:
    operation, parents = layer.operation, layer.parents
    if isinstance(operation, Input):
        return steps.Input()
    if isinstance(operation, Dense):
        if operation.exponent:
            raise StudyError(
                f"weights have the variance {operation.variance} n^({operation.exponent}) / "
                "fan-in.",
                where="network_of",
                hint="Write the power of the width into the variance.",
            )
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
