"""Blocks lowered to single vectors: every cell becomes a node of its own.

What reads single vectors is fed by this pass. It is exact at every width:

- numbers that are given are folded into functions and coefficients;
- what has a factor that is 0, as adjoints of what nothing reads, is 0 and is not written;
- sums stay open, so that a sum of sums is one linear combination with like terms collected;
- an argument that stands in a function twice is one argument, and a function that is its argument
  is that argument;
- members of a block of start vectors stay one family, as they may be correlated; matrices and
  random numbers become families of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import as_number
from tpcalc.names import cell_name
from tpcalc.passes.as_blocks import cells_of
from tpcalc.passes.cells import Cell, Cells, Value, Where, is_zero
from tpcalc.passes.cells import Report as Report
from tpcalc.passes.separate import is_sign, separated
from tpcalc.passes.sums import Form
from tpcalc.program.base import scale_of
from tpcalc.program.nodes import (
    Data,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.program import Builder, Program
from tpcalc.program.rules import Level, Rules, interpret

MOST = 2_000_000  # cells


def split_reports(
    program: Program,
    groups: Iterable[Sequence[Report]],
    closed: Collection[Ref],
    long: Collection[Ref] = (),
) -> Program:
    """A training run with a node for each cell; what is reported is named input by input."""
    check_size(program)
    state = Cells(program, Builder(program.dims), apart=True)
    state.named, state.first = frozenset((*closed, *long)), frozenset(closed)
    interpret(program, SPLIT_RULES, state)
    for group in groups:
        last = max((report.first + report.count for report in group), default=0)
        for index in range(last):
            for report in group:
                if report.first <= index < report.first + report.count:
                    state.report(report, index)
    return state.out.finish(keep_unused=False)


def split(program: Program) -> Program:
    """The program with a node for each cell; itself where it has no finite axes.

    Args:
        program: Any program. An output with axes becomes one for each cell, ``f[0,1]``.

    Raises:
        ProgramError: Random numbers that are correlated, two outputs that get one name, or more
            cells than a machine holds.

    Example:
        >>> from tpcalc.program.nodes import Family, Input
        >>> builder = Builder()
        >>> builder.output("x", builder.add(Input(Family("x", ("n",), (("b", 2),), mean=(0, 0)))))
        >>> [name for name, _ in split(builder.finish()).outputs]
        ['x[0]', 'x[1]']
    """
    return _split(program).out.finish(keep_unused=False) if program.has_blocks else program


def celled(program: Program) -> Program:
    """The split program with further outputs: ``%7[0]`` is cell 0 of node 7.

    Sums that only stand in other sums are nodes here, after all others.
    """
    state = _split(program)
    for ref, cells in enumerate(state.values):
        for cell, value in cells.items():
            if isinstance(value, Fraction | float):
                continue
            node = state.node(value)
            if state.out.type(node).kind is not Kind.MATRIX:
                state.out.output(cell_name(f"%{ref}", cell), node)
    return state.out.finish(keep_unused=False)


def check_size(program: Program) -> None:
    """Check that a program has no more cells than can be looked at one by one."""
    count = cells_of(program)
    if count > MOST:
        raise ProgramError(
            f"the program has about {count} cells, and this question reads them one by one "
            f"({MOST} at most).",
            where=f"a program of {len(program.nodes)} nodes",
            hint="Take fewer samples or steps; tp.limit and tp.simulate read blocks.",
        )


def _split(program: Program) -> Cells:
    check_size(program)
    state = Cells(program, Builder(program.dims))
    interpret(program, SPLIT_RULES, state)
    for name, ref in program.outputs:
        for cell, value in state.values[ref].items():
            state.out.output(cell_name(name, cell), state.node(value))
    return state


def _each(rule: Callable[[Any, Cells, Where], Value]) -> Callable[[Any, Ref, Any, Cells], Any]:
    """A rule of one cell as a rule of all cells."""

    def every(node: Any, ref: Ref, values: Any, state: Cells) -> dict[Cell, Value]:
        type_ = state.program.types[ref]
        state.line = state.program.line_of(ref)
        names = [name for name, _ in type_.axes]
        found = {
            cell: rule(node, state, dict(zip(names, cell, strict=True)))
            for cell in state.cells(type_)
        }
        if ref in state.named:  # later sums refer to it, so that its adjoint is complete
            nodes = {cell: state.node(value) for cell, value in found.items()}
            found = dict(nodes)
            state.given.update(nodes.values() if ref in state.first else ())
        state.values.append(found)
        return found

    return every


def _kept(
    rule: Callable[[Any, Ref, Cells], dict[Cell, Any]],
) -> Callable[[Any, Ref, Any, Cells], Any]:
    """A rule that gives all cells at once."""

    def every(node: Any, ref: Ref, values: Any, state: Cells) -> dict[Cell, Any]:
        state.line = state.program.line_of(ref)
        state.values.append(rule(node, ref, state))
        return state.values[-1]

    return every


def _data(node: Data, ref: Ref, state: Cells) -> dict[Cell, Any]:
    if not node.axes:  # it has a name of its own
        return {(): state.add(node)}
    cells = state.cells(state.program.types[ref])
    if not node.values:
        return {cell: state.add(Data(cell_name(node.name, cell), ())) for cell in cells}
    return dict(zip(cells, map(as_number, node.values), strict=True))  # an int is a reference


def _input(node: Input, ref: Ref, state: Cells) -> dict[Cell, Any]:
    family, cells = node.family, list(state.cells(state.program.types[ref]))
    if len(family.width) == 1:
        if node.cell is not None or not family.axes:
            return {(): state.add(node)}
        return {cell: state.add(Input(family, index)) for index, cell in enumerate(cells)}
    if not family.axes:
        return {(): state.add(node)}
    parts = [family.part(index) for index in range(family.size)]
    chosen = parts if node.cell is None else [parts[node.cell]]
    return {cell: state.add(Input(part)) for cell, part in zip(cells, chosen, strict=True)}


def _rename(node: Rename, ref: Ref, state: Cells) -> dict[Cell, Any]:
    return state.values[node.of]


def _stack(node: Stack, state: Cells, where: Where) -> Value:
    return state.at(node.of[where[node.axis]], where)


def _matmul(node: MatMul, state: Cells, where: Where) -> Value:
    matrix, vector = state.ref(node.matrix, where), state.ref(node.vector, where)
    found = MatMul(matrix, vector, node.transpose)
    return state.zero(found) if is_zero(state.at(node.vector, where)) else state.add(found)


def _nonlin(node: Nonlin, state: Cells, where: Where) -> Value:
    expr = node.fn.expr
    if isinstance(expr, Call) and expr.arg == Var(0) and is_sign(expr.atom):
        form = Form()
        state.signed(form, expr.atom, state.ref(node.vectors[0], where), Fraction(1))
        return form.simple()
    vectors, scalars = state.many(node.vectors, where), state.many(node.scalars, where)
    return state.applied(Nonlin, node.fn, vectors, scalars)


def _rows(node: RowNonlin, state: Cells, where: Where) -> Value:
    type_ = state.program.types[node.of]
    size = dict(type_.axes)[node.along]
    values = [state.at(node.of, {**where, node.along: index}) for index in range(size)]
    slots: list[Expr] = [Var(i) if type_.width else Par(i) for i in range(size)]
    expr = node.row.cells(slots)[where[node.along]]
    if type_.width:
        return state.applied(Nonlin, Fn(expr, size), values, [])
    return state.applied(Nonlin, Fn(expr, 0, size), [], values)


def _moment(node: Moment, state: Cells, where: Where) -> Value:
    if node.fn == INNER:  # the one that there are most of
        if any(is_zero(value) for value in state.many(node.vectors, where)):
            return Fraction(0)
        return state.inner(*(state.ref(one, where) for one in node.vectors))
    vectors, scalars = state.many(node.vectors, where), state.many(node.scalars, where)
    return state.applied(Moment, node.fn, vectors, scalars)


def _outer(node: OuterNonlin, state: Cells, where: Where) -> Value:
    if node.forms:
        return _forms(node, state, where)
    lists = [state.many(node.rows, where), state.many(node.cols, where)]
    expr, (rows, cols), scalars = state.function(node.fn, lists, state.many(node.scalars, where))
    fn = Fn(expr, len(rows) + len(cols), len(scalars))
    vector = state.ref(node.vector, where)
    return state.add(OuterNonlin(fn, tuple(rows), tuple(cols), tuple(scalars), vector))


def _forms(node: OuterNonlin, state: Cells, where: Where) -> Value:
    """Each form with a pair of single vectors for every cell that it is summed over."""
    pairs: list[tuple[Ref, Ref]] = []
    forms: list[int] = []
    for row, col, form in zip(node.rows, node.cols, node.forms, strict=True):
        held = {name: size for r in (row, col) for name, size in state.program.types[r].axes}
        sizes = [(name, held[name]) for name in node.over if name in held]
        for cell in product(*(range(size) for _, size in sizes)):
            here = {**where, **{name: k for (name, _), k in zip(sizes, cell, strict=True)}}
            pairs.append((state.ref(row, here), state.ref(col, here)))
            forms.append(form)
    expr, _, scalars = state.function(node.fn, [], state.many(node.scalars, where))
    alone, expr = separated(expr, forms)
    form_, vector = Form(), state.ref(node.vector, where)
    for number, place, atom in alone:
        row, col = pairs[place]
        if atom is None:
            form_.add_term(state.inner(col, vector), row, number)
            continue
        left, right = Form(), Form()
        state.signed(left, atom, row, number)
        state.signed(right, atom, col, Fraction(1))
        inner = state.inner(state.node(right), vector)
        form_.add_term(inner, state.node(left), Fraction(1))
    if expr != const(0):
        fn, used, _ = Fn(expr, node.fn.vectors, len(scalars)).compact()
        places = [k for k, form in enumerate(forms) if form in used]
        rows, cols = zip(*(pairs[k] for k in places), strict=True)
        kept = tuple(used.index(forms[k]) for k in places)
        own = OuterNonlin(fn, rows, cols, tuple(scalars), vector, kept)
        form_.add_term(None, state.add(own), Fraction(1))
    return form_.simple()


def _lincomb(node: LinComb, state: Cells, where: Where) -> Value:
    if state.program.types[node.vectors[0]].kind is Kind.SCALAR:
        return _scalar_sum(node, state, where)
    form, anchor = Form(), None
    for number, scalar, vector, here in state.terms(node, where):
        anchor = (vector, here)
        factor = Fraction(1) if scalar is None else state.at(scalar, here)
        coefficient: Ref | None = None
        if isinstance(factor, Fraction | float):
            number = number * factor
        else:
            coefficient = state.node(factor)
        item = state.at(vector, here)
        if number == 0:
            continue
        if isinstance(item, Form) and (coefficient is None or item.is_zero):
            form.add(item, number)
        elif isinstance(item, Form) and (single := item.single) is not None:
            form.add_term(coefficient, single[0], number * single[1])
        else:
            form.add_term(coefficient, state.node(item), number)
    if not form.terms and anchor is not None:  # all numbers are 0: a vector keeps its dimension
        form.add_term(None, state.ref(*anchor), Fraction(0))
    return form.simple()


def _scalar_sum(node: LinComb, state: Cells, where: Where) -> Value:
    refs: list[Ref] = []
    terms: list[Expr] = []

    def part(ref: Ref, here: Where) -> Expr:
        value = state.at(ref, here)
        if isinstance(value, Fraction | float):
            return const(value)
        own = state.node(value)
        if own not in refs:
            refs.append(own)
        return Par(refs.index(own))

    for number, scalar, other, here in state.terms(node, where):
        factors = [const(number), part(other, here)]
        if scalar is not None:
            factors.append(part(scalar, here))
        terms.append(mul(factors))
    fn, _, used = Fn(add(terms), 0, len(refs)).compact()
    if isinstance(fn.expr, Const):
        return fn.expr.value
    return state.scalar(fn, tuple(refs[i] for i in used))


def _scale(node: Scale, state: Cells, where: Where) -> Value:
    if is_zero(state.at(node.of, where)):
        return state.at(node.of, where)
    of, n_power, depth_power = state.ref(node.of, where), node.n_power, node.depth_power
    inner = scale_of(state.out.node(of))
    if inner is not None:
        of = inner.of
        n_power, depth_power = n_power + inner.n_power, depth_power + inner.depth_power
    if n_power == Ex() and depth_power == Ex():
        return of
    return state.add(Scale(of, n_power, depth_power))


SPLIT_RULES: Rules[Any, Cells] = Rules(
    "split",
    {
        Data: _kept(_data),
        Input: _kept(_input),
        Rename: _kept(_rename),
        Stack: _each(_stack),
        MatMul: _each(_matmul),
        Nonlin: _each(_nonlin),
        RowNonlin: _each(_rows),
        LinComb: _each(_lincomb),
        Moment: _each(_moment),
        OuterNonlin: _each(_outer),
        Scale: _each(_scale),
    },
    level=Level.BLOCKS,
)
