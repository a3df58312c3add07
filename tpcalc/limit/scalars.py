"""The rules of what gives scalars: averages, and functions of scalars.

An average is an expectation, or a fluctuation where the expectation is 0 by symmetry. In a function
of scalars numbers are put in, and what sums share cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc.exponents.chamber import Power, minus
from tpcalc.functions import Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, add, const, mul, substitute
from tpcalc.functions.fn import FIRST, SQUARE
from tpcalc.functions.tape import evaluate
from tpcalc.limit.apart import TIMES, apart
from tpcalc.limit.chains import composed
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.fluctuations import fluctuation
from tpcalc.limit.graph import Expect, LNode, LRef, Noise, function_of, number_of
from tpcalc.limit.pieces import Value, collected, expanded
from tpcalc.limit.series import Remainder, Rest, Series
from tpcalc.program.nodes import Moment, Nonlin, Ref

HALF, ZERO = Fraction(1, 2), Fraction(0)


def moment(node: Moment, ref: Ref, values: list[Any], context: Context) -> Value:
    """The series of an average.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZMoment) and Lemma C.3.
    """
    fn, vectors, scalars = composed(context.program, node.fn, node.vectors, node.scalars)
    arguments = [values[r] for r in vectors], [values[r] for r in scalars]
    pieces, bounds = expanded(context, fn, *arguments, ref)
    dim = context.dim(node.vectors[0])
    rest = context.ranking.larger(bounds.rest, bounds.soft)
    total: dict[Power, list[LRef]] = {}
    for piece in pieces:
        if _is_below(context, piece, rest):
            context.claim_mean(piece, ref, "zero")
            continue
        for power, item in _averages(context, piece, dim, ref):
            total.setdefault(power, []).append(item)
    kept = context.ranking.keep(total, Remainder.flat(bounds), _joined)
    sums = tuple((power, context.scalar_sum(items)) for power, items in kept.terms)
    return Series(sums, kept.rest, None, kept.drift)


def moments(context: Context, vector: LRef, ref: Ref) -> tuple[LRef | None, LRef | None]:
    """The nodes of E Z and E Z^2, by the rule of averages; None for one that is 0 by symmetry."""
    dim = context.dims[vector]
    assert dim is not None
    found = []
    for fn in (FIRST, SQUARE):
        terms = _averages(context, Piece(ZERO, fn, (vector,), ()), dim, ref)
        items = [item for power, item in terms if power == ZERO]
        found.append(context.scalar_sum(items) if items else None)
    return found[0], found[1]


def _joined(lists: list[list[LRef]]) -> tuple[list[LRef], bool]:
    return [item for items in lists for item in items], False


def _is_below(context: Context, piece: Piece, rest: Rest | None) -> bool:
    """Whether a piece is 0 by symmetry and what it fluctuates by is as small as what was dropped.

    In a long run such pieces have most of the terms. With symbols each comparison becomes part of
    the answer, so that none is made for this.
    """
    ranking = context.ranking
    if rest is None or ranking.chamber.point:
        return False
    small = ranking.covers(rest, minus(piece.power, HALF))
    return small and context.parity.zero_mean(piece.fn, piece.vectors)


def _averages(context: Context, piece: Piece, dim: str, ref: Ref) -> Iterator[tuple[Power, LRef]]:
    """The moment of one piece as terms (power, scalar node), numbers without a law in front."""
    for front, part in apart(context, piece):
        for power, item in _expectations(context, part, dim, ref):
            if front is not None:
                item = context.scalar(TIMES, (front, item))
            yield power, item


def _expectations(context: Context, piece: Piece, dim: str, ref: Ref) -> list[tuple[Power, LRef]]:
    """The moment of one piece as terms (power, scalar node).

    A summand whose mean is 0 is n^(-1/2) times a Gaussian, whose law may be known.
    """
    piece = _inlined(context, piece)
    summands = piece.fn.expr.terms if isinstance(piece.fn.expr, Add) else (piece.fn.expr,)
    smooth: list[Expr] = []
    noise: list[Expr] = []
    out: list[tuple[Power, LRef]] = []
    for summand in summands:
        part = piece
        if len(summands) > 1:
            part = replace(piece, fn=Fn(summand, len(piece.vectors), len(piece.scalars)))
        found = fluctuation(context, part, dim)
        zero = found is not None or context.parity.zero_mean(part.fn, part.vectors)
        context.claim_mean(part, ref, "zero" if zero else "mean")
        if found is not None:
            out.append((minus(piece.power, HALF), found))
        elif zero:
            noise.append(summand)
        else:
            smooth.append(summand)
    if smooth:
        fn, vectors, scalars = _part(smooth, summands, piece)
        if not vectors:  # the moment of a constant
            node = context.scalar(fn, scalars)
        else:
            node = context.add(Expect(fn, vectors, scalars), None)
        out.append((piece.power, node))
    if noise:
        item = context.add(Noise(*_part(noise, summands, piece)), None)
        out.append((minus(piece.power, HALF), item))
    return out


def _part(
    chosen: Sequence[Expr], summands: Sequence[Expr], piece: Piece
) -> tuple[Fn, tuple[LRef, ...], tuple[LRef, ...]]:
    """Some of the summands of a piece, as a function of what they use."""
    if len(chosen) == len(summands):
        return piece.fn, piece.vectors, piece.scalars
    expr = chosen[0] if len(chosen) == 1 else Add(tuple(chosen))
    fn, keep_v, keep_s = Fn(expr, piece.fn.vectors, piece.fn.scalars).compact()
    vectors = tuple(piece.vectors[i] for i in keep_v)
    return fn, vectors, tuple(piece.scalars[i] for i in keep_s)


def _inlined(context: Context, piece: Piece) -> Piece:
    """The average of a vector that is a function: the function itself may show a start vector."""
    if piece.fn.expr == Var(0):
        node = function_of(context.nodes[piece.vectors[0]])
        if node is not None:
            return Piece(piece.power, node.fn, node.vectors, node.scalars)
    return piece


def scalar_fn(node: Nonlin, ref: Ref, values: list[Any], context: Context) -> Value:
    """The series of a function of scalars.

    Source: Hajjar, Chizat, Giraud, section B.2 (scalars of a program).
    """
    pieces, bounds = expanded(context, node.fn, [], [values[r] for r in node.scalars], ref)
    terms: list[tuple[Power, LRef]] = []
    cancelled = False
    for piece in pieces:
        opened = _flat(context, piece)
        one = collected(opened)
        cancelled = cancelled or one is not opened
        item = _function(context, one)
        if item is not None:
            terms.append((piece.power, item))
    left = Remainder.flat(bounds)
    if cancelled:
        left.settle()
    return context.ranking.keep(dict(terms), left, lambda items: _joined_sums(context, items))


def _joined_sums(context: Context, items: list[LRef]) -> tuple[LRef, bool]:
    return context.scalar_sum(items), False


def _flat(context: Context, piece: Piece) -> Piece:
    """A sum of scalars that are sums themselves, opened so that what they share cancels."""
    linear = isinstance(piece.fn.expr, Add)
    sums = [_sum_of_scalars(context.nodes[scalar]) for scalar in piece.scalars]
    if not linear or not any(sums):
        return piece
    given: dict[Expr, Expr] = {}
    scalars: list[LRef] = []
    for place, (scalar, node) in enumerate(zip(piece.scalars, sums, strict=True)):
        start = len(scalars)
        if node is not None:
            scalars += node.scalars
            moved: dict[Expr, Expr] = {Par(i): Par(start + i) for i in range(len(node.scalars))}
            given[Par(place)] = substitute(node.fn.expr, moved)
        else:
            scalars.append(scalar)
            given[Par(place)] = Par(start)
    expr = add(_spread(substitute(term, given)) for term in _terms(piece.fn.expr))
    return Piece(piece.power, Fn(expr, 0, len(scalars)), (), tuple(scalars))


def _sum_of_scalars(node: LNode) -> Nonlin | None:
    found = function_of(node)
    return found if found is not None and isinstance(found.fn.expr, Add) else None


def _terms(expr: Expr) -> tuple[Expr, ...]:
    return expr.terms if isinstance(expr, Add) else (expr,)


def _spread(expr: Expr) -> Expr:
    """A number times a sum, multiplied out."""
    if isinstance(expr, Mul) and len(expr.factors) == 2 and isinstance(expr.factors[0], Const):
        number, inner = expr.factors
        return add(mul((number, term)) for term in _terms(inner))
    return expr


def _function(context: Context, piece: Piece | None) -> LRef | None:
    """The node of a function of scalars; numbers are put in; None where it is 0."""
    if piece is None:
        return None
    given: dict[Expr, Expr] = {}
    for place, scalar in enumerate(piece.scalars):
        node = number_of(context.nodes[scalar])
        if node is not None:
            given[Par(place)] = const(node.value)
    expr = substitute(piece.fn.expr, given) if given else piece.fn.expr
    if len(given) == len(piece.scalars):
        value = expr.value if isinstance(expr, Const) else float(evaluate(Fn(expr, 0), []))
        return context.number(value) if value != 0 else None
    fn, _, keep = Fn(expr, 0, len(piece.scalars)).compact()
    return context.scalar(fn, [piece.scalars[i] for i in keep])
