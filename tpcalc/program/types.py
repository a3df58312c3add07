"""The types of values, and what type rules need of the part of a program before a node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Literal

from tpcalc.errors import ProgramError
from tpcalc.functions import Fn

AXIS = r"[A-Za-z_]\w*'*"
"""A name that may stand in a type."""

Ref = int
"""The index of an earlier node. Fields of nodes that are annotated with it hold references."""

Count = int
"""How often a block is repeated; 0 stands for the symbol L."""

Axes = tuple[tuple[str, int], ...]
"""Finite axes, each with its size; their order has no meaning."""


ReadAs = Literal["auto", "blocks", "cells"]
"""How a program is read: as the blocks that it is written in, cell by cell, or as its size says."""


class Kind(Enum):
    """What a node yields, but for its finite axes."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"


_KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension class: a dimension that goes to infinity as ``ratio * n``."""

    name: str
    ratio: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Type:
    """The width axes of a value, (d,) for a vector and (rows, cols) for a matrix, and its others.

    Example:
        >>> str(Type(("n",), (("b", 4), ("p", 8)))), str(Type(("n", "m"))), str(Type())
        ('n[b:4,p:8]', 'n*m', '()')
    """

    width: tuple[str, ...] = ()
    axes: Axes = ()

    @property
    def kind(self) -> Kind:
        """Scalar, vector or matrix."""
        return _KINDS[len(self.width)]

    def __str__(self) -> str:
        inside = axes_text(self.axes)
        return "*".join(self.width) + inside if self.width or inside else "()"


def axes_text(axes: Iterable[tuple[str, int]]) -> str:
    """Axes in brackets; nothing where there are none."""
    inside = ",".join(f"{name}:{size}" for name, size in axes)
    return f"[{inside}]" if inside else ""


def bare(name: str) -> bool:
    """Whether a name may stand in a type."""
    return re.fullmatch(AXIS, name) is not None


def check_axes(axes: Axes, what: str, where: str) -> None:
    """Check that finite axes have names that can be written, each once, and cells."""
    for name, size in axes:
        if not bare(name):
            raise ProgramError(f"an axis is called by a word, not {name!r}.", where=where)
        if [one for one, _ in axes].count(name) > 1 or size < 1:
            problem = "twice" if size >= 1 else "without cells"
            raise ProgramError(f"{what} has the axis {name!r} {problem}.", where=where)


@dataclass(frozen=True, slots=True)
class Typing:
    """The types before a node, and the messages of what does not fit."""

    types: Sequence[Type]  # the type of each earlier node
    place: str  # the node, for messages

    def fail(self, message: str, hint: str | None = None) -> ProgramError:
        """An error that says where."""
        return ProgramError(message, where=self.place, hint=hint)

    def vector(self, ref: Ref) -> Type:
        """The type of a node that must be a vector, or a block of vectors."""
        found = self.types[ref]
        if found.kind is not Kind.VECTOR:
            raise self.fail(f"%{ref} is a {found.kind.value}; a vector is needed here.")
        return found

    def common_dim(self, refs: Sequence[Ref]) -> str:
        """The dimension class that vectors share."""
        if not refs:
            raise self.fail("at least one vector is needed to know the dimension.")
        names = [self.vector(ref).width[0] for ref in refs]
        for ref, name in zip(refs, names, strict=True):
            if name != names[0]:
                raise self.fail(
                    f"%{refs[0]} lives on {names[0]!r} and %{ref} on {name!r}: coordinates of "
                    "different dimension classes cannot be combined one by one.",
                    hint="Take a moment of one of them first, or multiply it by a matrix.",
                )
        return names[0]

    def scalars(self, refs: Sequence[Ref]) -> None:
        """Check that nodes are scalars, or blocks of scalars."""
        for ref in refs:
            if self.types[ref].kind is not Kind.SCALAR:
                raise self.fail(f"%{ref} is a {self.types[ref].kind.value}; a scalar is needed.")

    def arity(self, fn: Fn, vectors: int, scalars: int) -> None:
        """Check the number of arguments of a function."""
        if (fn.vectors, fn.scalars) != (vectors, scalars):
            raise self.fail(
                f"{fn.text} takes {fn.vectors} vectors and {fn.scalars} scalars; "
                f"{vectors} and {scalars} are given."
            )

    def axes(self, refs: Sequence[Ref]) -> Axes:
        """The finite axes of what is computed of nodes: they meet by name, with one size."""
        found: dict[str, tuple[int, Ref]] = {}
        for ref in refs:
            for name, size in self.types[ref].axes:
                known, first = found.setdefault(name, (size, ref))
                if known != size:
                    raise self.fail(
                        f"the axis {name!r} has {known} cells in %{first} ({self.types[first]}) "
                        f"and {size} in %{ref} ({self.types[ref]}).",
                        hint="Axes meet by name: give one of the two another name.",
                    )
        return tuple((name, size) for name, (size, _) in found.items())
