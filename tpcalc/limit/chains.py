"""A power of what was computed step by step is a function of what the steps began with.

``x / (1 + x**2)``, written with operators, divides by a vector. Whether that comes near 0 shows in
its formula only, so that the formula takes its place before the power is judged. So it is with
numbers: ``exp(s) / (exp(s) + exp(r))``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import Pow, add, const, mul, substitute, walk
from tpcalc.functions.form import is_tame, least
from tpcalc.limit.building import Building
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree, of_forms
from tpcalc.limit.graph import (
    Expect,
    LRef,
    Number,
    OuterExpect,
    Product,
    Start,
    Starts,
    Total,
    function_of,
    is_drawn,
)
from tpcalc.program.base import Table, lincomb_of, references
from tpcalc.program.nodes import LinComb, Nonlin, Ref, Rename, Stack
from tpcalc.program.program import Program

ZERO, ONE = Fraction(0), Fraction(1)
MOST = 200  # parts of a formula
Composed = tuple[Fn, tuple[Ref, ...], tuple[Ref, ...]]


def composed(
    program: Program, fn: Fn, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]
) -> Composed:
    """A function with the formulas of the vectors that it takes a power of."""
    found = fn, vectors, scalars
    while places := _bases(found[0]):
        opened = _opened(program, found, places)
        if opened is None or sum(1 for _ in walk(opened[0].expr)) > MOST:
            break
        found = opened
    return found


@lru_cache(maxsize=2**12)
def _bases(fn: Fn) -> frozenset[int]:
    """The vector arguments that a power other than 1, 2, 3, ... is taken of."""
    return frozenset(
        inner.index
        for part in walk(fn.expr)
        if isinstance(part, Pow) and not (part.exponent > 0 and part.exponent.denominator == 1)
        for inner in walk(part.base)
        if isinstance(inner, Var)
    )


def _opened(program: Program, composed: Composed, places: frozenset[int]) -> Composed | None:
    """The function with the formulas of some arguments; None: none of them has one."""
    fn, vectors, scalars = composed
    formulas: dict[Expr, Expr] = {}
    for place in sorted(places):
        made = _WRITTEN(program.nodes[vectors[place]], len(vectors), len(scalars))
        if made is not None:
            formulas[Var(place)] = made[0]
            vectors += made[1]
            scalars += made[2]
    if not formulas:
        return None
    # Equal nodes are one argument, so that equal terms are seen as such.
    same: dict[Expr, Expr] = {Var(i): Var(vectors.index(v)) for i, v in enumerate(vectors)}
    same.update({Par(i): Par(scalars.index(s)) for i, s in enumerate(scalars)})
    expr = substitute(substitute(fn.expr, formulas), same)
    if not any(isinstance(part, Var) for part in walk(expr)):
        return None  # a vector is left, for its dimension
    short, keep_v, keep_s = Fn(expr, len(vectors), len(scalars)).compact()
    return short, tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s)


_Written = tuple[Expr, tuple[Ref, ...], tuple[Ref, ...]]


def _written_function(node: Nonlin, first: int, given: int) -> _Written:
    own: dict[Expr, Expr] = {Var(i): Var(first + i) for i in range(len(node.vectors))}
    own.update({Par(i): Par(given + i) for i in range(len(node.scalars))})
    return substitute(node.fn.expr, own), node.vectors, node.scalars


def _written_sum(node: LinComb, first: int, given: int) -> _Written | None:
    if node.over:
        return None
    terms, scalars = [], list[Ref]()
    for i, (number, scalar) in enumerate(zip(node.numbers, node.scalars, strict=True)):
        factors: list[Expr] = [const(number), Var(first + i)]
        if scalar is not None:
            factors.append(Par(given + len(scalars)))
            scalars.append(scalar)
        terms.append(mul(factors))
    return add(terms), node.vectors, tuple(scalars)


# A node of a program as a formula of its arguments, which are numbered from two numbers on.
_WRITTEN: Table[_Written | None] = Table(
    {Nonlin: _written_function, LinComb: _written_sum}, lambda node, first, given: None
)


def opened(context: Building, expr: Expr, chosen: Callable[[LRef], bool]) -> Expr | None:
    """An expression of nodes with the formulas of some in their place; None: it gets too long."""
    while parts := {p for p in walk(expr) if isinstance(p, Var | Par) and chosen(p.index)}:
        expr = substitute(expr, {part: _FORMULAS(context.nodes[part.index]) for part in parts})
        if sum(1 for _ in walk(expr)) > MOST:
            return None
    return expr


def _of_sum(node: LinComb) -> Expr:
    terms = zip(node.numbers, node.scalars, node.vectors, strict=True)
    return add(mul((const(x), *(() if s is None else (Par(s),)), Var(v))) for x, s, v in terms)


def _of_function(node: Nonlin) -> Expr:
    own: dict[Expr, Expr] = {Var(i): Var(v) for i, v in enumerate(node.vectors)}
    own.update({Par(i): Par(s) for i, s in enumerate(node.scalars)})
    return substitute(node.fn.expr, own)


# A function or a sum as an expression of nodes.
_FORMULAS: Table[Expr] = Table({LinComb: _of_sum, Nonlin: _of_function})


def has_inverse(context: Building, expr: Expr) -> bool:
    """Whether an expression is positive and its inverse has all moments, by the formula behind it.

    Of averages, too: by Jensen's inequality, if the logarithm of what is averaged falls at most
    linearly in the Gaussians that it is not averaged over.
    """
    size = len(context.nodes)  # vectors of this number and above are averaged over
    fn, vectors, scalars = Fn(_whole(context, expr), 2 * size, size).compact()
    degrees = [_degree(context, ref % size, ref < size) for ref in vectors]
    of_scalars = [_degree(context, ref, True) for ref in scalars]

    def linear(part: Expr) -> bool:
        found = degree_of(part, degrees, of_scalars)
        return found is not None and found <= 1

    def known(part: Var | Par) -> bool:
        ref = vectors[part.index] % size if isinstance(part, Var) else scalars[part.index]
        below = _AVERAGED(context.nodes[ref], context)
        return below is not None and has_inverse(context, below)

    return is_tame(fn.expr, linear, known)


def _whole(context: Building, expr: Expr) -> Expr:
    """An expression with the formulas of functions and sums, if it does not get too long."""
    size = len(context.nodes)
    found = opened(context, expr, lambda ref: ref < size and _is_formula(context, ref))
    return expr if found is None else found


def _is_formula(context: Building, ref: LRef) -> bool:
    total = lincomb_of(context.nodes[ref])
    return function_of(context.nodes[ref]) is not None or (total is not None and not total.over)


def _degree(context: Building, ref: LRef, own: bool) -> Degree:
    """Of a node in Gaussians, 0 where it is averaged over; None: not known."""
    node = context.nodes[ref]
    if context.dims[ref] is not None:
        found = degree(context, ref)
        return found if own or found is None else ZERO
    if not context.random[ref]:
        return ZERO
    plain = is_drawn(node) and not any(context.random[below] for below in references(node))
    return ONE if plain else None


def degree(context: Building, ref: LRef) -> Degree:
    """The degree of a vector in Gaussians, given all numbers that stay random."""
    known = context.degrees
    while len(known) <= ref:
        known.append(_DEGREES(context.nodes[len(known)], context))
    return known[ref]


def has_moments(
    context: Building, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]
) -> bool:
    """Whether a function of vectors has all moments, by its form or by the formula behind it."""
    if _is_polynomial(fn) and all(type(degree(context, v)) is Fraction for v in vectors):
        return True  # as nearly always
    return _degree_of(context, fn, vectors, scalars) is not None


def _degree_of(
    context: Building, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]
) -> Degree:
    found = _of(context, fn, [degree(context, vector) for vector in vectors])
    if found is not None:
        return found
    whole = _whole(context, _inside(fn, [Var(vector) for vector in vectors], scalars))
    squares: dict[Expr, Expr] = {
        part: part**2
        for part in walk(whole)
        if isinstance(part, Par) and _IS_AT_LEAST_0(context.nodes[part.index])
    }
    whole = substitute(whole, squares)
    fn, left, _ = Fn(whole, len(context.nodes), len(context.nodes)).compact()
    return _of(context, fn, [degree(context, vector) for vector in left])


# Whether a number is nowhere below 0, so that it may be called a square.
_IS_AT_LEAST_0: Table[bool] = Table(
    {Expect: lambda node: least(node.fn.expr) >= 0}, lambda node: False
)


def _of(context: Building, fn: Fn, degrees: Sequence[Degree]) -> Degree:
    return degree_of(fn.expr, degrees, [ZERO] * fn.scalars, context.at)


@lru_cache(maxsize=2**12)
def _is_polynomial(fn: Fn) -> bool:
    """Whether a polynomial bounds a function: then it has a degree where its arguments have one."""
    return isinstance(degree_of(fn.expr, [ONE] * fn.vectors, [ZERO] * fn.scalars), Fraction)


def outer_degree(context: Building, node: OuterExpect) -> Degree:
    """The degree of what is averaged over the columns, in rows and columns."""
    rows, cols = ([degree(context, one) for one in side] for side in (node.rows, node.cols))
    kernel = _of(context, node.fn, of_forms(rows, cols, node.forms))
    return degree_sum([kernel, degree(context, node.vector)])


def _degree_of_product(node: Product, context: Building) -> Degree:
    """A Gaussian, and multiples of what the other side was applied to if the vector holds that."""
    own = degree(context, node.vector)
    side = node.matrix, node.transpose
    context.read[side] = largest_degree([context.read.get(side, ZERO), own])
    told = context.side(node.matrix, not node.transpose) & context.sides[node.vector]
    back = context.read.get((node.matrix, not node.transpose), ZERO) if told else ZERO
    return None if own is None else largest_degree([ONE, back])


def _largest(vectors: Sequence[LRef], context: Building) -> Degree:
    return largest_degree(degree(context, vector) for vector in vectors)


_DEGREES: Table[Degree] = Table(
    {
        **dict.fromkeys((Start, Starts), lambda node, context: ONE),
        Product: _degree_of_product,
        **dict.fromkeys((LinComb, Total), lambda node, context: _largest(node.vectors, context)),
        Rename: lambda node, context: degree(context, node.of),
        Stack: lambda node, context: _largest(node.of, context),
        OuterExpect: lambda node, context: outer_degree(context, node),
        Nonlin: lambda node, context: _degree_of(context, node.fn, node.vectors, node.scalars),
    },
    lambda node, context: ZERO,
)


def _averaged(context: Building, ref: LRef) -> Expr:
    """The formula of a vector that is averaged over, in numbers of its own."""
    expr, size = _whole(context, Var(ref)), len(context.nodes)
    return substitute(expr, {p: Var(p.index + size) for p in walk(expr) if isinstance(p, Var)})


def _inside(fn: Fn, vectors: Sequence[Expr], scalars: Sequence[LRef]) -> Expr:
    """What is averaged, as an expression of nodes."""
    given: dict[Expr, Expr] = {Var(i): expr for i, expr in enumerate(vectors)}
    return substitute(fn.expr, given | {Par(i): Par(s) for i, s in enumerate(scalars)})


def _of_outer(node: OuterExpect, context: Building) -> Expr:
    rows: list[Expr] = [Var(row) for row in node.rows]
    cols = [_averaged(context, col) for col in node.cols]
    given = [*rows, *cols]
    if node.forms:
        pairs = [(own, mul(pair)) for own, *pair in zip(node.forms, rows, cols, strict=True)]
        given = [add(x for own, x in pairs if own == form) for form in sorted(set(node.forms))]
    whole = _inside(node.fn, given, node.scalars)
    return mul((whole, _averaged(context, node.vector)))


# Of an average, or a number, what is averaged, as an expression of nodes.
_AVERAGED: Table[Expr | None] = Table(
    {
        Number: lambda node, context: const(node.value),
        Expect: lambda node, context: _inside(
            node.fn, [_averaged(context, v) for v in node.vectors], node.scalars
        ),
        OuterExpect: _of_outer,
    },
    lambda node, context: None,
)
