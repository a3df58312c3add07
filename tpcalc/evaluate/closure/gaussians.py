"""The Gaussians of a limit graph: start vectors, hats, and their linear combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tpcalc.limit.graph import LRef

__all__ = ["Gaussian", "Hat", "Member", "Primitive", "family", "related"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """Member ``index`` of a group of start vectors."""

    group: str
    index: int


@dataclass(frozen=True, slots=True)
class Hat:
    """The Gaussian part of a product with a matrix."""

    matrix: str
    transpose: bool
    vector: LRef


Primitive = Member | Hat


def family(primitive: Primitive) -> tuple[str, ...]:
    """What is correlated at all: one group, or one side of one matrix.

    Args:
        primitive: A Gaussian of the graph.

    Example:
        >>> family(Hat("W", True, 3)) == family(Hat("W", True, 4))
        True
    """
    if isinstance(primitive, Member):
        return ("start", primitive.group)
    return ("matrix", primitive.matrix, "T" if primitive.transpose else "")


@dataclass(frozen=True)
class Gaussian(Generic[T]):
    """A linear combination of primitives plus a number.

    Args:
        parts: The coefficient of each primitive.
        mean: The number (the means of start vectors are in the primitives).
    """

    parts: Mapping[Primitive, T]
    mean: T


def related(
    left: Gaussian[T], right: Gaussian[T], diagonal: frozenset[str]
) -> Iterator[tuple[Primitive, Primitive]]:
    """The pairs of primitives of two Gaussians that may be correlated.

    Args:
        left: A Gaussian.
        right: Another one.
        diagonal: Groups whose members are independent of each other.

    Example:
        >>> u = Gaussian({Member("u", 0): 1.0, Member("u", 1): 1.0}, 0.0)
        >>> len(list(related(u, u, frozenset()))), len(list(related(u, u, frozenset({"u"}))))
        (4, 2)
    """
    own: dict[tuple[str, ...], list[Primitive]] = {}
    for primitive in right.parts:
        own.setdefault(family(primitive), []).append(primitive)
    for p in left.parts:
        if isinstance(p, Member) and p.group in diagonal:
            if p in right.parts:
                yield p, p
        else:
            for q in own.get(family(p), ()):
                yield p, q
