"""Networks of one layer that is repeated, as the maps of that layer take them."""

from __future__ import annotations

from typing import NamedTuple

from tpcalc.errors import StudyError
from tpcalc.meanfield.operations import Activation, Bias, Dense, Number, Operation
from tpcalc.meanfield.reading import Layers, layers


class Repeated(NamedTuple):
    """Weights, biases and an activation, layer after layer.

    Args:
        activation: The activation.
        weights: The variance of the weights, times the fan-in.
        biases: The variance of the biases.
        depth: How many layers there are.
    """

    activation: Activation
    weights: Number
    biases: Number
    depth: int


def repeated(network: Layers) -> Repeated:
    """The layer that a network repeats; what enters and what leaves may be of other variances.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> found = repeated(lookup("mlp").make(3, "tanh", weight_variance=1.5))
        >>> found.activation.name, found.weights, found.depth
        ('tanh', Fraction(3, 2), 3)
    """
    blocks: list[list[Operation]] = []
    for index, layer in enumerate(layers(network).layers[1:], 1):
        if layer.parents != (index - 1,) or not isinstance(
            layer.operation, Dense | Bias | Activation
        ):
            raise _other(index, layer.operation, "is none of them")
        if isinstance(layer.operation, Dense):
            blocks.append([])
        if not blocks or (blocks[-1] and isinstance(blocks[-1][-1], Activation)):
            raise _other(index, layer.operation, "comes with no matrix before it")
        blocks[-1].append(layer.operation)
    curved = [block for block in blocks if isinstance(block[-1], Activation)]
    if not curved:
        raise StudyError("a network without activations repeats none.", where="survey")
    inner = curved[1:] or curved
    first = _of(inner[0], 1)
    for place, block in enumerate(inner[1:], 3):
        if _of(block, 1) != first:
            raise StudyError(
                f"layers 2 and {place} of the network differ, and the maps are those of one layer "
                "that is repeated.",
                where="survey",
                hint="tp.signal.nonlinearity goes through the layers as they are.",
            )
    return first._replace(depth=len(curved))


def _of(block: list[Operation], depth: int) -> Repeated:
    activation = block[-1]
    assert isinstance(activation, Activation)
    weights = next(one.variance for one in block if isinstance(one, Dense))
    biases: Number = sum(one.variance for one in block if isinstance(one, Bias))
    return Repeated(activation, weights, biases, depth)


def _other(index: int, operation: Operation, said: str) -> StudyError:
    return StudyError(
        f"the maps are those of matrix, biases and activation, layer after layer; layer {index} "
        f"({operation.name}) {said}.",
        where="survey",
        hint="tp.signal.nonlinearity goes through any layers.",
    )
