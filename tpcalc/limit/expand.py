"""``expand``: series in n substituted into a coordinatewise function.

Sums and products of powers exactly. A function of one variable by Taylor's formula: about the
leading term where it is of order one; about it after taking out its power of n where the function
is homogeneous; about 0 where the argument vanishes. Of an argument that explodes, a function that
is not homogeneous leaves its growth as a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from tpcalc.errors import NotDifferentiable, ScaleError
from tpcalc.functions import Fn
from tpcalc.functions.expr import (
    Add,
    Call,
    Const,
    Expr,
    Mul,
    Par,
    Pow,
    Var,
    add,
    const,
    mul,
    power,
    substitute,
    walk,
)
from tpcalc.functions.fn import derivative
from tpcalc.functions.indicator import AT_ZERO, hidden
from tpcalc.functions.tape import evaluate
from tpcalc.limit.series import UNBOUNDED, Ranking, Rest, Series
from tpcalc.orders import as_ex
from tpcalc.orders.chamber import Power, minus, plus, times

__all__ = ["Explosion", "Setting", "expand"]

ZERO = Fraction(0)
TINY = 1e-12
HERE = Var(-1)  # the argument, in templates of a function of one variable
COARSE = Fraction(1, 4)
MOST = 8  # derivatives at 0 that are looked at


@dataclass(frozen=True, slots=True)
class Explosion:
    """A function that is not homogeneous, of an argument that grows: only a bound is left."""

    where: str
    text: str
    power: Power


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expansion needs to know besides the series.

    Args:
        ranking: How powers are compared and how many terms are kept.
        smooth: Fresh vector arguments whose limit has a density, so that kinks are hit by no part
            of the coordinates.
        where: The node, for messages.
        exploded: Collects what was asked of arguments that explode.
        fresh: Numbers for values that are not followed.
    """

    ranking: Ranking
    smooth: frozenset[Expr]
    where: str
    exploded: list[Explosion]
    fresh: Iterator[int]


Terms = Series[Expr]


def expand(expr: Expr, arguments: Mapping[Expr, Terms], setting: Setting) -> Terms:
    """Substitute series for the arguments of an expression.

    Args:
        expr: The expression, over ``Var`` and ``Par``.
        arguments: For each argument its series; coefficients are fresh arguments.
        setting: Comparisons, arguments with a density, and the node.

    Returns:
        The series of the expression; coefficients are expressions of the fresh arguments.

    Raises:
        ScaleError: A function without a known order at an argument that vanishes or explodes.
    """
    if isinstance(expr, Const):
        return Series(((ZERO, expr),)) if expr.value != 0 else Series(())
    if isinstance(expr, Var | Par):
        return arguments[expr]
    if isinstance(expr, Add):
        return _sum([expand(term, arguments, setting) for term in expr.terms], setting)
    if isinstance(expr, Mul):
        out: Terms = Series(((ZERO, const(1)),))
        for factor in expr.factors:
            out = _times(out, expand(factor, arguments, setting), setting)
        return out
    if isinstance(expr, Pow):
        return _power(expr, expand(expr.base, arguments, setting), setting)
    assert isinstance(expr, Call)
    return _call(expr, expand(expr.arg, arguments, setting), setting)


def _power(expr: Pow, base: Terms, setting: Setting) -> Terms:
    if expr.exponent.denominator == 1 and expr.exponent > 0:
        out = base
        for _ in range(int(expr.exponent) - 1):
            out = _times(out, base, setting)
        return out
    if base.is_zero:
        raise ScaleError(f"{expr.text} of an argument that is identically 0.", where=setting.where)
    function, degree = power(HERE, expr.exponent), expr.exponent
    if not base.terms:  # only a bound is known
        if degree < 0:
            return Series((), UNBOUNDED)
        return Series((), _of_degree(setting.ranking.bound(base), degree))
    lead, first = base.terms[0]
    vectors = {part for part in walk(first) if isinstance(part, Var)}
    if not vectors or _positive(first):
        return _homogeneous(function, degree, base, setting)
    # A part of the coordinates may be near 0, where the function has no slope.
    moved: Terms = Series(base.terms[1:], base.rest, base.soft)
    value: Terms = Series(((ZERO, substitute(function, {HERE: first})),))
    change = setting.ranking.bound(moved.shift(minus(ZERO, lead)))
    drift = None if base.drift is None else base.drift.shift(minus(ZERO, lead))
    change = setting.ranking.larger(change, drift)
    if change is None:
        return value.shift(times(degree, lead))
    rest = UNBOUNDED if degree < 0 else _of_degree(change, min(degree, Fraction(1)))
    return _sum([value, Series((), rest)], setting).shift(times(degree, lead))


def _of_degree(bound: Rest | None, degree: Power) -> Rest | None:
    """A bound on the p-th power of the size of what is bounded."""
    if bound is None or bound.power is None:
        return bound
    if bound.peak is None:
        return Rest(times(degree, bound.power), bound.strict)
    peak = times(degree, bound.peak)  # on the same share of the coordinates
    return Rest(plus(peak, minus(bound.power, bound.peak)), bound.strict, peak)


def _positive(expr: Expr) -> bool:
    """Whether an expression is bounded away from 0 by its form: a positive number and squares."""
    if isinstance(expr, Const):
        return expr.value > 0
    if not isinstance(expr, Add):
        return False
    squares = all(
        (isinstance(term, Const) and term.value > 0)
        or (isinstance(term, Pow) and term.exponent % 2 == 0 and term.exponent > 0)
        for term in expr.terms
    )
    return squares and any(isinstance(term, Const) for term in expr.terms)


def _call(expr: Call, inner: Terms, setting: Setting) -> Terms:
    atom = expr.atom
    if inner.is_zero:
        value = float(evaluate(Fn(atom(const(0)), 0), []))
        return Series(((ZERO, const(value)),)) if value != 0 else Series(())
    degree = atom.facts.homogeneity
    if not inner.terms:
        return _of_bound(expr, setting.ranking.whole(inner, add), setting)
    if degree is not None:
        return _homogeneous(atom(HERE), _plain(degree), inner, setting)
    lead = inner.terms[0][0]
    sign = setting.ranking.chamber.sign(lead)
    if sign == 0:
        return _taylor(atom(HERE), inner.shift(minus(ZERO, lead)), setting)
    return _about_zero(expr, inner, setting) if sign < 0 else _of_large(expr, lead, setting)


def _plain(degree: object) -> Power:
    found = as_ex(degree)  # type: ignore[arg-type]
    constant = found.constant
    return found if constant is None else constant


def _homogeneous(function: Expr, degree: Power, inner: Terms, setting: Setting) -> Terms:
    """f(n^e (c + rest)) = n^(p e) f(c + n^(-e) rest) for a function of degree p."""
    lead, first = inner.terms[0]
    scaled = inner.shift(minus(ZERO, lead))
    if _misses_kinks(function, first, setting.smooth):
        found = _taylor(function, scaled, setting)
    else:
        found = _on_kink(function, degree, scaled, setting)
    return found.shift(times(degree, lead))


def _on_kink(function: Expr, degree: Power, inner: Terms, setting: Setting) -> Terms:
    """A homogeneous function where the leading term may be exactly 0: there the next one decides.

    f(c + rest) = f(c) + f'(c) rest + [c = 0] (f(rest) - f'(0) rest) + ...
    """
    moved: Terms = Series(inner.terms[1:], inner.rest)
    size = _size(moved, inner.soft, setting)
    if moved.is_zero or size is None or size.power is None:
        return _taylor(function, inner, setting, smooth=True)
    slope: Expr | None = None
    with suppress(NotDifferentiable):
        slope = derivative(function, HERE)
    followed = bool(moved.terms) and setting.ranking.depth > 0 and isinstance(degree, Fraction)
    if not followed and (slope is None or not isinstance(degree, Fraction)):
        return _hidden(function, inner, size, setting)
    assert isinstance(degree, Fraction)
    if not followed:  # f(rest) where the leading term is 0, f'(c) rest elsewhere
        rest = _of_degree(size, min(Fraction(1), degree))
        return _sum([_taylor(function, inner, setting), Series((), rest)], setting)
    if degree >= 2:
        return _taylor(function, inner, setting, smooth=True)
    at: Mapping[Expr, Expr] = {HERE: inner.terms[0][1]}
    soft, drift = inner.soft, inner.drift
    if slope is None:
        soft, drift = _flips(soft), _flips(drift)
    pieces: list[Terms] = [Series(((ZERO, substitute(function, at)),), None, soft, drift)]
    linear = Fraction(0) if slope is None else _at_zero(slope)
    there = [_homogeneous(function, degree, moved, setting)]
    if slope is None:
        there.append(Series(((ZERO, const(-_at_zero(function))),)))
        pieces.append(Series((), None, _flips(size)))
    else:
        pieces.append(_times(Series(((ZERO, substitute(slope, at)),)), moved, setting))
        there.append(_times(Series(((ZERO, const(-linear)),)), moved, setting))
        second = setting.ranking.bound(moved)
        assert second is not None and second.power is not None
        # Near 0 the slope turns on a vanishing share of the coordinates.
        pieces.append(Series((), None, Rest(second.power, True, second.power)))
    gate: Terms = Series(((ZERO, AT_ZERO(inner.terms[0][1])),))
    on_zero = _sum([piece for piece in there if not _null(piece)], setting)
    pieces.append(_times(gate, on_zero, setting))
    return _sum(pieces, setting)


def _of_bound(expr: Call, inner: Terms, setting: Setting) -> Terms:
    """A function of an argument of which only a bound is known."""
    facts, rest = expr.atom.facts, inner.rest
    assert rest is not None
    if rest.power is None:
        return Series((), Rest(ZERO) if facts.growth == 0 else UNBOUNDED)
    chamber = setting.ranking.chamber
    if facts.homogeneity is not None:
        degree = _plain(facts.homogeneity)
        found = _of_degree(rest, degree)
        assert found is not None
        if rest.strict and chamber.sign(degree) <= 0:
            found = replace(found, strict=False)
        return Series((), found)
    sign = chamber.sign(rest.power)
    if sign < 0 or (sign == 0 and rest.strict):
        value = float(evaluate(Fn(expr.atom(const(0)), 0), []))
        if expr.atom.derivative is None and 0.0 in facts.kinks:
            return Series((), Rest(ZERO))  # a jump where the argument tends
        terms = ((ZERO, const(value)),) if value != 0 else ()
        return Series(terms, rest)
    return _of_large(expr, rest.power, setting)


def _of_large(expr: Call, lead: Power, setting: Setting) -> Terms:
    """The growth of a function of an argument that may be large."""
    growth = expr.atom.facts.growth
    if setting.ranking.chamber.sign(lead) <= 0:
        return Series((), Rest(ZERO))
    setting.exploded.append(Explosion(setting.where, expr.text, lead))
    if growth is None:
        raise ScaleError(
            f"{expr.text}: its argument explodes like n^({lead}), and the function grows faster "
            "than any power.",
            where=setting.where,
            hint="Check the powers of n that are written in front of the argument.",
        )
    return Series((), Rest(times(_plain(growth), lead)))


def _about_zero(expr: Call, inner: Terms, setting: Setting) -> Terms:
    """Taylor's formula about 0 for an argument that vanishes: f(0) + f'(0) z + ..."""
    atom, ranking = expr.atom, setting.ranking
    lead = inner.terms[0][0]
    kinked = 0.0 in atom.facts.kinks
    if kinked and atom.derivative is None:
        raise ScaleError(
            f"{expr.text} jumps at 0, where its argument tends.",
            where=setting.where,
            hint="Multiply the argument by a power of n that makes it of order one.",
        )
    if kinked and atom.facts.slope_at_zero is None:
        there = atom.facts.value_at_zero
        if there == 0:
            raise ScaleError(
                f"{expr.text} has two slopes at 0, where its argument tends, and is not "
                "homogeneous: its order is not followed.",
                where=setting.where,
                hint="Use an activation that is homogeneous (relu) or smooth at 0 (tanh).",
            )
        return ranking.keep({ZERO: const(there)}, [Rest(lead)], (), (), add)
    pieces: list[Terms] = []
    function, factor = atom(HERE), Fraction(1)
    factor_term: Terms = Series(((ZERO, const(1)),))
    first: int | None = None
    for order in range(MOST):
        value = _derivative_at_zero(function, atom.facts.parity, order)
        if value != 0:
            number: Terms = Series(
                (
                    (
                        ZERO,
                        const(
                            value / factor if isinstance(value, Fraction) else value / float(factor)
                        ),
                    ),
                )
            )
            pieces.append(_times(number, factor_term, setting))
        # An odd function has no term of even order, an even one none of odd order.
        step = 2 if atom.facts.parity != "none" and value != 0 else 1
        power_ = times(Fraction(order + step), lead)
        first = order if first is None and value != 0 else first
        below = times(Fraction(order + step - (first or 0)), lead)
        deep = ranking.chamber.sign(plus(below, ranking.depth)) < 0
        if first is not None and (deep or (kinked and order >= 1)):
            pieces.append(Series((), Rest(power_)))
            return _sum(pieces, setting)
        factor *= order + 1
        factor_term = _times(factor_term, inner, setting)
        function = derivative(function, HERE)
    raise ScaleError(
        f"{expr.text}: its argument vanishes like n^({lead}), and its first derivatives at 0 are "
        "0 or unknown.",
        where=setting.where,
        hint="Multiply the argument by a power of n that makes it of order one.",
    )


def _derivative_at_zero(function: Expr, parity: str, order: int) -> Fraction | float:
    """The value at 0 of a derivative; exactly 0 where the parity of the function says so."""
    if (parity == "odd" and order % 2 == 0) or (parity == "even" and order % 2 == 1):
        return Fraction(0)
    return _at_zero(function)


def _at_zero(function: Expr) -> Fraction | float:
    """The value of a function of one variable at 0."""
    value = float(evaluate(Fn(substitute(function, {HERE: const(0)}), 0), []))
    if abs(value) < TINY or not math.isfinite(value):
        return Fraction(0)
    return Fraction(int(value)) if value.is_integer() else value


def _hidden(function: Expr, inner: Terms, size: Rest, setting: Setting) -> Terms:
    """The leading order of a gate that some coordinates decide by terms that are not kept."""
    leading = inner.terms[0][1]
    gate = mul((AT_ZERO(leading), hidden(next(setting.fresh))(leading)))
    value = add((substitute(function, {HERE: leading}), gate))
    return Series(((ZERO, value),), None, _flips(size), _flips(inner.drift))


def _taylor(function: Expr, inner: Terms, setting: Setting, *, smooth: bool = False) -> Terms:
    """f(c + rest) = f(c) + f'(c) rest + ..., for a leading power 0.

    Without a slope (a jump) no order after the first is a function, and the remainder is a jump on
    a part O(rest) of the coordinates: O(rest^(1/2)) in mean square.
    """
    ranking = setting.ranking
    at: Mapping[Expr, Expr] = {HERE: inner.terms[0][1]}
    moved: Terms = Series(inner.terms[1:], inner.rest)
    value = substitute(function, at)
    if moved.is_zero and inner.soft is None and inner.drift is None:
        return Series(((ZERO, value),))
    slope: Expr | None = None
    with suppress(NotDifferentiable):
        slope = derivative(function, HERE)
    soft, drift = inner.soft, inner.drift
    if slope is None:
        soft, drift = _flipped(soft), _flipped(drift)
    first: Terms = Series(((ZERO, value),), None, soft, drift)
    if moved.is_zero:
        return first
    size = moved.lead
    if size is None:
        return Series((), UNBOUNDED)
    if not smooth and not _misses_kinks(function, inner.terms[0][1], setting.smooth):
        # A positive part of the coordinates (or the number itself) may sit on a kink: its first
        # order is not linear there, and a jump is not small at all.
        rest = Rest(ZERO) if slope is None else ranking.bound(moved)
        return _sum([first, Series((), rest)], setting)
    if slope is None:
        flips = _flipped(ranking.bound(moved))
        return _sum([first, Series((), None, flips)], setting)
    if not ranking.depth or not moved.terms:
        return _sum([first, Series((), ranking.bound(moved))], setting)
    return _higher(function, slope, at, first, moved, setting)


def _flips(bound: Rest | None) -> Rest | None:
    """How far a jump moves on an argument of unknown density: it flips on a vanishing share."""
    return None if bound is None else Rest(ZERO, strict=True, peak=ZERO)


def _flipped(bound: Rest | None) -> Rest | None:
    """How far a jump moves where its argument has a bounded density and moves by that much.

    In mean square the square root; below n^(-1/4) only "o(1)" is kept, or the steps of a training
    run would each have powers of their own.
    """
    if bound is None or bound.power is None:
        return bound
    moved = bound.power if bound.peak is None else bound.peak
    half = times(Fraction(1, 2), moved)
    if bound.peak is not None or (isinstance(half, Fraction) and -COARSE < half < 0):
        return Rest(ZERO, strict=True, peak=ZERO)
    return Rest(half, bound.strict, peak=ZERO)


def _size(moved: Terms, soft: Rest | None, setting: Setting) -> Rest | None:
    """A bound on all that is added to a leading term of order one."""
    return setting.ranking.larger(soft, setting.ranking.bound(moved))


def _higher(
    function: Expr,
    slope: Expr,
    at: Mapping[Expr, Expr],
    first: Terms,
    moved: Terms,
    setting: Setting,
) -> Terms:
    """The terms of Taylor's formula down to the depth that is kept."""
    sign, depth = setting.ranking.chamber.sign, setting.ranking.depth
    size = moved.lead
    assert size is not None
    pieces, order, factorial = [first], 1, 1
    step = moved
    coefficient: Expr | None = slope
    while coefficient is not None:
        number: Terms = Series(
            ((ZERO, mul((const(Fraction(1, factorial)), substitute(coefficient, at)))),)
        )
        pieces.append(_times(number, step, setting))
        order += 1
        factorial *= order
        if sign(plus(times(Fraction(order), size), depth)) < 0 or order > MOST:
            break
        step = _times(step, moved, setting)
        coefficient = _slope(coefficient)
    pieces.append(_remainder(function, order, setting.ranking.bound(moved)))
    return _sum([piece for piece in pieces if not _null(piece)], setting)


def _slope(function: Expr) -> Expr | None:
    try:
        return derivative(function, HERE)
    except NotDifferentiable:
        return None


def _remainder(function: Expr, order: int, moved: Rest | None) -> Terms:
    """What Taylor's formula leaves after the terms below an order.

    Where the derivative before that order jumps, it is of the size of the term before on a share
    of the coordinates that is as small as the argument's change: one half more in mean square.
    """
    assert moved is not None and moved.power is not None
    last: Expr | None = function
    for _ in range(order):
        last = None if last is None else _slope(last)
    if last is not None:
        return Series((), Rest(times(Fraction(order), moved.power), moved.strict))
    peak = times(Fraction(order - 1), moved.power)
    half = plus(peak, times(Fraction(1, 2), moved.power))
    return Series((), None, Rest(half, moved.strict, peak))


def _null(piece: Terms) -> bool:
    bounded = any(bound is not None for bound in (piece.rest, piece.soft, piece.drift))
    return piece.is_zero or (not bounded and all(expr == const(0) for _, expr in piece.terms))


def _misses_kinks(function: Expr, leading: Expr, smooth: frozenset[Expr]) -> bool:
    """Whether the leading argument is on a kink with probability 0."""
    kinks = {
        float(kink)
        for part in walk(function)
        if isinstance(part, Call)
        for kink in part.atom.facts.kinks
    }
    if not kinks:
        return True
    if isinstance(leading, Const):
        return float(leading.value) not in kinks
    vectors = {part for part in walk(leading) if isinstance(part, Var)}
    if not vectors:  # a number that is on a kink by accident only
        return True
    affine = isinstance(leading, Var) or all(
        isinstance(part, Add | Mul | Const | Var | Par) for part in walk(leading)
    )
    products = any(
        isinstance(part, Mul) and sum(isinstance(f, Var) for f in part.factors) > 1
        for part in walk(leading)
    )
    return vectors <= smooth and affine and not products


def _sum(parts: list[Terms], setting: Setting) -> Terms:
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
    return setting.ranking.keep(total, rests, softs, drifts, add)


def _times(a: Terms, b: Terms, setting: Setting) -> Terms:
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
    return setting.ranking.keep(total, rests, softs, drifts, add)
