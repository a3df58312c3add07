"""The Gaussians of a limit graph: start vectors, hats, and vectors as functions of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tpcalc.functions import Expr
from tpcalc.limit.graph import LRef

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


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector as a function of Gaussians.

    Args:
        expr: The function; ``Var(i)`` is Gaussian i, ``Par(i)`` scalar i.
        support: What it depends on.
        terms: Of a sum: coefficient and vector of each term.
        gaussian: Its own number where it is Gaussian itself.
        whole: Of a vector minus its own average: that vector.
    """

    expr: Expr
    support: frozenset[Primitive]
    terms: tuple[tuple[Expr, LRef], ...] = ()
    gaussian: int | None = None
    whole: LRef | None = None


@dataclass(frozen=True, slots=True)
class Correction(Generic[T]):
    """A product with a matrix that its vector depends on: hat + coefficient * Z of ``earlier``.

    Args:
        matrix: The matrix.
        transpose: Whether it is the transposed matrix that is applied.
        coefficient: The number in front.
        earlier: The vector that the other side of the matrix was applied to.
    """

    matrix: str
    transpose: bool
    coefficient: T
    earlier: LRef


def related(
    left: Gaussian[T], right: Gaussian[T], diagonal: frozenset[str]
) -> Iterator[tuple[Primitive, Primitive]]:
    """The pairs of primitives of two Gaussians that may be correlated.

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
