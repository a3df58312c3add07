"""Blocks lowered to single vectors: every cell becomes a node of its own.

What reads single vectors is fed by this pass. It is exact at every width:

- numbers that are given are folded into functions and coefficients;
- sums stay open, so that a sum of sums is one linear combination with like terms collected;
- an argument that stands in a function twice is one argument, and a function that is its argument
  is that argument;
- members of a block of start vectors stay one family, as they may be correlated; matrices and
  random numbers become families of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from tpcalc.functions import Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul, substitute
from tpcalc.functions.numbers import Number, as_number
from tpcalc.orders import Ex
from tpcalc.passes.forms import Form
from tpcalc.passes.separate import separated
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
from tpcalc.program.types import Axes, Type
from tpcalc.program.views import input_of, leaf_of, scale_of

__all__ = ["SPLIT_RULES", "Report", "celled", "split", "split_reports"]

INNER, SQUARE = Fn(Var(0) * Var(1), 2), Fn(Var(0) ** 2, 1)
Cell = tuple[int, ...]
Value = Ref | Form | Fraction | float
Where = Mapping[str, int]  # axis -> index


@dataclass(frozen=True, slots=True)
class Report:
    """A node of blocks that is reported for each of some inputs.

    Args:
        ref: The node.
        axis: The axis of inputs.
        first: The number of the first input.
        count: How many inputs there are.
        axes: The other axes, in the order in which names tell their cells.
        name: The name of an input and of a cell.
    """

    ref: Ref
    axis: str
    first: int
    count: int
    axes: Axes
    name: Callable[[int, Cell], str]


def split_reports(
    program: Program, groups: Iterable[Sequence[Report]], closed: Collection[Ref]
) -> Program:
    """A training run with a node for each cell; what is reported is named input by input.

    Args:
        program: The run.
        groups: What is reported; of a group all of an input comes first.
        closed: What is a node where it stands, also for later sums: values of parameters.
    """
    state = _Split(program, Builder(program.dims), apart=True)
    state.named = frozenset(closed)
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
        ProgramError: Random numbers that are correlated, or two outputs that get one name.

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

    Args:
        program: Any program.
    """
    state = _split(program)
    for ref, cells in enumerate(state.values):
        for cell, value in cells.items():
            if isinstance(value, Fraction | float):
                continue
            node = state.node(value)
            if state.out.type(node).kind is not Kind.MATRIX:
                state.out.output(_named(f"%{ref}", cell), node)
    return state.out.finish(keep_unused=False)


def _split(program: Program) -> _Split:
    state = _Split(program, Builder(program.dims))
    interpret(program, SPLIT_RULES, state)
    for name, ref in program.outputs:
        for cell, value in state.values[ref].items():
            state.out.output(_named(name, cell), state.node(value))
    return state


def _named(name: str, cell: Cell) -> str:
    """The name of a cell of what has a name."""
    return f"{name}[{','.join(map(str, cell))}]" if cell else name


@dataclass
class _Split:
    """The cells so far, and the program that they are nodes of."""

    program: Program
    out: Builder
    values: list[dict[Cell, Any]] = field(default_factory=list)
    line: str | None = None
    apart: bool = False
    given: set[Ref] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.named = frozenset(ref for _, ref in self.program.outputs)

    def cells(self, type_: Type) -> Iterator[Cell]:
        return product(*(range(size) for _, size in type_.axes))

    def at(self, ref: Ref, where: Where) -> Value:
        """The value of an operand at a cell."""
        value: Value = self.values[ref][self.cell(ref, where)]
        return value

    def cell(self, ref: Ref, where: Where) -> Cell:
        return tuple(where[name] for name, _ in self.program.types[ref].axes)

    def ref(self, ref: Ref, where: Where) -> Ref:
        """The node of an operand at a cell; a sum becomes one, and stays open for later sums."""
        return self.node(self.at(ref, where))

    def node(self, value: Value) -> Ref:
        """The node of a value."""
        if isinstance(value, Form):
            return (self.parted(value) if self.apart else value).node(self.out, self.line)
        if isinstance(value, Fraction | float):
            return self.add(Nonlin(Fn(const(value), 0, 0), ()))
        return value

    def report(self, report: Report, index: int) -> None:
        """Name the cells of a report at an input."""
        names = [name for name, _ in report.axes]
        for cell in product(*(range(size) for _, size in report.axes)):
            where = {report.axis: index - report.first, **dict(zip(names, cell, strict=True))}
            value = self.values[report.ref][self.cell(report.ref, where)]
            self.out.output(report.name(index, cell), self.node(value))

    def parted(self, form: Form) -> Form:
        """A sum in which the part of start vectors alone is one vector, shared by all steps."""
        items = {pair: number for pair, number in form.terms.items() if number != 0}
        start = {
            pair: number
            for pair, number in items.items()
            if pair[0] is None and input_of(self.out.node(pair[1])) is not None
        }
        if not 1 < len(start) < len(items):
            return form
        image = Form(start).node(self.out, self.line)
        found = Form({pair: number for pair, number in items.items() if pair not in start})
        found.add_term(None, image, Fraction(1))
        return found

    def add(self, node: Any) -> Ref:
        return self.out.add(node, self.line)

    def many(self, refs: Sequence[Ref], where: Where) -> list[Value]:
        """The values of operands at a cell."""
        return [self.at(ref, where) for ref in refs]

    def function(
        self, fn: Fn, lists: Sequence[Sequence[Value]], scalars: Sequence[Value]
    ) -> tuple[Expr, list[list[Ref]], list[Ref]]:
        """A function with its arguments: equal ones merged, numbers put in.

        ``lists`` are the vectors, in lists that stay apart (rows and columns of an outer function).
        """
        merged: list[list[Ref]] = []
        places: list[int] = []
        before = 0
        for values in lists:
            nodes = [self.node(value) for value in values]
            kept = sorted(set(nodes), key=self.place)  # one order: x y and y x are one
            places += [before + kept.index(node) for node in nodes]
            merged.append(kept)
            before += len(kept)
        numbers: list[Ref] = []
        filled: list[tuple[int, Number]] = []  # the place of an argument, or -1 and a number
        for value in scalars:
            if isinstance(value, Fraction | float):
                filled.append((-1, value))
                continue
            node = self.node(value)
            if node not in numbers:
                numbers.append(node)
            filled.append((numbers.index(node), 0))
        return _merged(fn, tuple(places), tuple(filled)), merged, numbers

    def place(self, ref: Ref) -> tuple[bool, Ref]:
        """What is given stands first, as in ``E[v x]`` for the weights v of a readout."""
        return ref not in self.given and leaf_of(self.out.node(ref)) is None, ref

    def applied(
        self, kind: type, function: Fn, on: Sequence[Value], with_: Sequence[Value]
    ) -> Value:
        """A function of vectors and scalars, or its average."""
        expr, (vectors,), scalars = self.function(function, [on], with_)
        fn, kept, used = _compact(expr, len(vectors), len(scalars))
        args = tuple(scalars[i] for i in used)
        if not vectors:
            return _number(fn.expr) if isinstance(fn.expr, Const) else self.scalar(fn, args)
        if not kept:  # the dimension is that of any argument
            fn, kept = Fn(fn.expr, 1, fn.scalars), (0,)
        chosen = tuple(vectors[i] for i in kept)
        if kind is Nonlin and fn.expr == Var(0):
            return chosen[0]
        return self.add(kind(fn, chosen, args))

    def inner(self, left: Ref, right: Ref) -> Ref:
        """The average of a product."""
        if left == right:
            return self.add(Moment(SQUARE, (left,)))
        return self.add(Moment(INNER, tuple(sorted((left, right), key=self.place))))

    def scalar(self, fn: Fn, args: tuple[Ref, ...]) -> Ref:
        """A function of scalars; what is its argument is that."""
        return args[0] if fn.expr == Par(0) else self.add(Nonlin(fn, (), args))

    def terms(self, node: LinComb, where: Where) -> Iterator[tuple[Number, Ref | None, Ref, Where]]:
        """Each term of a sum at a cell, for every cell that it is summed over."""
        over = node.over or ((),) * len(node.numbers)
        for number, scalar, vector, axes in zip(
            node.numbers, node.scalars, node.vectors, over, strict=True
        ):
            types = [self.program.types[ref] for ref in (scalar, vector) if ref is not None]
            sizes = {name: size for type_ in types for name, size in type_.axes}
            for cell in product(*(range(sizes[name]) for name in axes)):
                yield number, scalar, vector, {**where, **dict(zip(axes, cell, strict=True))}


@lru_cache(maxsize=1024)
def _merged(fn: Fn, places: tuple[int, ...], filled: tuple[tuple[int, Number], ...]) -> Expr:
    """A function of arguments at their places, numbers put in; most cells ask for the same."""
    given: dict[Expr, Expr] = {Var(k): Var(place) for k, place in enumerate(places)}
    for k, (place, value) in enumerate(filled):
        given[Par(k)] = const(value) if place < 0 else Par(place)
    return substitute(fn.expr, given)


@lru_cache(maxsize=1024)
def _compact(expr: Expr, vectors: int, scalars: int) -> tuple[Fn, tuple[int, ...], tuple[int, ...]]:
    return Fn(expr, vectors, scalars).compact()


def _number(expr: Const) -> Number:
    return expr.value


def _each(rule: Callable[[Any, _Split, Where], Value]) -> Callable[[Any, Ref, Any, _Split], Any]:
    """A rule of one cell as a rule of all cells."""

    def every(node: Any, ref: Ref, values: Any, state: _Split) -> dict[Cell, Value]:
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
            state.given.update(nodes.values() if state.apart else ())
        state.values.append(found)
        return found

    return every


def _kept(
    rule: Callable[[Any, Ref, _Split], dict[Cell, Any]],
) -> Callable[[Any, Ref, Any, _Split], Any]:
    """A rule that gives all cells at once."""

    def every(node: Any, ref: Ref, values: Any, state: _Split) -> dict[Cell, Any]:
        state.line = state.program.line_of(ref)
        state.values.append(rule(node, ref, state))
        return state.values[-1]

    return every


def _data(node: Data, ref: Ref, state: _Split) -> dict[Cell, Any]:
    if not node.axes:  # it has a name of its own
        return {(): state.add(node)}
    cells = state.cells(state.program.types[ref])
    if not node.values:
        return {cell: state.add(Data(_named(node.name, cell), ())) for cell in cells}
    return dict(zip(cells, map(as_number, node.values), strict=True))  # an int is a reference


def _input(node: Input, ref: Ref, state: _Split) -> dict[Cell, Any]:
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


def _rename(node: Rename, ref: Ref, state: _Split) -> dict[Cell, Any]:
    return state.values[node.of]


def _stack(node: Stack, state: _Split, where: Where) -> Value:
    return state.at(node.of[where[node.axis]], where)


def _matmul(node: MatMul, state: _Split, where: Where) -> Value:
    matrix, vector = state.ref(node.matrix, where), state.ref(node.vector, where)
    return state.add(MatMul(matrix, vector, node.transpose))


def _nonlin(node: Nonlin, state: _Split, where: Where) -> Value:
    vectors, scalars = state.many(node.vectors, where), state.many(node.scalars, where)
    return state.applied(Nonlin, node.fn, vectors, scalars)


def _rows(node: RowNonlin, state: _Split, where: Where) -> Value:
    type_ = state.program.types[node.of]
    size = dict(type_.axes)[node.along]
    values = [state.at(node.of, {**where, node.along: index}) for index in range(size)]
    slots: list[Expr] = [Var(i) if type_.width else Par(i) for i in range(size)]
    expr = node.row.cells(slots)[where[node.along]]
    if type_.width:
        return state.applied(Nonlin, Fn(expr, size), values, [])
    return state.applied(Nonlin, Fn(expr, 0, size), [], values)


def _moment(node: Moment, state: _Split, where: Where) -> Value:
    if node.fn == INNER:  # the one that there are most of
        return state.inner(*(state.ref(one, where) for one in node.vectors))
    vectors, scalars = state.many(node.vectors, where), state.many(node.scalars, where)
    return state.applied(Moment, node.fn, vectors, scalars)


def _outer(node: OuterNonlin, state: _Split, where: Where) -> Value:
    if node.forms:
        return _forms(node, state, where)
    lists = [state.many(node.rows, where), state.many(node.cols, where)]
    expr, (rows, cols), scalars = state.function(node.fn, lists, state.many(node.scalars, where))
    fn = Fn(expr, len(rows) + len(cols), len(scalars))
    vector = state.ref(node.vector, where)
    return state.add(OuterNonlin(fn, tuple(rows), tuple(cols), tuple(scalars), vector))


def _forms(node: OuterNonlin, state: _Split, where: Where) -> Value:
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
        sides = (
            pairs[place]
            if atom is None
            else tuple(state.add(Nonlin(Fn(atom(Var(0)), 1), (side,))) for side in pairs[place])
        )
        form_.add_term(state.inner(sides[1], vector), sides[0], number)
    if expr != const(0):
        fn, used, _ = Fn(expr, node.fn.vectors, len(scalars)).compact()
        places = [k for k, form in enumerate(forms) if form in used]
        rows, cols = zip(*(pairs[k] for k in places), strict=True)
        kept = tuple(used.index(forms[k]) for k in places)
        own = OuterNonlin(fn, rows, cols, tuple(scalars), vector, kept)
        form_.add_term(None, state.add(own), Fraction(1))
    return form_.simple()


def _lincomb(node: LinComb, state: _Split, where: Where) -> Value:
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
        if isinstance(item, Form) and coefficient is None:
            form.add(item, number)
        else:
            form.add_term(coefficient, state.node(item), number)
    if not form.terms and anchor is not None:  # all numbers are 0: a vector keeps its dimension
        form.add_term(None, state.ref(*anchor), Fraction(0))
    return form.simple()


def _scalar_sum(node: LinComb, state: _Split, where: Where) -> Value:
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
        return _number(fn.expr)
    return state.scalar(fn, tuple(refs[i] for i in used))


def _scale(node: Scale, state: _Split, where: Where) -> Value:
    of, n_power, depth_power = state.ref(node.of, where), node.n_power, node.depth_power
    inner = scale_of(state.out.node(of))
    if inner is not None:
        of = inner.of
        n_power, depth_power = n_power + inner.n_power, depth_power + inner.depth_power
    if n_power == Ex() and depth_power == Ex():
        return of
    return state.add(Scale(of, n_power, depth_power))


SPLIT_RULES: Rules[Any, _Split] = Rules(
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
