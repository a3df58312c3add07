"""Vectors of a network as functions of layers, while layers are being made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Const, Expr, Par, Var, const
from tpcalc.functions.expr import Add, add, substitute, walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.meanfield.operations import Number, Operation

ZERO, NOTHING = Ex(), const(0)
ROUNDING = 1e-14


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


def linear(expr: Expr) -> tuple[Number, Number] | None:
    """Slope and value at 0 of a function that is a straight line; None of any other.

    Example:
        >>> linear(2 * Var(0) + 1), linear(Var(0) ** 2)
        ((Fraction(2, 1), Fraction(1, 1)), None)
    """
    if expr == Var(0):
        return Fraction(1), Fraction(0)
    steep = slope_or_none(expr, Var(0))
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


def holds(expr: Expr, kind: type[Expr]) -> bool:
    """Whether a part of an expression is of a kind."""
    return any(isinstance(part, kind) for part in walk(expr))


def without_averages(expr: Expr) -> tuple[Expr, Expr]:
    """A sum without the terms that are averages alone, and these."""
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    averages = [term for term in terms if holds(term, Par) and not holds(term, Var)]
    return add([term for term in terms if term not in averages]), add(averages)
