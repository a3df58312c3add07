"""Layers as the recursion follows them, in order of computation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.doors.budget import paced
from tpcalc.errors import EvaluationError, StudyError, TpcalcError
from tpcalc.meanfield.operations import Dense, Number, Operation
from tpcalc.meanfield.state import State
from tpcalc.program.types import Ref
from tpcalc.shown import Shown


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
class LayerGraph(Shown):
    """Layers in order of computation; layer 0 is the input, the last one the output.

    Args:
        layers: The layers.
        names: Names of layers with their numbers.
    """

    layers: tuple[Layer, ...]
    names: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    @property
    def pairs(self) -> tuple[tuple[Operation, tuple[int, ...]], ...]:
        """Operations with the numbers of the layers that they read."""
        return tuple((layer.operation, layer.parents) for layer in self.layers)

    @property
    def widths(self) -> tuple[Number | None, ...]:
        """The width of every layer over n; None for a readout. Inputs count as n wide."""
        return widths_of(self.pairs, Dense)

    @property
    def last(self) -> int:
        """The number of the output."""
        return len(self.layers) - 1


def widths_of(
    pairs: Iterable[tuple[Any, tuple[int, ...]]], matrix: type[Any]
) -> tuple[Number | None, ...]:
    """The width of every layer over n, where layers of one class are matrices."""
    found: list[Number | None] = []
    for operation, parents in pairs:
        if isinstance(operation, matrix):
            found.append(operation.width if operation.outputs is None else None)
        else:
            found.append(found[parents[0]] if parents else Fraction(1))
    return tuple(found)


def propagate(graph: LayerGraph, known: Sequence[State] = ()) -> tuple[State, ...]:
    """The state of every layer.

    Args:
        graph: The graph.
        known: The states of its first layers, where they are known.

    Raises:
        TpcalcError: A layer has no state; its number and operation are told.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.
    """
    found: list[State] = list(known)
    rest = paced(graph.layers[len(found) :], f"{len(graph.layers)} layers")
    for index, layer in enumerate(rest, len(found)):
        try:
            found.append(layer.operation.state([found[p] for p in layer.parents]))
        except TpcalcError as error:
            if error.where is None:
                error.where = f"layer {index} ({layer.operation.name})"
                error.where += (
                    f", {layer.place}" if isinstance(error, StudyError) and layer.place else ""
                )
            if isinstance(error, EvaluationError) and layer.parents:
                error.hint = _sizes(found[layer.parents[0]])
            raise
    return tuple(found)


def _sizes(state: State) -> str:
    """What a layer read that could not be evaluated: mostly, lengths have exploded or died."""
    q, v = state.square.value, state.gap.value
    return f"It reads a layer with q = {q:.3g} and q - c = {v:.3g}; other variances may keep them."
