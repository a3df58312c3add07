"""How much ``split`` would write of a program of blocks."""

from __future__ import annotations

from math import prod

from tpcalc.program.base import Table, references
from tpcalc.program.nodes import LinComb
from tpcalc.program.program import Program
from tpcalc.program.types import Ref

__all__ = ["MANY", "cells_of"]

MANY = 60_000
"""Cells from which on blocks are read as they are."""


def cells_of(program: Program) -> int:
    """The cells of all nodes, and the terms of their sums.

    Args:
        program: The program.

    Example:
        >>> from tpcalc.program.nodes import Family, Input
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> builder.output("x", builder.add(Input(Family("x", ("n",), (("b", 5),)))))
        >>> cells_of(builder.finish())
        5
    """
    return sum(_TERMS(node, program, ref) for ref, node in enumerate(program.nodes))


def _cells(node: object, program: Program, ref: Ref) -> int:
    return prod(size for _, size in program.types[ref].axes)


def _terms(node: LinComb, program: Program, ref: Ref) -> int:
    sizes = {name: size for one in references(node) for name, size in program.types[one].axes}
    own = (prod(sizes[name] for name in names) for names in node.over or ((),) * len(node.numbers))
    return _cells(node, program, ref) * sum(own)


_TERMS: Table[int] = Table({LinComb: _terms}, _cells)
