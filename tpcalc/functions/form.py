"""What the form of an expression shows: bounds, quotients that are bounded, degrees, periods.

Of degree p is a function with tau(c s) = c^p tau(s) for every c > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import inf, isfinite, prod
from numbers import Rational
from typing import Any

import numpy as np

from tpcalc.functions.atoms import Atom, Call, Facts, in_sympy
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
    split_coefficient,
)
from tpcalc.functions.fn import Fn
from tpcalc.functions.numbers import Number
from tpcalc.functions.tape import evaluate

Range = tuple[float, float]
HERE = Var(0)


def least(expr: Expr) -> float:
    """A number that an expression is nowhere below; minus infinity where its form shows none.

    Example:
        >>> from tpcalc.functions import Var
        >>> least(2 * Var(0) ** 2 + 3), least(Var(0) ** 3)
        (3.0, -inf)
    """
    return _range(expr)[0]


def is_bounded(expr: Expr) -> bool:
    """Whether the form of an expression shows that it is bounded."""
    low, high = _range(expr)
    return isfinite(low) and isfinite(high)


@lru_cache(maxsize=2**12)
def _range(expr: Expr) -> Range:
    """Numbers that an expression is nowhere below and nowhere above."""
    if isinstance(expr, Const):
        return float(expr.value), float(expr.value)
    if isinstance(expr, Add):
        lows, highs = zip(*map(_range, expr.terms), strict=True)
        return sum(lows), sum(highs)
    if isinstance(expr, Mul):
        return reduce(_product, map(_range, expr.factors))
    if isinstance(expr, Pow):
        return _power(*_range(expr.base), float(expr.exponent))
    return _call(expr) if isinstance(expr, Call) else (-inf, inf)


def _product(left: Range, right: Range) -> Range:
    ends = [x * y if x and y else 0.0 for x in left for y in right]
    return min(ends), max(ends)


def _power(low: float, high: float, exponent: float) -> Range:
    if low < 0:
        if exponent % 2:
            return -inf, inf
        low, high = 0.0, max(-low, high)
    ends = sorted(_raised(end, exponent) for end in (low, high))
    return ends[0], ends[1]


def _raised(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return inf


def _call(expr: Call) -> Range:
    """Of a function by what is known of it; of one that rises also by the range of its argument."""
    facts, (low, high) = expr.atom.facts, _range(expr.arg)
    least, most = facts.least, -facts.least if facts.parity == "odd" else inf
    rises = (isfinite(low) or isfinite(high)) and expr.atom.derivative is not None
    if rises and facts.analytic and _range(expr.atom.differentiate(HERE))[0] >= 0:
        ends = [float(evaluate(Fn(expr.atom(const(x)), 0), [])) if isfinite(x) else x
                for x in (low, high)]  # fmt: skip
        least, most = max(least, ends[0]), min(most, ends[1])
    return least, most


def is_tame(
    expr: Expr,
    linear: Callable[[Expr], bool],
    known: Callable[[Var | Par], bool] = lambda argument: False,
) -> bool:
    """Whether an expression is positive and its inverse has all moments, by its form.

    Example:
        >>> from tpcalc.functions import Var
        >>> is_tame(2 + Var(0) ** 2, lambda part: True), is_tame(Var(0) ** 2, lambda part: True)
        (True, False)
    """
    if least(expr) > 0:
        return True
    if isinstance(expr, Add):
        tame = [is_tame(term, linear, known) for term in expr.terms]
        return any(tame) and all(map(lambda own, term: own or least(term) >= 0, tame, expr.terms))
    if isinstance(expr, Mul):
        return all(is_tame(factor, linear, known) for factor in expr.factors)
    if isinstance(expr, Call):
        return expr.atom.facts.tame and linear(expr.arg)
    if isinstance(expr, Pow):
        return is_tame(expr.base, linear, known)
    return isinstance(expr, Var | Par) and known(expr)


RECIPROCAL = "reciprocal"


def reciprocal(power: Fraction) -> Atom:
    """z^(-power) for z > 0, and 0 elsewhere.

    Example:
        >>> from tpcalc.functions import Var
        >>> reciprocal(Fraction(1, 2))(Var(0)).text
        'reciprocal[1/2](x0)'
    """

    def evaluate(xp: Any, z: Any) -> Any:
        there = z > 0
        base = xp.where(there, z, 1.0)
        return there / (xp.sqrt(base) if power == Fraction(1, 2) else base ** float(power))

    def derivative(z: Expr) -> Expr:
        return -power * reciprocal(power + 1)(z)

    facts = Facts(homogeneity=-power, kinks=(0.0,), growth=None, least=0.0)
    shown = in_sympy(lambda sp, z: z ** -sp.Rational(power))
    return Atom(RECIPROCAL, evaluate, derivative, facts, (power,), shown)


def loose(expr: Expr) -> Iterator[Expr]:
    """The subexpressions that are in no quotient, which is bounded as a whole."""
    found = quotient(expr)
    if found is None:
        yield expr
    for part in expr.parts if found is None else found.others:
        yield from loose(part)


@dataclass(frozen=True)
class Quotient:
    """A sum of arguments over the root of a positive sum of their squares.

    It is bounded (Cauchy, Schwarz), of degree 0 in all of them, and has no limit where all vanish.
    """

    linear: Expr  # the sum above
    squares: Expr  # the sum under the root
    shift: Expr  # what is added to the root; 0 for nothing
    others: tuple[Expr, ...]  # the other factors

    @property
    def parts(self) -> tuple[tuple[Expr, Number, Number], ...]:
        """The arguments, with the numbers in front of them and of their squares."""
        terms = self.linear.terms if isinstance(self.linear, Add) else (self.linear,)
        above = {root: number for number, root in map(split_coefficient, terms)}
        return tuple((root, above.get(root, Fraction(0)), a) for root, a in _roots(self.squares))


def quotient(expr: Expr) -> Quotient | None:
    """The quotient that a product holds; None where its form shows none.

    Example:
        >>> from tpcalc.functions import Var
        >>> first, second = Var(0) + Var(1), Var(0) ** 2 + Var(1) ** 2
        >>> quotient(2 * first * reciprocal(Fraction(1, 2))(second)).squares.text
        'x0**2 + x1**2'
        >>> quotient(first * reciprocal(Fraction(1, 2))(Var(0) ** 2)) is None
        True
    """
    factors = expr.factors if isinstance(expr, Mul) else ()
    for place, factor in enumerate(factors):
        found = _root(factor)
        if found is None:
            continue
        squares, shift = found
        roots = {root for root, _ in _roots(squares)}
        rest = [*factors[:place], *factors[place + 1 :]]
        for index, above in enumerate(rest):
            if _is_sum_of(above, roots):
                others = (*rest[:index], *rest[index + 1 :])
                return Quotient(above, squares, shift, others)
    return None


def _root(factor: Expr) -> tuple[Expr, Expr] | None:
    """The sum of squares under the root that a factor is divided by, and what is added to it."""
    half = Fraction(1, 2)
    if isinstance(factor, Call) and (factor.atom.name, factor.atom.params) == (RECIPROCAL, (half,)):
        return factor.arg, Const(Fraction(0))
    if isinstance(factor, Pow) and factor.exponent == -1 and isinstance(factor.base, Add):
        terms = factor.base.terms
        under = [term for term in terms if not isinstance(term, Const)]
        if len(under) == 1 and len(terms) == 2 and least(terms[terms[0] is under[0]]) > 0:
            number, root = split_coefficient(under[0])
            if isinstance(root, Pow) and root.exponent == half and number > 0:
                return mul((Const(number**2), root.base)), terms[terms[0] is under[0]]
    return None


def _roots(squares: Expr) -> Iterator[tuple[Expr, Number]]:
    """What is squared in a sum, with the positive numbers in front."""
    for term in squares.terms if isinstance(squares, Add) else (squares,):
        number, square = split_coefficient(term)
        parts = square.factors if isinstance(square, Mul) else (square,)
        even = all(isinstance(part, Pow) and part.exponent % 2 == 0 for part in parts)
        if number > 0 and even:
            bases = (part.base ** (part.exponent / 2) for part in parts if isinstance(part, Pow))
            yield mul(bases), number


def _is_sum_of(expr: Expr, roots: set[Expr]) -> bool:
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    return all(split_coefficient(term)[1] in roots for term in terms)


def degree(expr: Expr) -> Fraction | None:
    """The p with f(c s) = c^p f(s) for every c > 0; None where none is seen.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> degree(2 * lookup("relu").fn.expr), degree(lookup("tanh").fn.expr)
        (Fraction(1, 1), None)
        >>> degree(Var(0) ** 3 - 2 * Var(0) ** 3), degree(1 + Var(0))
        (Fraction(3, 1), None)
    """
    match expr:
        case Var():
            return Fraction(1)
        case Const():
            return Fraction(0)
        case Call(atom=atom, arg=arg):
            own, inner = atom.facts.homogeneity, degree(arg)
            return None if not isinstance(own, Rational) or inner is None else Fraction(own) * inner
        case Pow(base=base, exponent=exponent):
            inner = degree(base)
            return None if inner is None else inner * exponent
        case Mul(factors=factors):
            known = [own for own in map(degree, factors) if own is not None]
            return sum(known, Fraction(0)) if len(known) == len(factors) else None
        case Add(terms=terms):
            found = set(map(degree, terms))
            return found.pop() if len(found) == 1 else None
    return None


def slopes_of(expr: Expr) -> tuple[float, float] | None:
    """The slopes above and below 0 of a function that is linear on both sides; None if it is not.

    Example:
        >>> slopes_of(2 * Var(0))
        (2.0, 2.0)
    """
    if degree(expr) != 1:
        return None
    up, down = np.broadcast_to(evaluate(Fn(expr, 1), [np.array([1.0, -1.0])]), (2,))
    return float(up), -float(down)


def varying(tau: Expr) -> Expr:
    """A function without its constant term.

    Example:
        >>> varying(Var(0) ** 2 - 1).text
        'x0**2'
    """
    terms = tau.terms if isinstance(tau, Add) else (tau,)
    return add(term for term in terms if not isinstance(term, Const))


def period(expr: Expr) -> float | None:
    """A period of a function of ``Var(0)``; 0 for a constant, None where its form shows none.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> from tpcalc.functions.expr import substitute
        >>> wave = lookup("sawtooth").fn.expr
        >>> period(wave), period(2 - substitute(wave, {Var(0): 8 * Var(0) + 1})), period(Var(0))
        (4.0, 0.5, None)
    """
    if isinstance(expr, Const):
        return 0.0
    if isinstance(expr, Add | Mul):
        return _common(expr.terms if isinstance(expr, Add) else expr.factors)
    if isinstance(expr, Pow):
        return period(expr.base)
    if isinstance(expr, Call):
        own, inner, slope = expr.atom.facts.period, period(expr.arg), _slope(expr.arg)
        return own / abs(slope) if inner is None and own is not None and slope else inner
    return None


def _common(parts: Iterable[Expr]) -> float | None:
    found = {period(part) for part in parts} - {0.0}
    return found.pop() if len(found) == 1 else None if found else 0.0


def _slope(expr: Expr) -> float:
    """Of d s + h; 0 where an expression is not of this form."""
    if isinstance(expr, Var):
        return 1.0
    if isinstance(expr, Add):
        moving = [term for term in expr.terms if not isinstance(term, Const)]
        return _slope(moving[0]) if len(moving) == 1 else 0.0
    if isinstance(expr, Mul):
        moving = [factor for factor in expr.factors if not isinstance(factor, Const)]
        if len(moving) != 1:
            return 0.0
        scale = prod(float(factor.value) for factor in expr.factors if isinstance(factor, Const))
        return scale * _slope(moving[0])
    return 0.0
