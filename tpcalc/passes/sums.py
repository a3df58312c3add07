"""Sums of nodes while a program is written, and blocks with other axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

from tpcalc.functions import Expr, Fn, Par
from tpcalc.functions.expr import add, const, mul
from tpcalc.functions.numbers import Number
from tpcalc.program.base import data_of, references
from tpcalc.program.nodes import Data, Kind, LinComb, Nonlin, Ref, Rename
from tpcalc.program.program import Builder
from tpcalc.program.types import Axes

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
    size = dict(out.type(ref).axes).get(axis)
    if size is None:
        return ref
    marks = tuple(Fraction(int(k == place)) for k in range(size))
    one = out.add(Data(f"at({axis}={place}:{size})", marks, ((axis, size),)))
    return out.add(LinComb((Fraction(1),), (one,), (ref,), ((axis,),)))


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
