"""The rule of functions of scalars: numbers are put in, and what sums share cancels."""

from __future__ import annotations

from typing import Any

from tpcalc.exponents.chamber import Power
from tpcalc.functions import Const, Expr, Fn, Par
from tpcalc.functions.expr import Add, Mul, add, const, mul, substitute
from tpcalc.functions.tape import evaluate
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.graph import LNode, LRef
from tpcalc.limit.pieces import Value, collected, expanded
from tpcalc.limit.views import function_of, number_of
from tpcalc.program.nodes import Nonlin, Ref


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
    rests, drifts = [bounds.rest, bounds.soft], [bounds.drift]
    if cancelled:
        rests, drifts = rests + drifts, []
    return context.ranking.keep(
        dict(terms), rests, (), drifts, lambda items: _joined(context, items)
    )


def _joined(context: Context, items: list[LRef]) -> tuple[LRef, bool]:
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
