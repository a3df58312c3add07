"""Sums and products of series whose coefficients are expressions of numbered arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.functions.expr import Expr, add, const, mul
from tpcalc.limit.series import Ranking, Series
from tpcalc.orders.chamber import Power, plus

__all__ = ["ZERO", "Asked", "Explosion", "Setting", "Terms", "is_null", "multiplied", "summed"]

ZERO = Fraction(0)
Terms = Series[Expr]


@dataclass(frozen=True, slots=True)
class Explosion:
    """A function that is not homogeneous, of an argument that grows: only a bound is left."""

    where: str
    text: str
    power: Power


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the arguments of an expansion.

    Args:
        kind: ``"clear"``: has an expression of vectors a law without mass at the points?
            ``"told"``: can samples tell where it is exactly there? ``"rounded"``: is it a sum whose
            terms may cancel but for rounding? ``"nonzero"``, ``"away"``: what the expansion rests
            on of scalars.
        expr: Over the fresh arguments.
        points: The points.
        power: Of ``"nonzero"`` the power that is taken.
    """

    kind: str
    expr: Expr
    points: tuple[float, ...] = (0.0,)
    power: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expansion needs to know besides the series.

    Args:
        ranking: How powers are compared and how many terms are kept.
        ask: Answers a question about the arguments, and records what the answer rests on: 0 no,
            1 yes, 2 yes and the density there is bounded.
        positive: Fresh vector arguments that stay away from 0.
        where: The node, for messages.
        exploded: Collects what was asked of arguments that explode.
        fresh: Numbers for values that are not followed.
    """

    ranking: Ranking
    ask: Callable[[Asked], int]
    positive: frozenset[Expr]
    where: str
    exploded: list[Explosion]
    fresh: Iterator[int]


def summed(parts: list[Terms], setting: Setting) -> Terms:
    """The sum of series.

    Args:
        parts: The series.
        setting: How powers are compared.
    """
    total: dict[Power, Expr] = {}
    for part in parts:
        for exponent, piece in part.terms:
            total[exponent] = add((total[exponent], piece)) if exponent in total else piece
    cancelled = any(piece == const(0) for piece in total.values())
    total = {exponent: piece for exponent, piece in total.items() if piece != const(0)}
    rests = [part.rest for part in parts]
    softs = [part.soft for part in parts]
    drifts = [part.drift for part in parts]
    if cancelled:
        rests, drifts = rests + drifts, []
    return setting.ranking.keep(total, rests, softs, drifts, _merged)


def multiplied(a: Terms, b: Terms, setting: Setting) -> Terms:
    """The product of two series.

    Args:
        a: One.
        b: The other.
        setting: How powers are compared.
    """
    if a.is_zero or b.is_zero:
        return Series(())
    total: dict[Power, Expr] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            piece = mul((x, y))
            exponent = plus(left, right)
            total[exponent] = add((total[exponent], piece)) if exponent in total else piece
    rests = (b.bounded_by(a.rest), a.bounded_by(b.rest))
    softs = (b.bounded_by(a.soft), a.bounded_by(b.soft))
    drifts = (b.bounded_by(a.drift), a.bounded_by(b.drift))
    return setting.ranking.keep(total, rests, softs, drifts, _merged)


def _merged(pieces: list[Expr]) -> Expr | None:
    total = add(pieces)
    return None if total == const(0) else total


def is_null(piece: Terms) -> bool:
    """Whether a series is identically 0.

    Args:
        piece: The series.
    """
    bounded = any(bound is not None for bound in (piece.rest, piece.soft, piece.drift))
    return piece.is_zero or (not bounded and all(expr == const(0) for _, expr in piece.terms))
