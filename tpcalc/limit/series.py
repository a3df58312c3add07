"""Series in the width: what a quantity is at large n, by the powers written in the program.

A value is ``sum_k n^(p_k) c_k + O(n^cut)``: growth exponents p_k, largest first, and nodes c_k of
the limit graph that stay bounded. The identity is exact at finite n; the limit is taken of the
nodes only. ``depth`` says how far below the leading power terms are kept; what is dropped sets
``cut``.

``expand`` substitutes series into a coordinatewise function: sums and products of powers exactly,
other functions by Taylor's formula about a leading power 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

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
from tpcalc.functions.tape import evaluate

__all__ = ["NeedsMore", "Series", "Setting", "expand", "truncate"]

T = TypeVar("T")
ZERO = Fraction(0)
TINY = 1e-12


class NeedsMore(Exception):
    """A kept remainder is as large as what is asked; keep more terms and try again."""


@dataclass(frozen=True, slots=True)
class Series(Generic[T]):
    """n-powers with their coefficients, largest first; the rest is O(n**cut), None: no rest.

    ``shape`` numbers the powers and the cut within one derivation (``Context.shape``).
    """

    terms: tuple[tuple[Fraction, T], ...]
    cut: Fraction | None = None
    shape: int | None = field(default=None, compare=False, repr=False)

    @property
    def lead(self) -> Fraction | None:
        """The largest power; None for an identical zero."""
        return self.terms[0][0] if self.terms else self.cut

    def shift(self, by: Fraction) -> Series[T]:
        """The series times n**by."""
        cut = None if self.cut is None else self.cut + by
        return Series(tuple((power_ + by, node) for power_, node in self.terms), cut)

    def leading(self) -> tuple[Fraction, T] | None:
        """The leading term; None for an identical zero.

        Raises:
            NeedsMore: The remainder is as large.
        """
        if not self.terms:
            if self.cut is not None:
                raise NeedsMore
            return None
        if self.cut is not None and self.cut >= self.terms[0][0]:
            raise NeedsMore
        return self.terms[0]


def larger(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    """The larger of two remainders (None is no remainder)."""
    if a is None or b is None:
        return a if b is None else b
    return max(a, b)


def truncate(terms: Mapping[Fraction, T], cut: Fraction | None, depth: Fraction) -> Series[T]:
    """Keep the terms within ``depth`` of the largest and above the remainder."""
    if not terms:
        return Series((), cut)
    ordered = sorted(terms.items(), key=lambda item: -item[0])
    floor = ordered[0][0] - depth
    kept = []
    for exponent, value in ordered:
        if exponent < floor or (cut is not None and exponent <= cut):
            cut = larger(cut, exponent)
            break
        kept.append((exponent, value))
    return Series(tuple(kept), cut)


Pieces = dict[Fraction, Expr]


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expansion needs to know besides the series.

    Args:
        depth: How far below the leading power terms are kept.
        smooth: Fresh vector arguments whose limit has a density, so that kinks are hit by no part
            of the coordinates.
        where: The node, for messages.
    """

    depth: Fraction
    smooth: frozenset[Expr]
    where: str


def expand(expr: Expr, arguments: Mapping[Expr, Series[Expr]], setting: Setting) -> Series[Expr]:
    """Substitute series for the arguments of an expression.

    Args:
        expr: The expression, over ``Var`` and ``Par``.
        arguments: For each argument its series; coefficients are fresh arguments.
        setting: Depth, arguments with a density, and the node.

    Returns:
        The series of the expression; coefficients are expressions of the fresh arguments.

    Raises:
        ScaleError: A function that is not a polynomial, of a vector that vanishes or explodes.
    """
    depth = setting.depth
    if isinstance(expr, Const):
        return Series(((ZERO, expr),)) if expr.value != 0 else Series(())
    if isinstance(expr, Var | Par):
        return arguments[expr]
    if isinstance(expr, Add):
        return _sum([expand(term, arguments, setting) for term in expr.terms], depth)
    if isinstance(expr, Mul):
        out: Series[Expr] = Series(((ZERO, const(1)),))
        for factor in expr.factors:
            out = _times(out, expand(factor, arguments, setting), depth)
        return out
    if isinstance(expr, Pow):
        return _power(expr, expand(expr.base, arguments, setting), setting)
    assert isinstance(expr, Call)
    return _call(expr, expand(expr.arg, arguments, setting), setting)


def _power(expr: Pow, base: Series[Expr], setting: Setting) -> Series[Expr]:
    if expr.exponent.denominator == 1 and expr.exponent > 0:
        out = base
        for _ in range(int(expr.exponent) - 1):
            out = _times(out, base, setting.depth)
        return out
    slope = mul((const(expr.exponent), power(Var(-1), expr.exponent - 1)))
    return _taylor(expr, base, power(Var(-1), expr.exponent), slope, setting)


def _call(expr: Call, inner: Series[Expr], setting: Setting) -> Series[Expr]:
    if len(inner.terms) == 1 and inner.cut is None and inner.lead == 0:
        return Series(((ZERO, expr.atom(inner.terms[0][1])),))
    lead = inner.lead
    if lead is None:  # an argument that is identically 0
        value = float(evaluate(Fn(expr.atom(const(0)), 0), []))
        return Series(((ZERO, const(value)),)) if value != 0 else Series(())
    if lead < 0 and _scalar_only(expr):  # a number that tends to 0: Taylor about 0
        _check_no_jump_at_zero(expr, setting.where)
        inner = Series(((ZERO, const(0)), *inner.terms), inner.cut)
    slope: Expr | None = None
    with suppress(NotDifferentiable):
        slope = expr.atom.differentiate(Var(-1))
    out = _taylor(expr, inner, expr.atom(Var(-1)), slope, setting)
    if expr.atom.facts.kinks and not _misses_kinks(expr, inner.terms[0][1], setting.smooth):
        # A positive part of the coordinates (or the number itself) may sit on a kink: its first
        # order is not linear there, and a jump is not small at all.
        moved = larger(inner.cut, inner.terms[1][0] if len(inner.terms) > 1 else None)
        return truncate(dict(out.terms[:1]), ZERO if slope is None else moved, setting.depth)
    return out


def _misses_kinks(expr: Call, leading: Expr, smooth: frozenset[Expr]) -> bool:
    """Whether the leading argument is on a kink with probability 0."""
    if isinstance(leading, Const):
        return float(leading.value) not in expr.atom.facts.kinks
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


def _check_no_jump_at_zero(expr: Call, where: str) -> None:
    """A number has no density, so a jump where it tends to is not of measure 0."""
    low, at, high = (float(evaluate(Fn(expr.atom(const(x)), 0), [])) for x in (-TINY, 0, TINY))
    if not max(abs(low - at), abs(high - at)) <= 1e-6 * (1 + abs(at)):
        raise ScaleError(
            f"{expr.text} jumps at 0, where its argument tends.",
            where=where,
            hint="Multiply the argument by a power of n that makes it of order one.",
        )


def _scalar_only(expr: Expr) -> bool:
    return not any(isinstance(part, Var) for part in walk(expr))


def _taylor(
    expr: Expr, inner: Series[Expr], value: Expr, slope: Expr | None, setting: Setting
) -> Series[Expr]:
    """f(c0 + rest) = f(c0) + f'(c0) rest + O(rest^2), for a leading power 0.

    Without a slope (a jump) no order after the first is a function, and the remainder is a jump on
    a part O(rest) of the coordinates: O(rest^(1/2)) in mean square.
    """
    depth, where = setting.depth, setting.where
    if inner.lead is None:
        raise ScaleError(f"{expr.text} of an argument that is identically 0.", where=where)
    if not inner.terms and inner.lead <= 0:  # only a bound is known
        raise NeedsMore
    if inner.lead != 0 or not inner.terms:
        shape = "vanishes" if inner.lead < 0 else "explodes"
        raise ScaleError(
            f"{expr.text}: its argument {shape} like n^({inner.lead}). The limit of such a program "
            "needs its vectors rescaled to order one first, layer by layer.",
            where=where,
            hint="Write the powers of n so that every argument of a nonlinear function is of order "
            "one (muP or NTK do), or run it at finite width with tp.simulate.",
        )
    at: Mapping[Expr, Expr] = {Var(-1): inner.terms[0][1]}
    out: Pieces = {ZERO: substitute(value, at)}
    rest = inner.terms[1:]
    cut = inner.cut
    if slope is None:
        largest = larger(cut, rest[0][0] if rest else None)
        return truncate(out, None if largest is None else largest / 2, depth)
    if rest:
        slope_here = substitute(slope, at)
        cut = larger(cut, 2 * rest[0][0])
        for exponent, piece in rest:
            out[exponent] = mul((slope_here, piece))
    return truncate(out, cut, depth)


def _sum(parts: list[Series[Expr]], depth: Fraction) -> Series[Expr]:
    total: Pieces = {}
    cut: Fraction | None = None
    for part in parts:
        cut = larger(cut, part.cut)
        for exponent, piece in part.terms:
            total[exponent] = add((total[exponent], piece)) if exponent in total else piece
    total = {exponent: piece for exponent, piece in total.items() if piece != const(0)}
    return truncate(total, cut, depth)


def _times(a: Series[Expr], b: Series[Expr], depth: Fraction) -> Series[Expr]:
    total: Pieces = {}
    for left, x in a.terms:
        for right, y in b.terms:
            piece = mul((x, y))
            exponent = left + right
            total[exponent] = add((total[exponent], piece)) if exponent in total else piece
    cut: Fraction | None = None
    if a.cut is not None and b.lead is not None:
        cut = larger(cut, a.cut + b.lead)
    if b.cut is not None and a.lead is not None:
        cut = larger(cut, b.cut + a.lead)
    return truncate(total, cut, depth)
