"""Vectors of a network as functions of layers, while layers are being made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

from tpcalc.catalog.values import root
from tpcalc.errors import NotDifferentiable, StudyError
from tpcalc.functions import Call, Const, Expr, Par, Var, const
from tpcalc.functions.expr import Add, add, substitute, walk
from tpcalc.functions.fn import derivative
from tpcalc.orders import Ex
from tpcalc.signal.operations import Number, Operation

__all__ = [
    "NOTHING",
    "ZERO",
    "Made",
    "NotFollowed",
    "Part",
    "holds",
    "linear",
    "multiple",
    "rooted",
    "slope",
    "squared",
    "without_averages",
]

ZERO, NOTHING = Ex(), const(0)
ROUNDING = 1e-14
DIGITS = 120  # of a root that is not rational, in bits


class NotFollowed(StudyError):
    """A network that the recursion does not hold for; the limit of its program may."""


@dataclass(frozen=True, slots=True)
class Part:
    """A vector as a function of the coordinates of one layer, times a power of n.

    Args:
        head: The layer; None: a constant.
        expr: The function, of ``Var(0)``; ``Par(r)`` is the average at node r.
        power: The power.
    """

    head: int | None
    expr: Expr
    power: Ex = ZERO


@dataclass(slots=True)
class Made:
    """A layer, as it is being made.

    Args:
        operation: What it does; None: it is a start vector, which biases are made of.
        parents: The layers that it reads.
        near: The matrices and start vectors that it reads with no matrix in between.
        gaussian: Whether its coordinates are Gaussian with mean 0.
        place: Its node and the user's line.
        terms: Of a sum what is added, layers and start vectors, with factors.
        variance: Of a start vector.
        shared: Whether that is one number for all coordinates.
        bends: Of an activation its function.
    """

    operation: Operation | None
    parents: tuple[int, ...]
    near: frozenset[str]
    gaussian: bool
    place: str = ""
    terms: tuple[tuple[Number, int], ...] = ()
    variance: Number = Fraction(1)
    shared: bool = False
    bends: Expr | None = None


def rooted(square: Number) -> Number:
    """A root that ``squared`` takes back to the number, to its last digit.

    Args:
        square: A positive number.

    Example:
        >>> rooted(Fraction(9, 4)), squared(rooted(0.5)), squared(rooted(0.1 + 0.2))
        (Fraction(3, 2), Fraction(1, 2), 0.30000000000000004)
    """
    exact = Fraction(square)
    found = root(exact)
    if squared(found) == square:
        return found
    digits = max(0, DIGITS - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    return Fraction(isqrt((exact.numerator << 2 * digits) // exact.denominator), 1 << digits)


def squared(number: Number) -> Number:
    """A square; where a number is the root of a simple one but for rounding, that one.

    Args:
        number: The number.

    Example:
        >>> squared(2**0.5), squared(Fraction(1, 2))
        (Fraction(2, 1), Fraction(1, 4))
    """
    if isinstance(number, float):
        simple = Fraction(number * number).limit_denominator(10**6)
        return simple if simple and sqrt(simple) == abs(number) else number * number
    found = Fraction(number) ** 2
    if found.denominator < 1 << DIGITS:
        return found
    simple = found.limit_denominator(10**6)
    return simple if abs(simple - found) * 2 ** (DIGITS // 2) < found else float(found)


def linear(expr: Expr) -> tuple[Number, Number] | None:
    """Slope and value at 0 of a function that is a straight line; None of any other.

    Args:
        expr: A function of ``Var(0)``.

    Example:
        >>> linear(2 * Var(0) + 1), linear(Var(0) ** 2)
        ((Fraction(2, 1), Fraction(1, 1)), None)
    """
    if expr == Var(0):
        return Fraction(1), Fraction(0)
    steep = slope(expr, Var(0))
    if not isinstance(steep, Const) or any(isinstance(part, Call) for part in walk(expr)):
        return None
    start = substitute(expr, {Var(0): const(0)})
    return (steep.value, start.value) if isinstance(start, Const) else None


def multiple(own: Mapping[int, Expr], atoms: Sequence[tuple[int, Expr]]) -> Number | None:
    """How many times a sum stands in another one; None where it does not."""
    ratios: list[Number] = []
    for term, part in atoms:
        there, here = linear(own.get(term, NOTHING)), linear(part)
        if there is None or here is None:
            return None
        ratios.append(there[0] / here[0])
    first = float(ratios[0])
    alike = all(abs(float(one) - first) <= ROUNDING * abs(first) for one in ratios)
    return ratios[0] if alike and first else None


def slope(expr: Expr, by: Var) -> Expr | None:
    """The derivative; None where there is none."""
    try:
        return derivative(expr, by)
    except NotDifferentiable:
        return None


def holds(expr: Expr, kind: type[Expr]) -> bool:
    """Whether a part of an expression is of a kind."""
    return any(isinstance(part, kind) for part in walk(expr))


def without_averages(expr: Expr) -> tuple[Expr, Expr]:
    """A sum without the terms that are averages alone, and these."""
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    averages = [term for term in terms if holds(term, Par) and not holds(term, Var)]
    return add([term for term in terms if term not in averages]), add(averages)
