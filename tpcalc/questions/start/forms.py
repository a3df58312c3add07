"""What the form of a node shows: that it is nowhere below a number, or divided by its own size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, prod

from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import Add, Pow, substitute
from tpcalc.functions.form import least
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Moment, Nonlin, Ref, Rename, Scale, Stack, slots_of
from tpcalc.program.program import Builder


@dataclass
class Forms:
    """The forms of the nodes of a program."""

    builder: Builder  # the program
    _least: dict[Ref, float] = field(default_factory=dict)

    def above(self, arguments: Iterable[tuple[Expr, Ref]]) -> dict[Expr, float]:
        """The arguments of a function that are nowhere below 0, with what they are not below."""
        found = ((slot, self.least(ref)) for slot, ref in arguments)
        return {slot: low for slot, low in found if low >= 0}

    def least(self, ref: Ref) -> float:
        """A number that a node is nowhere below; minus infinity where none shows."""
        if ref not in self._least:
            self._least[ref] = _LEAST(self.builder.node(ref), self)
        return self._least[ref]

    def is_normed(self, ref: Ref) -> bool:
        """Whether the form of a node shows that its mean square is at most 1."""
        return _NORMED(self.builder.node(ref), self)


def least_where(expr: Expr, above: Mapping[Expr, float]) -> float:
    """A number that a function is nowhere below, where some of its arguments are not below one."""
    return least(substitute(expr, {slot: slot**2 + low for slot, low in above.items()}))


def _least_of_sum(node: LinComb, forms: Forms) -> float:
    found = 0.0
    for number, scalar, vector, _ in node.terms:
        lows = [forms.least(ref) for ref in (scalar, vector) if ref is not None]
        if number < 0 or min(lows) < 0:
            return -inf
        found += float(number) * prod(lows)
    return found


def _least_of_function(node: Nonlin | Moment, forms: Forms) -> float:
    return least_where(node.fn.expr, forms.above(slots_of(node)))


_LEAST: Table[float] = Table(
    {
        LinComb: _least_of_sum,
        Moment: _least_of_function,
        Nonlin: _least_of_function,
        Rename: lambda node, forms: forms.least(node.of),
        Scale: lambda node, forms: 0.0 if forms.least(node.of) >= 0 else -inf,
        Stack: lambda node, forms: min(map(forms.least, node.of)),
    },
    lambda node, forms: -inf,
)


# The vector whose mean a node is, with the function that is averaged.
averaged: Table[tuple[Ref, Expr] | None] = Table(
    {Moment: lambda node: (node.vectors[0], node.fn.expr) if len(node.vectors) == 1 else None},
    lambda node: None,
)


def _is_normed(node: LinComb, forms: Forms) -> bool:
    """Whether a vector is divided by the root of its mean square, or of more."""
    if len(node.vectors) > 1 or node.scalars[0] is None:
        return False
    expr, places = _ROOT(forms.builder.node(node.scalars[0]))
    if not isinstance(expr, Pow) or expr.exponent != -Fraction(1, 2):
        return False
    return _holds(expr.base, dict(places), node.vectors[0], forms)


def _holds(expr: Expr, places: Mapping[Expr, Ref], vector: Ref, forms: Forms) -> bool:
    """Whether a number is the mean square of a vector, or more: nothing beside it is below 0."""
    if isinstance(expr, Add):
        above = forms.above(places.items())
        every = all(least_where(term, above) >= 0 for term in expr.terms)
        return every and any(_holds(term, places, vector, forms) for term in expr.terms)
    if expr not in places:
        return False
    node = forms.builder.node(places[expr])
    inner, below = _ROOT(node)
    square = averaged(node) == (vector, Var(0) ** 2)
    return square or (isinstance(inner, Add) and _holds(inner, dict(below), vector, forms))


_ROOT: Table[tuple[Expr | None, list[tuple[Expr, Ref]]]] = Table(
    {Nonlin: lambda node: (node.fn.expr, [*slots_of(node)])}, lambda node: (None, [])
)
_NORMED: Table[bool] = Table({LinComb: _is_normed}, lambda node, forms: False)
