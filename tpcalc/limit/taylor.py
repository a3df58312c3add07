"""Functions of one variable at a leading term of order one: Taylor's formula, and gates at 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction

from tpcalc.errors import NotDifferentiable, ScaleError
from tpcalc.exponents import as_ex
from tpcalc.exponents.chamber import Power, minus, plus, times
from tpcalc.functions import Fn
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Const, Expr, Var, add, const, mul, substitute, walk
from tpcalc.functions.fn import own_derivative
from tpcalc.functions.indicator import AT_ZERO, hidden
from tpcalc.functions.tape import evaluate
from tpcalc.limit.law import is_flat
from tpcalc.limit.series import (
    BELOW,
    DENSE,
    FAR,
    UNBOUNDED,
    ZERO,
    Asked,
    Rest,
    Series,
    Setting,
    Terms,
    is_null,
    multiplied,
    summed,
)

TINY = 1e-12
HERE = Var(-1)  # the argument, in templates of a function of one variable
COARSE = Fraction(1, 4)
MOST = 8  # derivatives that are looked at


def homogeneous(function: Expr, degree: Power, inner: Terms, setting: Setting) -> Terms:
    """f(n^e (c + rest)) = n^(p e) f(c + n^(-e) rest) for a function of degree p."""
    lead, first = inner.terms[0]
    scaled = inner.shift(minus(ZERO, lead))
    clear = _misses_kinks(function, first, setting)
    if clear == BELOW and at_point(function, -1) == 0:
        # It is 0, but for what may be across the kink.
        moved = _size(Series(scaled.terms[1:], scaled.rest), scaled.soft, setting)
        crossing = flips(moved, FAR, setting)
        if crossing is not None and degree != 0:
            crossing = of_degree(moved, degree)
        shut: Terms = Series((), None, crossing)
        return shut.shift(times(degree, lead))
    if clear:
        found = taylor(function, scaled, setting)
    else:
        found = _on_kink(function, degree, scaled, setting)
    return found.shift(times(degree, lead))


def _on_kink(function: Expr, degree: Power, inner: Terms, setting: Setting) -> Terms:
    """A homogeneous function where the leading term may be exactly 0: there the next one decides.

    f(c + rest) = T + [c = 0] (f(rest) - T), where T is Taylor's formula about c up to the order of
    the degree: later derivatives are infinite at 0, and earlier ones are 0 there.
    """
    moved: Terms = Series(inner.terms[1:], inner.rest)
    size = _size(moved, inner.soft, setting)
    if moved.is_zero or size is None or size.power is None:
        return taylor(function, inner, setting, smooth=True)
    slope: Expr | None = None
    with suppress(NotDifferentiable):
        slope = own_derivative(function, HERE)
    followed = bool(moved.terms) and setting.ranking.reach > 0 and isinstance(degree, Fraction)
    if not followed and (slope is None or not isinstance(degree, Fraction)):
        return _hidden(function, inner, size, setting)
    assert isinstance(degree, Fraction)
    if not followed:  # f(rest) where the leading term is 0, f'(c) rest elsewhere
        rest = of_degree(size, degree)  # where that is larger: below degree 1
        return summed([taylor(function, inner, setting), Series((), rest)], setting)
    setting.ask(Asked("told", inner.terms[0][1]))
    at: Mapping[Expr, Expr] = {HERE: inner.terms[0][1]}
    soft, drift = inner.soft, inner.drift
    if slope is None:
        soft, drift = (flips(bound, 1, setting) for bound in (soft, drift))
    pieces: list[Terms] = []
    there = [homogeneous(function, degree, moved, setting)]
    step: Terms = Series(((ZERO, const(1)),))
    coefficient: Expr | None = function
    for order in range(int(degree) + 1):
        assert coefficient is not None  # a power p has [p] derivatives
        value = mul((const(Fraction(1, math.factorial(order))), substitute(coefficient, at)))
        bounds = (soft, drift) if order == 0 else (None, None)
        pieces.append(multiplied(Series(((ZERO, value),), None, *bounds), step, setting))
        if order == degree:  # it jumps at 0: what it is there but for rounding is taken off again
            opposite: Terms = Series(((ZERO, mul((const(-1), value))),))
            there.append(multiplied(opposite, step, setting))
        if order < int(degree):
            step, coefficient = multiplied(step, moved, setting), _slope(coefficient)
    # Elsewhere the rest is smaller, but near 0, on a vanishing share of the coordinates.
    least = of_degree(size if slope is None else setting.ranking.bound(moved), degree)
    assert least is not None and least.power is not None
    pieces.append(Series((), None, Rest(least.power, True, least.power)))
    gate: Terms = Series(((ZERO, AT_ZERO(inner.terms[0][1])),))
    on_zero = summed([piece for piece in there if not is_null(piece)], setting)
    pieces.append(multiplied(gate, on_zero, setting))
    return summed([piece for piece in pieces if not is_null(piece)], setting)


def _hidden(function: Expr, inner: Terms, size: Rest, setting: Setting) -> Terms:
    """The leading order of a gate that some coordinates decide by terms that are not kept."""
    leading = inner.terms[0][1]
    setting.ask(Asked("told", leading))
    gate = mul((AT_ZERO(leading), hidden(next(setting.fresh))(leading)))
    value = add((substitute(function, {HERE: leading}), gate))
    soft, drift = (flips(bound, 1, setting) for bound in (size, inner.drift))
    return Series(((ZERO, value),), None, soft, drift)


def taylor(function: Expr, inner: Terms, setting: Setting, *, smooth: bool = False) -> Terms:
    """f(c + rest) = f(c) + f'(c) rest + ..., for a leading power 0.

    Without a slope (a jump) no order after the first is a function, and the remainder is a jump on
    a part O(rest) of the coordinates: O(rest^(1/2)) in mean square.
    """
    ranking = setting.ranking
    at: Mapping[Expr, Expr] = {HERE: inner.terms[0][1]}
    moved: Terms = Series(inner.terms[1:], inner.rest)
    value = substitute(function, at)
    slope: Expr | None = None
    with suppress(NotDifferentiable):
        slope = own_derivative(function, HERE)
    if moved.is_zero and inner.soft is None and inner.drift is None:
        if slope is None:
            value = _unrounded(function, inner.terms[0][1], value, setting)
        return Series(((ZERO, value),))
    clear = 1 if smooth else min(_misses_kinks(function, inner.terms[0][1], setting), FAR)
    jumps = slope is None and is_flat(function)
    soft, drift = inner.soft, inner.drift
    if jumps or (slope is None and clear < FAR):
        soft, drift = (flips(bound, clear, setting) for bound in (soft, drift))
    first: Terms = Series(((ZERO, value),), None, soft, drift)
    if moved.is_zero:
        return first
    size = moved.lead
    if size is None:
        return Series((), UNBOUNDED)
    if not clear:
        # A positive part of the coordinates (or the number itself) may sit on a kink: its first
        # order is not linear there, and a jump is not small at all.
        rest = Rest(ZERO) if slope is None else ranking.bound(moved)
        return summed([first, Series((), rest)], setting)
    if jumps or (slope is None and clear < FAR):
        crossing = flips(ranking.bound(moved), clear, setting)
        return first if crossing is None else summed([first, Series((), None, crossing)], setting)
    if slope is None or not ranking.depth or not moved.terms:
        return summed([first, Series((), ranking.bound(moved))], setting)
    return _higher(function, slope, at, first, moved, setting, clear)


def _unrounded(function: Expr, leading: Expr, value: Expr, setting: Setting) -> Expr:
    """A function that jumps, of a sum: where that is on the jump but for rounding, it is there."""
    if not any(isinstance(part, Var) for part in walk(leading)):
        return value
    kinks = _kinks(function)
    if not setting.ask(Asked("rounded", leading, kinks)):
        return value
    for kink in kinks:
        there = substitute(function, {HERE: const(kink)})
        opposite = mul((const(-1), value))
        gate = AT_ZERO(add((leading, const(-kink))))
        value = add((value, mul((gate, add((there, opposite))))))
    return value


def flips(bound: Rest | None, clear: int, setting: Setting) -> Rest | None:
    """How far a jump moves that is read where ``clear`` says, for a bound on what moves it.

    On an argument of unknown density it flips on a vanishing share. Far from all jumps nothing of
    order below one flips it (all moments are finite), but for what is large on few coordinates:
    these are as few as its mean square says.
    """
    if bound is None or clear == DENSE:
        return _flipped(bound)
    if clear < FAR:
        return Rest(ZERO, strict=True, peak=ZERO)
    if bound.power is None:
        return Rest(ZERO)
    sign = setting.ranking.chamber.sign
    if sign(bound.power if bound.peak is None else bound.peak) < 0:
        return None
    power = bound.power if sign(bound.power) < 0 else ZERO
    return Rest(power, bound.strict, peak=ZERO)


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
    clear: int,
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
        pieces.append(multiplied(number, step, setting))
        order += 1
        factorial *= order
        if sign(plus(times(Fraction(order), size), depth)) < 0 or order > MOST:
            break
        step = multiplied(step, moved, setting)
        coefficient = _slope(coefficient)
    pieces.append(_remainder(function, order, setting.ranking.bound(moved), clear, setting))
    return summed([piece for piece in pieces if not is_null(piece)], setting)


def _slope(function: Expr) -> Expr | None:
    try:
        return own_derivative(function, HERE)
    except NotDifferentiable:
        return None


def _remainder(
    function: Expr, order: int, moved: Rest | None, clear: int, setting: Setting
) -> Terms:
    """What Taylor's formula leaves after the terms below an order.

    Where the derivative before that order jumps, it is of the size of the term before on a share
    of the coordinates that is as small as the argument's change, if its density is bounded: one
    half more in mean square.
    """
    assert moved is not None and moved.power is not None
    last: Expr | None = function
    before = function
    for _ in range(order):
        if last is not None:
            before, last = last, _slope(last)
    if clear == FAR and flips(moved, FAR, setting) is not None:
        return Series((), None, moved)  # it may be across a kink
    if last is None and clear == FAR and is_flat(before):
        return Series(())
    if last is not None or clear == FAR:
        return Series((), Rest(times(Fraction(order), moved.power), moved.strict))
    peak = times(Fraction(order - 1), moved.power)
    if clear < DENSE:
        return Series((), None, Rest(peak, True, peak))
    half = plus(peak, times(Fraction(1, 2), moved.power))
    return Series((), None, Rest(half, moved.strict, peak))


def _misses_kinks(function: Expr, leading: Expr, setting: Setting) -> int:
    """Whether the leading argument is on a kink with probability 0, and how sure that is."""
    kinks = _kinks(function)
    if not kinks:
        return DENSE
    if isinstance(leading, Const):
        return 0 if float(leading.value) in kinks else DENSE
    if any(isinstance(part, Var) for part in walk(leading)):
        atom = function.atom if isinstance(function, Call) else None
        gentle = atom is not None and not atom.jumps and not atom.facts.homogeneity
        return setting.ask(Asked("clear", leading, kinks, gentle=gentle))
    setting.ask(Asked("away", leading, kinks))  # a number that is on a kink by accident only
    return DENSE


def _kinks(function: Expr) -> tuple[float, ...]:
    """Where a function has kinks or jumps."""
    calls = (part for part in walk(function) if isinstance(part, Call))
    return tuple(sorted({float(kink) for part in calls for kink in part.atom.facts.kinks}))


def of_degree(bound: Rest | None, degree: Power) -> Rest | None:
    """A bound on the p-th power of the size of what is bounded."""
    if bound is None or bound.power is None:
        return bound
    if bound.peak is None:
        return Rest(times(degree, bound.power), bound.strict)
    peak = times(degree, bound.peak)  # on the same share of the coordinates
    return Rest(plus(peak, minus(bound.power, bound.peak)), bound.strict, peak)


def at_point(function: Expr, point: int) -> float:
    """The value of a function of one variable."""
    return float(evaluate(Fn(substitute(function, {HERE: const(point)}), 0), []))


def at_zero(function: Expr) -> Fraction | float:
    """The value of a function of one variable at 0."""
    value = at_point(function, 0)
    if not math.isfinite(value):
        raise ScaleError(
            f"{substitute(function, {HERE: Var(0)}).text} has no finite value at 0, where its "
            "argument tends.",
            hint="Define the function at 0, or multiply the argument by a power of n that makes it "
            "of order one.",
        )
    if abs(value) < TINY:
        return Fraction(0)
    return Fraction(int(value)) if value.is_integer() else value


def plain(degree: object) -> Power:
    """A degree of homogeneity as an exponent.

    Args:
        degree: A fraction, or a polynomial in symbols.
    """
    found = as_ex(degree)  # type: ignore[arg-type]
    constant = found.constant
    return found if constant is None else constant
