"""Random numbers are kept in front: what they multiply may be 0, or smaller than they are.

An average that is 0 by symmetry fluctuates, and where its law is not known, nothing that it is part
of has a value; where it is, an average that holds it has to be sampled. Averages and products with
matrices are linear, so that such a number need not be part of them: ``E[v (z - s)]`` is
``E[v z] - s E[v]``, and ``E[v]`` is 0 where ``v`` is symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, add, const, mul, substitute, walk
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.graph import LRef
from tpcalc.program.base import lincomb_of

MOST = 64  # terms of an expanded product
TIMES = Fn(Par(0) * Par(1), 0, 2)
Monomial = tuple[Par, ...]


def parted(
    context: Context, vector: LRef
) -> list[tuple[Fraction | float, LRef | None, LRef]] | None:
    """A sum with random numbers as (number, scalar, vector); None: it is no such sum."""
    node = lincomb_of(context.nodes[vector])
    if node is None or not context.is_loose(vector):
        return None
    found = []
    for number, scalar, inner in zip(node.numbers, node.scalars, node.vectors, strict=True):
        for own, other, item in parted(context, inner) or [(Fraction(1), None, inner)]:
            found.append((number * own, _product(context, scalar, other), item))
    return found if len(found) <= MOST or context.is_lawless(vector) else None


def apart(context: Context, piece: Piece) -> list[tuple[LRef | None, Piece]]:
    """A function as a sum of functions with random numbers in front."""
    arguments = (*piece.vectors, *piece.scalars)
    if not any(map(context.is_loose, arguments)):
        return [(None, piece)]
    vectors, scalars = list(piece.vectors), list(piece.scalars)
    opened: dict[Expr, Expr] = {}
    for place, vector in enumerate(piece.vectors):
        parts = []
        for number, scalar, item in parted(context, vector) or ():
            factor: Expr = const(number)
            if scalar is not None:
                scalars.append(scalar)
                factor = factor * Par(len(scalars) - 1)
            vectors.append(item)
            parts.append(factor * Var(len(vectors) - 1))
        if parts:
            opened[Var(place)] = add(parts)
    expr = substitute(piece.fn.expr, opened)
    numbers = frozenset(Par(i) for i, ref in enumerate(scalars) if context.is_loose(ref))
    found = _monomials(expr, numbers)
    if found is None:
        return [(None, piece)]
    out: list[tuple[LRef | None, Piece]] = []
    for monomial, rest in found.items():
        front: LRef | None = None
        for par in monomial:
            front = _product(context, front, scalars[par.index])
        fn, keep_v, keep_s = Fn(rest, len(vectors), len(scalars)).compact()
        kept = tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s)
        out.append((front, Piece(piece.power, fn, *kept)))
    return out


def in_front(context: Context, front: LRef | None, piece: Piece) -> tuple[LRef | None, Piece]:
    """A function of vectors without its factors that are numbers, and their product."""
    factors = piece.fn.expr.factors if isinstance(piece.fn.expr, Mul) else ()
    numbers = [f for f in factors if _has(Par, f) and not _has(Var, f)]
    if not numbers or not piece.vectors:
        return front, piece
    fn, _, kept = Fn(mul(numbers), 0, len(piece.scalars)).compact()
    scalars = tuple(piece.scalars[i] for i in kept)
    own = context.scalar(fn, scalars)
    rest = mul([f for f in factors if f not in numbers])
    fn, keep_v, kept = Fn(rest, len(piece.vectors), len(piece.scalars)).compact()
    vectors = tuple(piece.vectors[i] for i in keep_v)
    part = Piece(piece.power, fn, vectors, tuple(piece.scalars[i] for i in kept))
    return _product(context, front, own), part


def _has(kind: type[Expr], expr: Expr) -> bool:
    return any(isinstance(part, kind) for part in walk(expr))


def _product(context: Context, a: LRef | None, b: LRef | None) -> LRef | None:
    if a is None or b is None:
        return a if b is None else b
    return context.scalar(TIMES, (a, b))


def _monomials(expr: Expr, numbers: frozenset[Par]) -> dict[Monomial, Expr] | None:
    """The coefficients of a polynomial in some numbers; None: it is none, or too long."""
    if not _holds(expr, numbers):
        return {(): expr}
    if isinstance(expr, Par):
        return {(expr,): const(1)}
    if isinstance(expr, Add):
        return _sum(_monomials(part, numbers) for part in expr.terms)
    factors: tuple[Expr, ...] = ()
    if isinstance(expr, Mul):
        factors = expr.factors
    elif isinstance(expr, Pow) and expr.exponent in (2, 3, 4):
        factors = (expr.base,) * int(expr.exponent)
    # What holds none of the numbers is multiplied once, and not with each monomial.
    own = [factor for factor in factors if _holds(factor, numbers)]
    rest = mul([factor for factor in factors if factor not in own])
    total: dict[Monomial, Expr] | None = {(): rest} if factors else None
    for factor in own:
        found = _monomials(factor, numbers)
        if total is None or found is None or len(total) * len(found) > MOST:
            return None
        total = _sum(
            {tuple(sorted((*a, *b), key=lambda par: par.index)): mul((x, y))}
            for a, x in total.items()
            for b, y in found.items()
        )
    return total


def _holds(expr: Expr, numbers: frozenset[Par]) -> bool:
    """Whether some numbers occur."""
    return any(isinstance(part, Par) and part in numbers for part in walk(expr))


def _sum(parts: Iterator[dict[Monomial, Expr] | None]) -> dict[Monomial, Expr] | None:
    total: dict[Monomial, Expr] = {}
    for part in parts:
        if part is None:
            return None
        for monomial, expr in part.items():
            total[monomial] = add((total[monomial], expr)) if monomial in total else expr
    return {monomial: expr for monomial, expr in total.items() if expr != const(0)}
