"""How large a program is once every cell is a node, and from where on it is read as blocks."""

from __future__ import annotations

from math import prod
from typing import get_args

from tpcalc import checks
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, OuterNonlin
from tpcalc.program.program import Program
from tpcalc.program.types import ReadAs, Ref

MANY = 60_000  # cells and terms: what splits into more is read as blocks
SOME = 5_000  # the same where leading coefficients are tested, which takes longer cell by cell


def is_read_as_blocks(program: Program, reading: ReadAs, many: int = MANY) -> bool:
    """Whether a program stays blocks: where that is asked for, or where its cells are many."""
    checks.one_of("reading", reading, get_args(ReadAs))
    large = reading == "blocks" or (reading == "auto" and cells_of(program) > many)
    return program.has_blocks and large


def cells_of(program: Program) -> int:
    """An estimate of how many cells, and terms of their sums, ``split`` would write.

    Example:
        >>> from tpcalc.program.nodes import Data
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> x = builder.add(Data("x", (1, 2, 3), (("b", 3),)))
        >>> builder.output("sum", builder.add(LinComb((1,), (None,), (x,), (("b",),))))
        >>> cells_of(builder.finish())
        6
    """
    return sum(
        prod(size for _, size in type_.axes) * _TERMS(node, program)
        for node, type_ in zip(program.nodes, program.types, strict=True)
    )


def _terms(node: LinComb, program: Program) -> int:
    return sum(
        _summed(program, (vector,) if scalar is None else (scalar, vector), axes)
        for _, scalar, vector, axes in node.terms
    )


def _pairs(node: OuterNonlin, program: Program) -> int:
    """Of forms the products that they are sums of."""
    pairs = zip(node.rows, node.cols, strict=True) if node.forms else ()
    return sum(_summed(program, pair, node.over) for pair in pairs) or 1


def _summed(program: Program, refs: tuple[Ref, ...], over: tuple[str, ...]) -> int:
    sizes = {name: size for ref in refs for name, size in program.types[ref].axes}
    return prod(sizes.get(name, 1) for name in over)


_TERMS: Table[int] = Table({LinComb: _terms, OuterNonlin: _pairs}, lambda node, program: 1)
