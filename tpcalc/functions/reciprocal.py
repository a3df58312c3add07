"""``reciprocal``: a negative power that is 0 at 0, for quotients such as m / sqrt(v)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc.functions.atoms import Atom, Call, Facts, in_sympy
from tpcalc.functions.expr import Add, Const, Expr, Mul, Pow, mul
from tpcalc.functions.least import least
from tpcalc.functions.numbers import Number

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

    Args:
        linear: The sum above.
        squares: The sum under the root.
        shift: What is added to the root; 0 for nothing.
        others: The other factors.
    """

    linear: Expr
    squares: Expr
    shift: Expr
    others: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[tuple[Expr, Number, Number], ...]:
        """The arguments, with the numbers in front of them and of their squares."""
        terms = self.linear.terms if isinstance(self.linear, Add) else (self.linear,)
        above = {root: number for number, root in map(_scaled, terms)}
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
            number, root = _scaled(under[0])
            if isinstance(root, Pow) and root.exponent == half and number > 0:
                return mul((Const(number**2), root.base)), terms[terms[0] is under[0]]
    return None


def _scaled(expr: Expr) -> tuple[Number, Expr]:
    """A number and what stands behind it."""
    if isinstance(expr, Mul) and isinstance(expr.factors[0], Const):
        rest = expr.factors[1:]
        return expr.factors[0].value, rest[0] if len(rest) == 1 else Mul(rest)
    return Fraction(1), expr


def _roots(squares: Expr) -> Iterator[tuple[Expr, Number]]:
    """What is squared in a sum, with the positive numbers in front."""
    for term in squares.terms if isinstance(squares, Add) else (squares,):
        number, square = _scaled(term)
        parts = square.factors if isinstance(square, Mul) else (square,)
        even = all(isinstance(part, Pow) and part.exponent % 2 == 0 for part in parts)
        if number > 0 and even:
            bases = (part.base ** (part.exponent / 2) for part in parts if isinstance(part, Pow))
            yield mul(bases), number


def _is_sum_of(expr: Expr, roots: set[Expr]) -> bool:
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    return all(_scaled(term)[1] in roots for term in terms)
