"""Functions of rows written out: each cell of a row is a function of all of its cells."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.passes.sums import cell
from tpcalc.program.base import Table, renumbered
from tpcalc.program.nodes import Data, Kind, LinComb, Node, Nonlin, Ref, RowNonlin, Stack
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes


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
    out, new = Builder(program.dims), dict[Ref, Ref]()
    for ref, node in enumerate(program.nodes):
        out.line = program.line_of(ref)
        new[ref] = _WRITTEN(renumbered(node, new.__getitem__), out)
    for name, ref in program.outputs:
        out.output(name, _ordered(out, new[ref], program.types[ref].axes))
    return out.finish()


def _ordered(out: Builder, ref: Ref, axes: Axes) -> Ref:
    """A node with its axes in an order: cells of outputs are numbered by it."""
    if out.type(ref).axes == axes:
        return ref
    count = prod(size for _, size in axes)
    ones = out.add(Data(f"1[{','.join(name for name, _ in axes)}]", (Fraction(1),) * count, axes))
    if out.type(ref).kind is Kind.SCALAR:
        return out.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (ones, ref)))
    return out.add(LinComb((Fraction(1),), (ones,), (ref,)))


def _row(node: RowNonlin, out: Builder) -> Ref:
    type_ = out.type(node.of)
    size, wide = dict(type_.axes)[node.along], type_.kind is Kind.VECTOR
    read = tuple(cell(out, node.of, node.along, place) for place in range(size))
    slots: list[Expr] = [Var(k) if wide else Par(k) for k in range(size)]
    cells: list[Ref] = []
    for expr in node.row.cells(slots):
        own = Nonlin(Fn(expr, size), read) if wide else Nonlin(Fn(expr, 0, size), (), read)
        cells.append(out.add(own))
    return out.add(Stack(tuple(cells), node.along))


def _same(node: Node, out: Builder) -> Ref:
    return out.add(node)


_WRITTEN: Table[Ref] = Table({RowNonlin: _row}, _same)
