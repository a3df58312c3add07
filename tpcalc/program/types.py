"""Types of values: which of their axes grow with the width, and which finite axes they have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Literal

from tpcalc.errors import ProgramError

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
