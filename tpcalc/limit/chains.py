"""A power of what was computed step by step is a function of what the steps began with.

``x / (1 + x**2)``, written with operators, divides by a vector. Whether that comes near 0 shows in
its formula only, so that the formula takes its place before the power is judged. So it is with
numbers: ``exp(s) / (exp(s) + exp(r))``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import Pow, add, const, mul, substitute, walk
from tpcalc.functions.least import is_tame
from tpcalc.limit.building import Building
from tpcalc.limit.degrees import Degree, degree_of
from tpcalc.limit.graph import LRef
from tpcalc.limit.views import function_of, is_drawn
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import LinComb, Nonlin, Ref
from tpcalc.program.program import Program

__all__ = ["composed", "has_inverse", "opened"]

MOST = 200  # parts of a formula
Composed = tuple[Fn, tuple[Ref, ...], tuple[Ref, ...]]


def composed(
    program: Program, fn: Fn, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]
) -> Composed:
    """A function with the formulas of the vectors that it takes a power of.

    Args:
        program: The program.
        fn: The function.
        vectors: The nodes of its vector arguments.
        scalars: Those of its scalar arguments.

    Returns:
        The function and the nodes of its arguments.
    """
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


def _opened(program: Program, found: Composed, places: frozenset[int]) -> Composed | None:
    """The function with the formulas of some arguments; None: none of them has one."""
    fn, vectors, scalars = found
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
    """An expression of nodes with the formulas of some in their place; None: it gets too long.

    Args:
        context: The graph under construction.
        expr: ``Var`` and ``Par`` have the numbers of nodes.
        chosen: Whether a node (a function, or a sum) is opened.
    """
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


def has_inverse(context: Building, scalar: LRef) -> bool:
    """Whether a number is positive and its inverse has all moments, by the formula behind it.

    Args:
        context: The graph under construction.
        scalar: Its node.
    """
    expr = opened(context, Par(scalar), lambda ref: _is_formula(context, ref))
    if expr is None:
        return False
    fn, _, used = Fn(expr, 0, scalar + 1).compact()
    degrees = [_degree(context, ref) for ref in used]

    def linear(part: Expr) -> bool:
        found = degree_of(part, [], degrees)
        return found is not None and found <= 1

    return is_tame(fn.expr, linear)


def _is_formula(context: Building, ref: LRef) -> bool:
    return context.random[ref] and function_of(context.nodes[ref]) is not None


def _degree(context: Building, ref: LRef) -> Degree:
    """Of a number in Gaussians; None: not known."""
    if not context.random[ref]:
        return Fraction(0)
    node = context.nodes[ref]
    plain = is_drawn(node) and not any(context.random[below] for below in references(node))
    return Fraction(1) if plain else None
