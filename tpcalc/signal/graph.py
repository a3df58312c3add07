"""Layer graphs: operations with the layers that they read, in order of computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.errors import EvaluationError, StudyError, TpcalcError
from tpcalc.program.types import Ref
from tpcalc.signal.conditions import check_conditions
from tpcalc.signal.operations import (
    Addition,
    Dense,
    Input,
    Number,
    Operation,
    Product,
    SharedBias,
    SpanBias,
)
from tpcalc.signal.state import State

__all__ = ["Layer", "LayerGraph", "chain", "propagate"]


@dataclass(frozen=True, slots=True)
class Layer:
    """An operation and the numbers of the layers that it reads.

    Args:
        operation: What it does.
        parents: What it reads.
        place: Where it comes from, a node and the user's line, for messages.
        node: Of a network that was read: the node of its program that the layer is a multiple of,
            the cell of its block, and the multiple; None where no node is.
    """

    operation: Operation
    parents: tuple[int, ...]
    place: str = field(default="", compare=False)
    node: tuple[Ref, tuple[int, ...], float] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LayerGraph:
    """Layers in order of computation; layer 0 is the input, the last one the output.

    Args:
        layers: The layers.
        names: Names of layers with their numbers.

    Raises:
        StudyError: No input at the start, a layer that reads one which comes later, layers of
            different widths in a sum, a rank above the width, a bias in a span that is none.

    Example:
        >>> from tpcalc.signal.operations import Dense
        >>> graph = LayerGraph((Layer(Input(), ()),)).then(Dense(2.0)).then(Dense(3.0))
        >>> [layer.operation.name for layer in graph.layers], graph.layers[2].parents
        (['input', 'dense', 'dense'], (1,))
    """

    layers: tuple[Layer, ...]
    names: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.layers or not isinstance(self.layers[0].operation, Input):
            raise StudyError("the first layer is no input.", where="LayerGraph")
        for index, layer in enumerate(self.layers):
            if index and isinstance(layer.operation, Input):
                raise StudyError(
                    "there is one input (Definition 22); this is another.",
                    where=f"layer {index} (input)",
                )
            wanted = _inputs(layer.operation)
            if len(layer.parents) != wanted or not all(0 <= p < index for p in layer.parents):
                raise StudyError(
                    f"layer {index} ({layer.operation.name}) reads the layers "
                    f"{', '.join(map(str, layer.parents)) or 'none'}; it takes {wanted} that come "
                    "before it.",
                    where="LayerGraph",
                )
        _check_widths(self)

    @property
    def pairs(self) -> tuple[tuple[Operation, tuple[int, ...]], ...]:
        """Operations with the numbers of the layers that they read."""
        return tuple((layer.operation, layer.parents) for layer in self.layers)

    @property
    def widths(self) -> tuple[Number | None, ...]:
        """The width of every layer over n; None for a readout. Inputs count as n wide."""
        return _widths(self)

    @property
    def last(self) -> int:
        """The number of the output."""
        return len(self.layers) - 1

    def then(self, operation: Operation, *parents: int) -> LayerGraph:
        """The graph with one more layer.

        Args:
            operation: What it does.
            parents: The layers that it reads; the last one by default.
        """
        read = parents or (self.last,)
        return replace(self, layers=(*self.layers, Layer(operation, read)))


def _widths(graph: LayerGraph) -> tuple[Number | None, ...]:
    found: list[Number | None] = []
    for layer in graph.layers:
        if isinstance(layer.operation, Dense):
            readout = layer.operation.outputs is not None
            found.append(None if readout else layer.operation.width)
        else:
            found.append(found[layer.parents[0]] if layer.parents else Fraction(1))
    return tuple(found)


def _check_widths(graph: LayerGraph) -> None:
    widths = graph.widths
    for index, layer in enumerate(graph.layers):
        operation = layer.operation
        where = f"layer {index} ({operation.name})"
        read = [widths[parent] for parent in layer.parents]
        if None in read:
            raise StudyError("it reads a readout, whose width does not grow.", where=where)
        if len(set(read)) > 1:
            shown = ", ".join(f"{width} n" for width in read)
            raise StudyError(f"it joins layers of the widths {shown}.", where=where)
        if isinstance(operation, Dense) and operation.rank is not None:
            _check_rank(operation, read[0] or 1, where)
        if isinstance(operation, SpanBias | SharedBias):
            before = graph.layers[layer.parents[0]].operation
            if not isinstance(before, Dense) or before.rank != operation.rank:
                raise StudyError(
                    f"its biases lie in the span of a dense layer of the rank {operation.rank}, "
                    f"but it reads layer {layer.parents[0]} ({before.name}).",
                    where=where,
                    hint="Put it right after that layer, with the same rank.",
                )


def _check_rank(operation: Dense, read: Number, where: str) -> None:
    if operation.outputs is not None:
        raise StudyError("a readout has no rank of its own.", where=where)
    orthogonal = operation.family in ("orthogonal", "padded")
    if orthogonal and (operation.rank or 1) * operation.width > read:
        raise StudyError(
            f"the rank is {operation.rank} times the width of {operation.width} n, more than the "
            f"{read} n coordinates that it reads.",
            where=where,
            hint="The rank is at most the smaller width.",
        )


def _inputs(operation: Operation) -> int:
    if isinstance(operation, Input):
        return 0
    if isinstance(operation, Product):
        return 2
    return len(operation.weights) if isinstance(operation, Addition) else 1


def chain(start: Input, operations: Sequence[Operation]) -> LayerGraph:
    """One layer after the other.

    Args:
        start: The inputs.
        operations: What the layers do.

    Example:
        >>> from tpcalc.signal.operations import Dense
        >>> chain(Input(), [Dense(2.0)] * 3).last
        3
    """
    layers = [Layer(start, ())]
    layers += [Layer(operation, (index,)) for index, operation in enumerate(operations)]
    return LayerGraph(tuple(layers))


def propagate(graph: LayerGraph, known: Sequence[State] = ()) -> tuple[State, ...]:
    """The state of every layer.

    Args:
        graph: The graph.
        known: The states of its first layers, where they are known.

    Raises:
        StudyError: Layers that no dense layer separates are not independent.
        TpcalcError: A layer has no state; its number and operation are told.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> from tpcalc.signal.operations import Activation, Dense
        >>> relu = Activation(lookup("relu").fn.expr, "relu")
        >>> states = propagate(chain(Input(1, 0), [Dense(2), relu] * 2))
        >>> round(states[-1].square.value, 9), round(states[-1].bias, 6)
        (1.0, 1.40543)
    """
    check_conditions(graph.pairs)
    found: list[State] = list(known)
    for index, layer in enumerate(graph.layers[len(found) :], len(found)):
        try:
            found.append(layer.operation.state([found[p] for p in layer.parents]))
        except TpcalcError as error:
            if error.where is None:
                error.where = f"layer {index} ({layer.operation.name})"
            if isinstance(error, EvaluationError) and layer.parents:
                error.hint = _sizes(found[layer.parents[0]])
            raise
    return tuple(found)


def _sizes(state: State) -> str:
    """What a layer read that could not be evaluated: mostly, lengths have exploded or died."""
    q, v = state.square.value, state.gap.value
    return f"It reads a layer with q = {q:.3g} and q - c = {v:.3g}; other variances may keep them."
