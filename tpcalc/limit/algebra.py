"""Sums and products of series whose coefficients are expressions of numbered arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.exponents.chamber import Power, plus
from tpcalc.functions.expr import Add, Const, Expr, Mul, add, const, mul
from tpcalc.limit.series import Ranking, Rest, Series

ZERO = Fraction(0)
DENSE, FAR, BELOW = 2, 3, 4  # what is known of an argument and the kinks of a function
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
            terms may cancel but for rounding? ``"gated"``: is an argument exactly 0 where all of
            its terms are, whatever its rest? ``"positive"``: is an expression above 0, and has its
            inverse all moments? ``"nonzero"``, ``"away"``: what the expansion rests
            on of scalars.
        expr: Over the fresh arguments.
        points: The points.
        power: Of ``"nonzero"`` the power that is taken.
        gentle: Whether the function is continuous there and not homogeneous, so that a number near
            a point need not be told from it.
    """

    kind: str
    expr: Expr
    points: tuple[float, ...] = (0.0,)
    power: Fraction = Fraction(1)
    gentle: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expansion needs to know besides the series.

    Args:
        ranking: How powers are compared and how many terms are kept.
        ask: Answers a question about the arguments, and records what the answer rests on: 0 no,
            1 yes, ``DENSE`` yes and the density there is bounded, ``FAR`` yes and nothing of it is
            near, ``BELOW`` the same, and it is a negative number.
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
    """The sum of series."""
    pieces = [(exponent, piece) for part in parts for exponent, piece in part.terms]
    rests = [part.rest for part in parts]
    softs = [part.soft for part in parts]
    drifts = [part.drift for part in parts]
    return _collected(pieces, rests, softs, drifts, setting)


def multiplied(a: Terms, b: Terms, setting: Setting) -> Terms:
    """The product of two series."""
    if a.is_zero or b.is_zero:
        return Series(())
    pieces: list[tuple[Power, Expr]] = []
    lost = False
    for p, x in a.terms:
        for q, y in b.terms:
            piece = mul((x, y))
            lost = lost or (isinstance(piece, Const) and {type(x), type(y)} != {Const})
            pieces.append((plus(p, q), piece))
    rests = (b.bounded_by(a.rest), a.bounded_by(b.rest))
    softs = (b.bounded_by(a.soft), a.bounded_by(b.soft))
    drifts = (b.bounded_by(a.drift), a.bounded_by(b.drift))
    return _collected(pieces, rests, softs, drifts, setting, lost=lost)


def _collected(
    pieces: Iterable[tuple[Power, Expr]],
    rests: Iterable[Rest | None],
    softs: Iterable[Rest | None],
    drifts: Iterable[Rest | None],
    setting: Setting,
    *,
    lost: bool = False,
) -> Terms:
    """Terms with equal powers added; what cancels in the limit is left over at finite n.

    But for numbers: a term that is a number is that number at finite n, too.
    """
    drifting = [drift for drift in drifts if drift is not None]
    total: dict[Power, Expr] = {}
    for exponent, piece in pieces:
        if exponent in total:
            found = add((total[exponent], piece))
            lost = lost or (bool(drifting) and _cancels((total[exponent], piece), found))
            total[exponent] = found
        else:
            total[exponent] = piece
    total = {exponent: piece for exponent, piece in total.items() if piece != const(0)}
    if lost and drifting:
        rests, drifting = [*rests, *drifting], []
    return setting.ranking.keep(total, rests, softs, drifting, _merged)


def _cancels(pieces: Iterable[Expr], total: Expr) -> bool:
    """Whether terms of a sum cancel."""
    return not set().union(*map(_monomials, pieces)) <= _monomials(total)


def _monomials(expr: Expr) -> set[tuple[Expr, ...]]:
    """The terms of a sum without their numbers, as factors; not those that are numbers."""
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    factors = (term.factors if isinstance(term, Mul) else (term,) for term in terms)
    return {tuple(f for f in group if not isinstance(f, Const)) for group in factors} - {()}


def _merged(pieces: list[Expr]) -> tuple[Expr | None, bool]:
    total = add(pieces)
    return None if total == const(0) else total, _cancels(pieces, total)


def is_null(piece: Terms) -> bool:
    """Whether a series is identically 0."""
    bounded = any(bound is not None for bound in (piece.rest, piece.soft, piece.drift))
    return piece.is_zero or (not bounded and all(expr == const(0) for _, expr in piece.terms))
