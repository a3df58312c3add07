"""Normalisations, found in a function of a vector and of averages of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import Mul, Number, Pow, add, mul, power, walk

Averages = Mapping[int, tuple[int, Expr]]
"""For nodes that are averages the layer, and the function of it that is averaged."""

HALF = Fraction(-1, 2)


class Normed(NamedTuple):
    """A vector over its size.

    Args:
        of: The vector, a function of its layer.
        centred: Whether its mean is subtracted first: layer norm; else RMS norm.
        epsilon: Added to the square of its size.
        factor: In front.
    """

    of: Expr
    centred: bool
    epsilon: Number
    factor: Number


def normed(expr: Expr, head: int, averages: Averages) -> Normed | None:
    """The normalisation that a function is; None where it is none.

    Source: Ba, Kiros, Hinton, Layer normalization (2016), equation (3); Zhang, Sennrich, Root mean
        square layer normalization (2019), equation (4).

    Example:
        >>> known = {4: (1, Var(0)), 6: (1, (Var(0) - Par(4)) ** 2)}
        >>> found = normed((Var(0) - Par(4)) * (Par(6) + 1) ** Fraction(-1, 2), 1, known)
        >>> found.of.text, found.centred, found.epsilon
        ('x0', True, Fraction(1, 1))
    """
    factors = expr.factors if isinstance(expr, Mul) else (expr,)
    for under in factors:
        if not isinstance(under, Pow) or under.exponent != HALF:
            continue
        for size, of, centred in _sizes(under.base, head, averages):
            epsilon = add((under.base, mul((const(-1), size))))
            if not isinstance(epsilon, Const) or epsilon.value < 0:
                continue
            above = of if centred is None else add((of, mul((const(-1), centred))))
            factor = mul((expr, power(mul((above, under)), Fraction(-1))))
            if isinstance(factor, Const):
                return Normed(of, centred is not None, epsilon.value, factor.value)
    return None


def _sizes(base: Expr, head: int, averages: Averages) -> Iterator[tuple[Expr, Expr, Expr | None]]:
    """The squares of sizes in an expression: the square, of what it is, and what is subtracted."""
    used = {part.index for part in walk(base) if isinstance(part, Par)}
    own = {
        ref: expr for ref in used if ref in averages for on, expr in [averages[ref]] if on == head
    }
    for ref, expr in own.items():
        for root in _roots(expr):
            mean = [one for one in walk(root) if isinstance(one, Par)]
            if not mean:
                yield Par(ref), root, None
                yield from _differences(ref, root, own)
            for one in mean:
                of = add((root, one))
                for vector in (of, add((mul((const(-1), root)), one))):
                    if averages.get(one.index) == (head, vector):
                        yield Par(ref), vector, one


def _differences(
    ref: int, root: Expr, own: Mapping[int, Expr]
) -> Iterator[tuple[Expr, Expr, Expr]]:
    """A variance that is written as E x^2 - (E x)^2."""
    for other, expr in own.items():
        if expr == root:
            yield add((Par(ref), mul((const(-1), Par(other) ** 2)))), root, Par(other)


def _roots(expr: Expr) -> Iterator[Expr]:
    """What an expression is the square of."""
    if isinstance(expr, Pow) and expr.exponent.denominator == 1 and expr.exponent % 2 == 0:
        yield power(expr.base, expr.exponent / 2)
    elif expr == Var(0) ** 2:
        yield Var(0)
