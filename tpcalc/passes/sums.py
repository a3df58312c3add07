"""Sums while a program is written, and blocks with other axes or in single cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod

from tpcalc.exponents import Ex
from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import add, const, mul
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import Number
from tpcalc.program.base import data_of, references
from tpcalc.program.nodes import Data, Kind, LinComb, Moment, Nonlin, Ref, Rename, Scale
from tpcalc.program.program import Builder
from tpcalc.program.types import Axes


@dataclass
class Form:
    """A linear form: numbers in front of (scalar node or None) * vector node.

    Terms with the same scalar and vector are collected, so an input layer applied to finite data
    becomes a kernel: sum_j x_j u_j(t) = sum_j x_j u_j - sum_s (x_s . x) chi_s dh_s.
    """

    terms: dict[tuple[Ref | None, Ref], Number] = field(default_factory=dict)

    def add_term(self, scalar: Ref | None, vector: Ref, number: Number) -> None:
        """Add one term."""
        key = (scalar, vector)
        self.terms[key] = self.terms.get(key, Fraction(0)) + number

    def add(self, other: Form, factor: Number) -> None:
        """Add a multiple of another form."""
        for (scalar, vector), number in other.terms.items():
            self.add_term(scalar, vector, factor * number)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left of it but its dimension."""
        return not any(self.terms.values())

    @property
    def single(self) -> tuple[Ref, Number] | None:
        """The vector that it is a multiple of by a number, with the number; None: it is none."""
        items = [(pair, number) for pair, number in self.terms.items() if number != 0]
        return (items[0][0][1], items[0][1]) if len(items) == 1 and items[0][0][0] is None else None

    def simple(self) -> Form | Ref:
        """The form; where it is one vector, that vector."""
        items = [pair for pair, number in self.terms.items() if number != 0]
        if len(items) == 1 and items[0][0] is None and self.terms[items[0]] == 1:
            return items[0][1]
        return self

    def node(self, builder: Builder, line: str | None = None) -> Ref:
        """The node of the sum; of one that cancels a 0 of its dimension."""
        simple = self.simple()
        if not isinstance(simple, Form):
            return simple
        items = [(pair, number) for pair, number in self.terms.items() if number != 0]
        if not items:
            items = [((None, next(iter(self.terms))[1]), Fraction(0))]
        return builder.add(
            LinComb(
                tuple(number for _, number in items),
                tuple(scalar for (scalar, _), _ in items),
                tuple(vector for (_, vector), _ in items),
            ),
            line,
        )


Term = tuple[Number, Ref | None, Ref, tuple[str, ...]]  # as in a LinComb, with its sums


def total(out: Builder, terms: Sequence[Term]) -> Ref:
    """The sum of terms; of scalars none of which is summed a function of them."""
    numbers, scalars, vectors, over = zip(*terms, strict=True)
    if (numbers, scalars) == ((1,), (None,)) and not over[0]:
        only: Ref = vectors[0]
        return only
    if out.type(vectors[0]).kind is not Kind.SCALAR or any(over):
        return out.add(LinComb(numbers, scalars, vectors, over if any(over) else ()))
    refs = list(dict.fromkeys(ref for ref in (*vectors, *scalars) if ref is not None))
    parts: list[Expr] = []
    for number, *factors in zip(numbers, vectors, scalars, strict=True):
        own = [Par(refs.index(ref)) for ref in factors if ref is not None]
        parts.append(mul((const(number), *own)))
    return out.add(Nonlin(Fn(add(parts), 0, len(refs)), (), tuple(refs)))


def scaled(out: Builder, ref: Ref, power: Ex) -> Ref:
    """A node times a power of n."""
    return ref if power == Ex() else out.add(Scale(ref, power))


def is_known(out: Builder, scalar: Ref) -> bool:
    """Whether a block of scalars is known from the data alone."""
    node = out.node(scalar)
    below = references(node)
    if not below:
        return data_of(node) is not None
    return all(out.type(ref).kind is Kind.SCALAR and is_known(out, ref) for ref in below)


def renamed(out: Builder, ref: Ref, names: Mapping[str, str]) -> Ref:
    """A node with other names of those of its axes that are in a mapping."""
    held = {name for name, _ in out.type(ref).axes}
    pairs = tuple(pair for pair in names.items() if pair[0] in held)
    return out.add(Rename(ref, pairs)) if pairs else ref


def pulled(
    out: Builder, x: Ref, result: Ref, into: Ref, family: Collection[str]
) -> tuple[Mapping[str, str], Ref, Ref]:
    """What result <into, x> is made of: new names of axes but a family's, the result, the average.

    So cells of the outer product are told from those of the vector.
    """
    taken = {*family, *(name for name, _ in out.type(x).axes)}
    axes = dict.fromkeys(name for ref in (result, into) for name, _ in out.type(ref).axes)
    names = {name: fresh(f"{name}'", taken) for name in axes if name not in family}
    result, into = (renamed(out, ref, names) for ref in (result, into))
    return names, result, out.add(Moment(INNER, (into, x)))


def padded(out: Builder, ref: Ref, axes: Axes) -> Ref:
    """A vector that is the same along the axes that it lacks."""
    held = {name for name, _ in out.type(ref).axes}
    lost = tuple(pair for pair in axes if pair[0] not in held)
    if not lost:
        return ref
    cells = prod(size for _, size in lost)
    name = f"1[{','.join(f'{axis}:{size}' for axis, size in lost)}]"
    ones = out.add(Data(name, (Fraction(1),) * cells, lost))
    return out.add(LinComb((Fraction(1),), (ones,), (ref,)))


def cell(out: Builder, ref: Ref, axis: str, place: int) -> Ref:
    """A cell of something along an axis; what lacks the axis is the same in every cell."""
    held = tuple(pair for pair in out.type(ref).axes if pair[0] == axis)
    return picked(out, ref, held, (place,))


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken.

    Example:
        >>> fresh("b", {"b", "b'"})
        "b''"
    """
    while name in taken:
        name += "'"
    return name


def ratio(out: Builder, ref: Ref) -> Fraction:
    """The size of the dimension class of a vector, in units of n."""
    return out.dim_of(out.type(ref).width[0]).ratio


def one_hot(out: Builder, axes: Axes, cell: Sequence[int]) -> Ref:
    """A block that is 1 in one cell, and 0 elsewhere."""
    cells = product(*(range(size) for _, size in axes))
    text = ",".join(f"{name}={k}:{size}" for (name, size), k in zip(axes, cell, strict=True))
    own = tuple(cell)
    return out.add(Data(f"at({text})", tuple(Fraction(int(own == other)) for other in cells), axes))


def picked(out: Builder, ref: Ref, axes: Axes, cell: Sequence[int]) -> Ref:
    """A cell of a node, as a node."""
    if not axes:
        return ref
    names = tuple(name for name, _ in axes)
    return out.add(LinComb((Fraction(1),), (one_hot(out, axes, cell),), (ref,), (names,)))
