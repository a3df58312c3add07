"""Layers of a network: the nodes of its program that are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from tpcalc.names import what_of
from tpcalc.program.base import references
from tpcalc.program.program import Program
from tpcalc.program.types import Ref

Tensor = Any
Kind = Literal["", "input", "weights", "biases", "coordinates", "product", "norm", "sum"]


@dataclass(frozen=True, slots=True)
class Tap:
    """A layer: a node times a factor.

    Args:
        node: The node.
        factor: The factor.
        cell: One cell of its block; () for the whole.
        parents: The numbers of the layers that it is computed from.
        kind: What it does with them; "" where that is not known.
        weights: Of a sum the factors in front of its parents.
    """

    node: Ref
    factor: float = 1.0
    cell: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    kind: Kind = ""
    weights: tuple[float, ...] = ()

    def of(self, value: Tensor, inputs: int) -> Tensor:
        """The layer, a row for each input.

        Args:
            value: The value of its node.
            inputs: How many inputs there are.
        """
        if self.cell:
            value = value[(slice(None), *self.cell)]
        if value.ndim == 1:
            value = value[:, None]
        found = value if value.ndim == 2 else value.flatten(1)
        if self.factor != 1:
            found = found * self.factor
        return found if len(found) == inputs else found.expand(inputs, -1)

    def back(self, layer: Tensor, value: Tensor) -> Tensor:
        """The value of its node, made from the layer, so that later ones depend on it."""
        found = layer if self.factor == 1 else layer / self.factor
        return found if found.shape == value.shape else found.reshape(-1, *value.shape[1:])


@runtime_checkable
class HasTaps(Protocol):
    """A network whose layers say what they are computed from, and how."""

    taps: tuple[Tap, ...]
    dtype: Any
    device: Any

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each layer has."""

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch."""

    def layer(self, index: int, reads: Sequence[Tensor]) -> Tensor:
        """One layer as a function of the layers that it reads."""


def shown(program: Program, slot: Ref) -> tuple[Tap, ...]:
    """The input, all vectors that depend on it, and the outputs."""
    depends = dependent(program, slot)
    outputs = [ref for name, ref in program.outputs if what_of(name) == "f"]
    vectors = [ref for ref in sorted(depends) if program.types[ref].width]
    return tuple(Tap(ref) for ref in dict.fromkeys((slot, *vectors, *outputs)))


def dependent(program: Program, slot: Ref) -> set[Ref]:
    """The nodes that depend on a node, and it itself."""
    found = {slot}
    for ref, node in enumerate(program.nodes):
        if found.intersection(references(node)):
            found.add(ref)
    return found
