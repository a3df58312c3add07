"""Layers as the recursion follows them, in order of computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tpcalc.errors import StudyError, TpcalcError
from tpcalc.meanfield.operations import Operation
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

    @contextmanager
    def at(self, index: int) -> Iterator[Layer]:
        """A layer at work: errors that have no place are at it."""
        layer = self.layers[index]
        try:
            yield layer
        except TpcalcError as error:
            if error.where is None:
                told = isinstance(error, StudyError) and layer.place
                error.where = f"layer {index} ({layer.operation.name})"
                error.where += f", {layer.place}" if told else ""
            raise

    def __getitem__(self, some: slice) -> LayerGraph:
        """The first layers, up to a number."""
        kept = self.layers[: some.stop]
        names = tuple(pair for pair in self.names if pair[1] < len(kept))
        return LayerGraph(kept, names)

    @property
    def words(self) -> str:
        """The layers in a phrase."""
        count = sum(operation.bends and len(parents) == 1 for operation, parents in self.pairs)
        return f"{len(self.layers)} layers, {count} of them activations"

    @property
    def last(self) -> int:
        """The number of the output."""
        return len(self.layers) - 1
