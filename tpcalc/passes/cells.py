"""``Cells``: a program of single vectors while the cells of blocks become its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from tpcalc.functions import Const, Expr, Fn, Par, Var, const
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Add, Mul, mul, substitute
from tpcalc.functions.fn import INNER as INNER
from tpcalc.functions.fn import SQUARE as SQUARE
from tpcalc.functions.numbers import Number
from tpcalc.names import Name
from tpcalc.passes.separate import signed
from tpcalc.passes.sums import Form
from tpcalc.program.base import input_of, leaf_of
from tpcalc.program.nodes import LinComb, Moment, Nonlin, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes, Type

Cell = tuple[int, ...]
Value = Ref | Form | Fraction | float
Where = Mapping[str, int]  # axis -> index


@dataclass(frozen=True, slots=True)
class Report:
    """A node of blocks that is reported for each of some inputs."""

    ref: Ref  # the node
    axis: str  # the axis of inputs
    first: int  # the number of the first input
    count: int  # how many inputs there are
    axes: Axes  # the other axes, in the order in which names tell their cells
    name: Callable[[int, Cell], Name]  # the name of an input and of a cell
    # for each input its cell along the axis, where equal ones are one; (): their order
    rows: tuple[int, ...] = ()

    def row(self, index: int) -> int:
        """The cell along the axis of an input, by the number of the input."""
        place = index - self.first
        return self.rows[place] if self.rows else place

    def cells(self, index: int) -> Iterator[tuple[Where, str]]:
        """The cells of an input, each with its name."""
        for cell in product(*(range(size) for _, size in self.axes)):
            places = zip((name for name, _ in self.axes), cell, strict=True)
            yield {self.axis: self.row(index), **dict(places)}, str(self.name(index, cell))

    def block(self, sizes: Mapping[str, int]) -> str | None:
        """The name of the node as a block of these axes; None where it does not tell its cells."""
        ordered = {self.axis: self.count, **dict(self.axes)}
        first = self.name(self.first, (0,) * len(self.axes))
        if list(sizes.items()) != list(ordered.items()):
            alone = not sizes and self.count == 1 and not self.axes
            return str(first) if alone else None
        behind = len(self.axes) + 1
        if first.cell[-behind:] != (self.first, *(0 for _ in self.axes)):
            return None
        name = replace(first, cell=first.cell[:-behind], first=self.first)
        last = tuple(size - 1 for size in ordered.values())
        told = name.at(last) == self.name(self.first + last[0], last[1:])
        return str(name) if told else None


@dataclass
class Cells:
    """The cells so far, and the program that they are nodes of."""

    program: Program
    out: Builder
    values: list[dict[Cell, Any]] = field(default_factory=list)
    line: str | None = None
    apart: bool = False
    first: frozenset[Ref] = frozenset()  # what stands first in averages
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
        for where, name in report.cells(index):
            self.out.output(name, self.ref(report.ref, where))

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
        zeros = {Var(k): value for k, value in enumerate(on) if is_zero(value)}
        if zeros and _vanishes(function.expr, zeros):
            return Fraction(0) if kind is Moment else next(iter(zeros.values()))
        expr, (vectors,), scalars = self.function(function, [on], with_)
        fn, kept, used = _compact(expr, len(vectors), len(scalars))
        args = tuple(scalars[i] for i in used)
        if not vectors:
            return fn.expr.value if isinstance(fn.expr, Const) else self.scalar(fn, args)
        if not kept:  # the dimension is that of any argument
            fn, kept = Fn(fn.expr, 1, fn.scalars), (0,)
        chosen = tuple(vectors[i] for i in kept)
        if kind is Nonlin and fn.expr == Var(0):
            return chosen[0]
        return self.add(kind(fn, chosen, args))

    def zero(self, node: Any) -> Form:
        """The 0 of the dimension of a node, which is not written unless it is asked for."""
        return Form({(None, self.add(node)): Fraction(0)})

    def inner(self, left: Ref, right: Ref) -> Ref:
        """The average of a product."""
        if left == right:
            return self.add(Moment(SQUARE, (left,)))
        return self.add(Moment(INNER, tuple(sorted((left, right), key=self.place))))

    def signed(self, form: Form, sign: Atom, ref: Ref, number: Number) -> None:
        """Add a multiple of the sign of a vector to a sum."""
        factor, scalars, own = signed(self.out, sign, ref, self.line)
        parts = mul(sign(Par(k)) for k in range(len(scalars)))
        coefficient = self.scalar(Fn(parts, 0, len(scalars)), scalars) if scalars else None
        form.add_term(coefficient, own, number * factor)

    def scalar(self, fn: Fn, args: tuple[Ref, ...]) -> Ref:
        """A function of scalars; what is its argument is that."""
        return args[0] if fn.expr == Par(0) else self.add(Nonlin(fn, (), args))

    def terms(self, node: LinComb, where: Where) -> Iterator[tuple[Number, Ref | None, Ref, Where]]:
        """Each term of a sum at a cell, for every cell that it is summed over."""
        for number, scalar, vector, axes in node.terms:
            types = [self.program.types[ref] for ref in (scalar, vector) if ref is not None]
            sizes = {name: size for type_ in types for name, size in type_.axes}
            for cell in product(*(range(sizes[name]) for name in axes)):
                yield number, scalar, vector, {**where, **dict(zip(axes, cell, strict=True))}


def is_zero(value: Value) -> bool:
    """Whether a cell is known to be 0: adjoints of what nothing reads are."""
    if isinstance(value, Form):
        return value.is_zero
    return isinstance(value, Fraction | float) and value == 0


def _vanishes(expr: Expr, zeros: Collection[Expr]) -> bool:
    """Whether every term has a factor that is 0."""
    if isinstance(expr, Add):
        return all(_vanishes(term, zeros) for term in expr.terms)
    if isinstance(expr, Mul):
        return any(_vanishes(factor, zeros) for factor in expr.factors)
    return expr in zeros


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
