"""``expand``: series in n substituted into a coordinatewise function.

Sums and products of powers exactly. A function of one variable by Taylor's formula: about the
leading term where it is of order one; about it after taking out its power of n where the function
is homogeneous; about 0 where the argument vanishes. Of an argument that explodes, a function that
is not homogeneous leaves its growth as a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from tpcalc.errors import ScaleError
from tpcalc.exponents.chamber import Power, minus, plus, times
from tpcalc.functions import Fn
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import (
    Add,
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
from tpcalc.functions.fn import own_derivative
from tpcalc.functions.form import Quotient, is_bounded, least, quotient, reciprocal
from tpcalc.functions.indicator import AT_ZERO, hidden
from tpcalc.functions.tape import evaluate
from tpcalc.limit.series import (
    DENSE,
    UNBOUNDED,
    ZERO,
    Asked,
    Explosion,
    Rest,
    Series,
    Setting,
    Terms,
    is_null,
    multiplied,
    summed,
)
from tpcalc.limit.taylor import HERE, MOST, at_zero, flips, homogeneous, of_degree, plain, taylor

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _Part:
    """An argument, its series, and the numbers in front of it and of its square."""

    root: Expr
    series: Terms
    linear: Expr
    square: Expr

    def after(self, leading: bool, setting: Setting) -> _Part:
        """What is left of it where the leading term is 0: of a gate that is shut no rest."""
        terms = self.series.terms[1:] if leading else self.series.terms
        rest = self.series.rest
        if rest is not None and isinstance(self.root, Var):
            rest = None if setting.ask(Asked("gated", self.root)) else rest
        return replace(self, series=Series(terms, rest))


def divided(quotient: Quotient, expand: Callable[[Expr], Terms], setting: Setting) -> Terms | None:
    """The series of a quotient; None where what is added to the root is not small beside it."""
    parts = [_Part(root, expand(root), const(b), const(a)) for root, b, a in quotient.parts]
    sizes = [part.series.lead for part in parts if not part.series.is_zero]
    if quotient.shift == const(0):
        return _ratio(parts, None, setting)
    sign = setting.ranking.chamber.sign
    if any(size is None for size in sizes):
        return Series((), Rest(ZERO))
    if not any(size is not None and sign(size) > 0 for size in sizes):
        return None
    return _ratio(parts, Rest(ZERO), setting)


def _ratio(parts: Sequence[_Part], beside: Rest | None, setting: Setting) -> Terms:
    """The quotient of some series, of which the largest ones lead."""
    ranking = setting.ranking
    sign = ranking.chamber.sign
    parts = [part for part in parts if not part.series.is_zero]
    if not parts:
        return Series(())
    if not all(part.series.terms for part in parts):
        return Series((), Rest(ZERO))  # it is bounded
    powers = [part.series.terms[0][0] for part in parts]
    size = reduce(lambda most, one: one if sign(minus(one, most)) > 0 else most, powers)
    parts = [replace(part, series=part.series.shift(minus(ZERO, size))) for part in parts]
    first = [part for part in parts if sign(part.series.terms[0][0]) == 0]
    drift: Rest | None = None
    moved = None if beside is None else beside.shift(minus(ZERO, size))
    for part in parts:
        left = Series(part.series.terms[part in first :], part.series.rest)
        moved = ranking.larger(moved, ranking.larger(ranking.bound(left), part.series.soft))
        drift = ranking.larger(drift, part.series.drift)
    leading = [(part, part.series.terms[0][1]) for part in first]
    clear = _clear([own for _, own in leading], setting)
    soft, drift = (None if b is None else flips(b, clear or 1, setting) for b in (moved, drift))
    squares = add(mul((part.square, own, own)) for part, own in leading)
    above = add(mul((part.linear, own)) for part, own in leading)
    value = mul((above, reciprocal(HALF)(squares)))
    terms = () if value == const(0) else ((ZERO, value),)
    whole: Terms = Series(terms, None, soft, drift)
    if clear:
        return whole
    later = [part.after(part in first, setting) for part in parts]
    hard: Rest | None = None
    for part in later:
        hard = ranking.larger(hard, ranking.bound(part.series))
    if hard is None:
        return whole
    for _, own in leading:  # where all are 0 the next order decides
        setting.ask(Asked("told", own))
    deep = ranking.depth and any(part.series.terms for part in later)
    there = None if beside is None or hard.power is None else sign(plus(hard.power, size))
    if there is not None and there < 0:  # what is added to the root is larger there
        return summed([whole, Series((), hard.shift(size))], setting)
    if not deep or there == 0:
        gate = mul((AT_ZERO(squares), hidden(next(setting.fresh))(squares)))
        return summed([whole, Series(((ZERO, gate),))], setting)
    near = None if beside is None else beside.shift(minus(ZERO, size))
    gated = multiplied(Series(((ZERO, AT_ZERO(squares)),)), _ratio(later, near, setting), setting)
    return summed([whole, *([] if is_null(gated) else [gated])], setting)


def _clear(leading: Sequence[Expr], setting: Setting) -> int:
    """Whether some leading argument is 0 with probability 0, and how sure that is."""
    for own in leading:
        varies = any(isinstance(part, Var) for part in walk(own))
        if not varies and not isinstance(own, Const):
            setting.ask(Asked("away", own))
        clear = setting.ask(Asked("clear", own)) if varies else DENSE
        if clear:
            return clear
    return 0


class DividedByZero(ScaleError):
    """A division by what is 0 at every width."""


def expand(expr: Expr, arguments: Mapping[Expr, Terms], setting: Setting) -> Terms:
    """Substitute series for the arguments of an expression."""
    if isinstance(expr, Const):
        return Series(((ZERO, expr),)) if expr.value != 0 else Series(())
    if isinstance(expr, Var | Par):
        return arguments[expr]
    if isinstance(expr, Add):
        return summed([expand(term, arguments, setting) for term in expr.terms], setting)
    if isinstance(expr, Mul):
        out: Terms = Series(((ZERO, const(1)),))
        factors = expr.factors
        found = quotient(expr)
        if found is not None:
            whole = divided(found, lambda own: expand(own, arguments, setting), setting)
            if whole is not None:
                out, factors = whole, found.others
        for factor in factors:
            out = multiplied(out, expand(factor, arguments, setting), setting)
        return out
    if isinstance(expr, Pow):
        return _power(expr, expand(expr.base, arguments, setting), setting)
    assert isinstance(expr, Call)
    return _call(expr, expand(expr.arg, arguments, setting), setting)


def _power(expr: Pow, base: Terms, setting: Setting) -> Terms:
    if expr.exponent.denominator == 1 and expr.exponent > 0:
        out = base
        for _ in range(int(expr.exponent) - 1):
            out = multiplied(out, base, setting)
        return out
    if base.is_zero:
        raise DividedByZero(
            f"{expr.text} of an argument that is identically 0.", where=setting.where
        )
    function, degree = power(HERE, expr.exponent), expr.exponent
    if not base.terms:  # only a bound is known
        if degree < 0:
            return Series((), UNBOUNDED)
        return Series((), of_degree(setting.ranking.bound(base), degree))
    lead, first = base.terms[0]
    if _is_away(first, degree, setting):
        return homogeneous(function, degree, base, setting)
    if degree < 0:
        raise ScaleError(
            f"{expr.text}: the power of a vector whose coordinates may be near 0 has no mean.",
            where=setting.where,
            hint="Divide by an average (t.inner(x, x)), or by something like 1 + x**2.",
        )
    # A part of the coordinates may be near 0, where the function has no slope.
    moved: Terms = Series(base.terms[1:], base.rest, base.soft)
    value: Terms = Series(((ZERO, substitute(function, {HERE: first})),))
    change = setting.ranking.bound(moved.shift(minus(ZERO, lead)))
    drift = None if base.drift is None else base.drift.shift(minus(ZERO, lead))
    change = setting.ranking.larger(change, drift)
    if change is None:
        return value.shift(times(degree, lead))
    rest = of_degree(change, min(degree, Fraction(1)))
    return summed([value, Series((), rest)], setting).shift(times(degree, lead))


def _is_away(first: Expr, degree: Fraction, setting: Setting) -> bool:
    """Whether what leads the argument of a power is away from 0, by its form or as is asked."""
    if first in setting.positive or is_positive(first):
        return True
    if any(isinstance(part, Var) for part in walk(first)):
        return bool(setting.ask(Asked("positive", first)))
    setting.ask(Asked("nonzero", first, power=degree))
    return True


def _call(expr: Call, inner: Terms, setting: Setting) -> Terms:
    atom = expr.atom
    if inner.is_zero:
        value = float(evaluate(Fn(atom(const(0)), 0), []))
        return Series(((ZERO, const(value)),)) if value != 0 else Series(())
    degree = atom.facts.homogeneity
    if not inner.terms:
        return _of_bound(expr, setting.ranking.whole(inner), setting)
    if degree is not None:
        return homogeneous(atom(HERE), plain(degree), inner, setting)
    lead = inner.terms[0][0]
    sign = setting.ranking.chamber.sign(lead)
    if sign == 0:
        return taylor(atom(HERE), inner.shift(minus(ZERO, lead)), setting)
    return _about_zero(expr, inner, setting) if sign < 0 else _of_large(expr, lead, setting)


def _of_bound(expr: Call, inner: Terms, setting: Setting) -> Terms:
    """A function of an argument of which only a bound is known."""
    facts, rest = expr.atom.facts, inner.rest
    assert rest is not None
    if rest.power is None:
        return Series((), Rest(ZERO) if facts.growth == 0 else UNBOUNDED)
    chamber = setting.ranking.chamber
    if facts.homogeneity is not None:
        degree = plain(facts.homogeneity)
        found = of_degree(rest, degree)
        assert found is not None
        if rest.strict and chamber.sign(degree) <= 0:
            found = replace(found, strict=False)
        return Series((), found)
    sign = chamber.sign(rest.power)
    if sign < 0 or (sign == 0 and rest.strict):
        value = float(evaluate(Fn(expr.atom(const(0)), 0), []))
        if expr.atom.jumps and 0.0 in facts.kinks:
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
    if growth is None and is_bounded(expr):
        return Series((), Rest(ZERO))
    if growth is None:
        raise ScaleError(
            f"{expr.text}: its argument explodes like n^({lead}), and the function grows faster "
            "than any power.",
            where=setting.where,
            hint="Check the powers of n that are written in front of the argument.",
        )
    return Series((), Rest(times(plain(growth), lead)))


def _about_zero(expr: Call, inner: Terms, setting: Setting) -> Terms:
    """Taylor's formula about 0 for an argument that vanishes: f(0) + f'(0) z + ..."""
    atom = expr.atom
    lead = inner.terms[0][0]
    if atom.near_zero is not None:
        order, least = 1, 0 if atom.facts.value_at_zero else 1
        while order < MOST and not _is_deep(times(Fraction(order + 1 - least), lead), setting):
            order += 1
        near = expand(atom.near_zero(HERE, order), {HERE: inner}, setting)
        return summed([near, Series((), Rest(times(Fraction(order + 1), lead)))], setting)
    kinked = 0.0 in atom.facts.kinks
    if kinked and (atom.jumps or atom.facts.slope_at_zero is None):
        return _at_kink(expr, lead, setting)
    pieces: list[Terms] = []
    function, factor = atom(HERE), Fraction(1)
    factor_term: Terms = Series(((ZERO, const(1)),))
    first: int | None = None
    for order in range(MOST):
        value = _derivative_at_zero(function, atom.facts.parity, order)
        if value != 0:
            exact = isinstance(value, Fraction)
            number = const(value / factor if exact else value / float(factor))
            pieces.append(multiplied(Series(((ZERO, number),)), factor_term, setting))
        # An odd function has no term of even order, an even one none of odd order.
        step = 2 if atom.facts.parity != "none" and value != 0 else 1
        power_ = times(Fraction(order + step), lead)
        first = order if first is None and value != 0 else first
        below = times(Fraction(order + step - (first or 0)), lead)
        deep = _is_deep(below, setting)
        if first is not None and (deep or (kinked and order >= 1)):
            pieces.append(Series((), Rest(power_)))
            return summed(pieces, setting)
        factor *= order + 1
        factor_term = multiplied(factor_term, inner, setting)
        function = own_derivative(function, HERE)
    if first is not None:  # more orders than are looked at: what is left is a bound
        return summed([*pieces, Series((), Rest(times(Fraction(MOST), lead)))], setting)
    raise ScaleError(
        f"{expr.text}: its argument vanishes like n^({lead}), and its first derivatives at 0 are "
        "0 or unknown.",
        where=setting.where,
        hint="Multiply the argument by a power of n that makes it of order one.",
    )


def _at_kink(expr: Call, lead: Power, setting: Setting) -> Terms:
    """The value at 0 of a function that has two slopes there, and a bound on the rest."""
    there = expr.atom.facts.value_at_zero
    if expr.atom.jumps:
        raise ScaleError(
            f"{expr.text} jumps at 0, where its argument tends.",
            where=setting.where,
            hint="Multiply the argument by a power of n that makes it of order one.",
        )
    if there == 0:
        raise ScaleError(
            f"{expr.text} has two slopes at 0, where its argument tends, and is not "
            "homogeneous: its order is not followed.",
            where=setting.where,
            hint="Use an activation that is homogeneous (relu) or smooth at 0 (tanh).",
        )
    return summed([Series(((ZERO, const(there)),)), Series((), Rest(lead))], setting)


def _is_deep(power: Power, setting: Setting) -> bool:
    """Whether what is smaller by a power is not followed."""
    return setting.ranking.chamber.sign(plus(power, setting.ranking.depth)) < 0


def _derivative_at_zero(function: Expr, parity: str, order: int) -> Fraction | float:
    """The value at 0 of a derivative; exactly 0 where the parity of the function says so."""
    if (parity == "odd" and order % 2 == 0) or (parity == "even" and order % 2 == 1):
        return Fraction(0)
    return at_zero(function)


def is_positive(expr: Expr) -> bool:
    """Whether an expression is bounded away from 0 by its form: a positive number and squares."""
    return least(expr) > 0
