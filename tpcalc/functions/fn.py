"""``Fn``: a coordinatewise function of several vectors and scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tpcalc.errors import NotDifferentiable, ProgramError
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

_DEEPEST = 100


def _differentiate(call: Call) -> Expr:
    return call.atom.differentiate(call.arg)


@lru_cache(maxsize=8192)
def derivative(expr: Expr, by: Expr, outer: Callable[[Call], Expr] = _differentiate) -> Expr:
    """The derivative of an expression by one of its arguments.

    Example:
        >>> derivative(Var(0) ** 3 * Var(1), Var(0)).text
        '3*x0**2*x1'
    """
    if expr == by:
        return const(1)
    if isinstance(expr, Add):
        return add(derivative(term, by, outer) for term in expr.terms)
    if isinstance(expr, Mul):
        pieces = []
        for index, factor in enumerate(expr.factors):
            slope = derivative(factor, by, outer)
            if slope != const(0):
                pieces.append(mul((*expr.factors[:index], slope, *expr.factors[index + 1 :])))
        return add(pieces) if pieces else const(0)
    if isinstance(expr, Pow):
        slope = derivative(expr.base, by, outer)
        if slope == const(0):
            return slope
        return mul((const(expr.exponent), power(expr.base, expr.exponent - 1), slope))
    if isinstance(expr, Call):
        slope = derivative(expr.arg, by, outer)
        return slope if slope == const(0) else mul((outer(expr), slope))
    return const(0)


def slope_or_none(expr: Expr, by: Expr) -> Expr | None:
    """The derivative of an expression; None where it jumps, or where its slope has no bound."""
    try:
        return derivative(expr, by)
    except NotDifferentiable:
        return None


def own_derivative(expr: Expr, by: Expr) -> Expr:
    """The derivative of an expression in which no function has a surrogate for its own."""
    for part in walk(expr):
        if isinstance(part, Call) and part.atom.facts.surrogate:
            raise NotDifferentiable(
                f"the derivative that {part.atom.text} was given may be another's.",
                hint="Limits and sizes take that of the function itself; give it, and check it.",
            )
    return derivative(expr, by)


@dataclass(frozen=True)
class Fn:
    """A coordinatewise function psi(x0, ..., x_{k-1}; s0, ..., s_{r-1}).

    Example:
        >>> Fn(Var(0) * Var(1), 2).by(1).expr.text
        'x0'
    """

    expr: Expr  # the expression
    vectors: int  # number of vector arguments k
    scalars: int = 0  # number of scalar arguments r

    def __post_init__(self) -> None:
        if self.vectors < 0 or self.scalars < 0:
            raise ProgramError(f"a function of {self.vectors} vectors and {self.scalars} scalars.")
        stack: list[tuple[Expr, int]] = [(self.expr, 0)]
        while stack:
            part, depth = stack.pop()
            if depth > _DEEPEST:
                raise ProgramError(
                    f"a function is nested deeper than {_DEEPEST} operations.",
                    hint="Split it into several coordinatewise steps, one node each.",
                )
            if isinstance(part, Var) and not 0 <= part.index < self.vectors:
                raise self._missing(part.text, self.vectors, "vector")
            if isinstance(part, Par) and not 0 <= part.index < self.scalars:
                raise self._missing(part.text, self.scalars, "scalar")
            stack.extend((child, depth + 1) for child in part.parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fn) or self.expr != other.expr:
            return False
        object.__setattr__(self, "expr", other.expr)  # looked up again, it is found at once
        return (self.vectors, self.scalars) == (other.vectors, other.scalars)

    def _missing(self, name: str, count: int, kind: str) -> ProgramError:
        return ProgramError(f"{self.expr.text} uses {name} but has {count} {kind} arguments.")

    @property
    def text(self) -> str:
        return self.expr.text

    def by(self, index: int) -> Fn:
        """The partial derivative by vector argument ``index``, a function of the same arguments."""
        return Fn(derivative(self.expr, Var(index)), self.vectors, self.scalars)

    def by_scalar(self, index: int) -> Fn:
        """The partial derivative by scalar argument ``index``."""
        return Fn(derivative(self.expr, Par(index)), self.vectors, self.scalars)

    @cached_property
    def is_zero(self) -> bool:
        """Whether the expression is identically 0."""
        return self.expr == const(0)

    @cached_property
    def is_inner(self) -> bool:
        """Whether this is x0*x1 of two vectors or x0**2 of one: its mean is an inner product."""
        shape = {1: Var(0) ** 2, 2: Var(0) * Var(1)}.get(self.vectors)
        return self.expr == shape

    @cached_property
    def uses(self) -> tuple[frozenset[int], frozenset[int]]:
        """Indices of the vector and scalar arguments that occur."""
        parts = list(walk(self.expr))
        return (
            frozenset(part.index for part in parts if isinstance(part, Var)),
            frozenset(part.index for part in parts if isinstance(part, Par)),
        )

    def compact(self) -> tuple[Fn, tuple[int, ...], tuple[int, ...]]:
        """Drop unused arguments; returns the function and the indices that were kept."""
        used_vectors, used_scalars = self.uses
        keep_v, keep_s = tuple(sorted(used_vectors)), tuple(sorted(used_scalars))
        if len(keep_v) == self.vectors and len(keep_s) == self.scalars:
            return self, keep_v, keep_s
        names: dict[Expr, Expr] = {Var(old): Var(new) for new, old in enumerate(keep_v)}
        names.update({Par(old): Par(new) for new, old in enumerate(keep_s)})
        return Fn(renamed(self.expr, names), len(keep_v), len(keep_s)), keep_v, keep_s


# What averages are taken of most: a product of two vectors, a vector, its square.
INNER, FIRST, SQUARE = Fn(Var(0) * Var(1), 2), Fn(Var(0), 1), Fn(Var(0) ** 2, 1)


def product(left: Fn, right: Fn) -> Fn:
    """The product of two functions; the arguments of ``right`` come after those of ``left``.

    Example:
        >>> product(Fn(Var(0), 1), Fn(Var(0) ** 2, 1)).text
        'x0*x1**2'
    """
    shift: dict[Expr, Expr] = {Var(i): Var(i + left.vectors) for i in range(right.vectors)}
    shift.update({Par(i): Par(i + left.scalars) for i in range(right.scalars)})
    expr = mul((left.expr, substitute(right.expr, shift)))
    return Fn(expr, left.vectors + right.vectors, left.scalars + right.scalars)


def renamed(expr: Expr, names: Mapping[Expr, Expr]) -> Expr:
    """Replace all arguments by other arguments, no two by one.

    Where these sort as the others did, nothing changes its place, and nothing is normalised again.

    Example:
        >>> from tpcalc.functions.expr import Var
        >>> renamed(Var(7) * Var(3), {Var(3): Var(0), Var(7): Var(1)}).text
        'x0*x1'
    """
    texts = [names[one].text for one in sorted(names, key=lambda one: one.text)]
    return _relabelled(expr, names) if texts == sorted(texts) else substitute(expr, names)


def _relabelled(expr: Expr, names: Mapping[Expr, Expr]) -> Expr:
    if isinstance(expr, Mul):
        return Mul(tuple([_relabelled(factor, names) for factor in expr.factors]))
    if isinstance(expr, Add):
        return Add(tuple([_relabelled(term, names) for term in expr.terms]))
    if isinstance(expr, Pow):
        return Pow(_relabelled(expr.base, names), expr.exponent)
    if isinstance(expr, Call):
        return expr.atom(_relabelled(expr.arg, names))
    return expr if isinstance(expr, Const) else names[expr]
