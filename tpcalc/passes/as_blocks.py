"""Programs that are read as blocks: when they are, and what is written out before.

Functions of rows are written out, since each cell of a row is a function of all of its cells; and
outputs, where one for each cell is asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import get_args

from tpcalc import checks
from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.names import cell_name
from tpcalc.passes.rewriting import Rewriting
from tpcalc.passes.sums import cell, picked
from tpcalc.program.base import Table
from tpcalc.program.nodes import (
    Data,
    Kind,
    LinComb,
    Nonlin,
    OuterNonlin,
    Ref,
    RowNonlin,
    Stack,
)
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes, ReadAs

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


def rows_written(program: Program) -> Program:
    """The program with a function of single cells, side by side, for each function of rows.

    All other axes stay: the nodes that a row takes do not depend on how many rows there are.

    Example:
        >>> from tpcalc.activations.rows import row
        >>> from tpcalc.program.nodes import Data
        >>> builder = Builder()
        >>> scores = builder.add(Data("s", (1, 2, 3, 4), (("b", 2), ("p", 2))))
        >>> builder.output("w", builder.add(RowNonlin(row("softmax"), scores, "p")))
        >>> written = rows_written(builder.finish())
        >>> str(written.types[written.ref("w")])
        '[b:2,p:2]'
    """
    made = Rewriting(program, Builder(program.dims))
    made.each(lambda node, ref: _WRITTEN(node, made), range(len(program.nodes)))
    for name, ref in program.outputs:
        made.out.output(name, _ordered(made.out, made.new[ref], program.types[ref].axes))
    return made.out.finish()


def _ordered(out: Builder, ref: Ref, axes: Axes) -> Ref:
    """A node with its axes in an order: cells of outputs are numbered by it."""
    if out.type(ref).axes == axes:
        return ref
    count = prod(size for _, size in axes)
    ones = out.add(Data(f"1[{','.join(name for name, _ in axes)}]", (Fraction(1),) * count, axes))
    if out.type(ref).kind is Kind.SCALAR:
        return out.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (ones, ref)))
    return out.add(LinComb((Fraction(1),), (ones,), (ref,)))


def _row(node: RowNonlin, made: Rewriting) -> Ref:
    out, of = made.out, made.new[node.of]
    type_ = out.type(of)
    size, wide = dict(type_.axes)[node.along], type_.kind is Kind.VECTOR
    read = tuple(cell(out, of, node.along, place) for place in range(size))
    slots: list[Expr] = [Var(k) if wide else Par(k) for k in range(size)]
    cells: list[Ref] = []
    for expr in node.row.cells(slots):
        own = Nonlin(Fn(expr, size), read) if wide else Nonlin(Fn(expr, 0, size), (), read)
        cells.append(out.add(own))
    return out.add(Stack(tuple(cells), node.along))


_WRITTEN: Table[Ref] = Table({RowNonlin: _row}, lambda node, made: made.copied(node))


def with_cells(program: Program, names: Collection[str] | None = None) -> Program:
    """The program with an output for each cell of its outputs; its nodes stay blocks.

    Example:
        >>> from tpcalc.program.nodes import Data
        >>> builder = Builder()
        >>> builder.output("x", builder.add(Data("x", (1, 2), (("b", 2),))))
        >>> [name for name, _ in with_cells(builder.finish()).outputs]
        ['x[0]', 'x[1]']
    """
    out = Builder.copy(replace(program, outputs=()))
    for name, ref in program.outputs:
        axes = program.types[ref].axes if names is None or name in names else ()
        for place in product(*(range(size) for _, size in axes)):
            out.output(cell_name(name, place), picked(out, ref, axes, place))
    return out.finish(keep_unused=False)
