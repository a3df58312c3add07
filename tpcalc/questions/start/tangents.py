"""Bounds on what steps change at first order, carried forward node by node.

The change of a node is the sum over its arguments of a slope times their change; of a product with
a matrix it is the matrix times the change of the vector, and rows times averages where the matrix
itself takes a step. Slopes are bounded once for all steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.passes.change import Direction
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import (
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
    slots_of,
)
from tpcalc.questions.start.bounds import StartSizes
from tpcalc.questions.verdict.graded import ZERO, Bound, Split

ONE = Fraction(1)
Changes = dict[Ref, Bound | None]  # None: nothing is known


@dataclass
class Tangents:
    """The changes of the nodes of a pass."""

    sizes: StartSizes  # bounds on the nodes
    nodes: Iterable[Ref]  # the nodes of the pass, in order
    caps: bool  # whether norms, which give out what is of order one, cap changes
    # the nodes of which one did, and what is made of them; of the last steps
    capped: set[Ref] = field(default_factory=set)
    steps: Mapping[Ref, Direction] = field(default_factory=dict)  # these steps
    found: Changes = field(default_factory=dict)  # the changes so far
    _slopes: dict[Ref, list[tuple[Ref, Bound | None]]] = field(default_factory=dict)

    def along(self, steps: Mapping[Ref, Direction]) -> Changes:
        """The bounds on the changes of nodes, along steps of parameters; those that are not 0."""
        self.steps, self.capped = steps, set()
        self.found = found = {
            ref: self.sizes.of(direction)
            for ref, direction in steps.items()
            if isinstance(direction, Ref)
        }
        for ref in self.nodes:
            node = self.sizes.builder.node(ref)
            below = references(node)
            if not any(arg in found or arg in steps for arg in below):
                continue
            change = _RULES(node, ref, self)
            if not self.capped.isdisjoint(below):
                self.capped.add(ref)
            if self.caps and change and change[0][0] > 0 and self.sizes.forms.is_normed(ref):
                self.capped.add(ref)
                change = ((ZERO, self.sizes.bounds.lattice.span(self.sizes.bounds.hull(change))),)
            if change is None or change:
                found[ref] = change
        return found

    def total(self, parts: Iterable[Bound | None]) -> Bound | None:
        """The bound on a sum."""
        every = list(parts)
        known = [part for part in every if part is not None]
        return self.sizes.bounds.sum(*known) if len(known) == len(every) else None

    def times(self, a: Bound | None, b: Bound | None) -> Bound | None:
        """The bound on a product, 0 where a factor is."""
        if a == () or b == ():
            return ()
        return None if a is None or b is None else self.sizes.bounds.product(a, b)

    def average(self, bound: Bound | None) -> Bound | None:
        """The bound on an average over coordinates."""
        return None if bound is None else self.sizes.bounds.average(bound)

    def shifted(self, bound: Bound | None, power: Fraction) -> Bound | None:
        """The bound times a power of n."""
        return None if bound is None else self.sizes.bounds.shift(bound, power)

    def slopes(self, node: Nonlin | Moment, ref: Ref) -> list[tuple[Ref, Bound | None]]:
        """The arguments of a function with bounds on its slopes in them."""
        if ref not in self._slopes:
            self._slopes[ref] = list(_SLOPES(node, ref, self))
        return self._slopes[ref]

    def slope(self, expr: Expr, slot: Expr, arguments: Mapping[Expr, Ref]) -> Bound | None:
        """The bound on the slope of a function in one of its arguments."""
        try:
            return self.sizes.function(derivative(expr, slot), arguments)
        except NotDifferentiable:
            return None


def _lincomb(node: LinComb, ref: Ref, own: Tangents) -> Bound | None:
    parts: list[Bound | None] = []
    for number, scalar, vector, _ in node.terms:
        if number == 0:
            continue
        if vector in own.found:
            change = own.found[vector]
            parts.append(change if scalar is None else own.times(own.sizes.of(scalar), change))
        if scalar is not None and scalar in own.found:
            parts.append(own.times(own.found[scalar], own.sizes.of(vector)))
    return own.total(parts)


def _matmul(node: MatMul, ref: Ref, own: Tangents) -> Bound | None:
    parts: list[Bound | None] = []
    if node.vector in own.found:
        change = own.found[node.vector]
        parts.append(None if change is None else own.sizes.image(node, change))
    if node.matrix in own.steps:
        direction = own.steps[node.matrix]
        assert not isinstance(direction, Ref)
        for pair in direction:
            row, col = (own.sizes.of(one) for one in (pair[::-1] if node.transpose else pair))
            mean = own.average(own.times(col, own.sizes.of(node.vector)))
            parts.append(own.shifted(own.times(row, mean), ONE))
    return own.total(parts)


def _scale(node: Scale, ref: Ref, own: Tangents) -> Bound | None:
    return own.shifted(own.found[node.of], node.n_power.at(own.sizes.values))


def _applied(node: Any, ref: Ref, own: Tangents) -> Bound | None:
    slopes = own.slopes(node, ref)
    return own.total(own.times(slope, own.found[arg]) for arg, slope in slopes if arg in own.found)


def _rows(node: RowNonlin, ref: Ref, own: Tangents) -> Bound | None:
    """All cells have one bound, so that changes are bounded as adjoints are."""
    given, change = own.sizes.of(ref), own.found[node.of]
    total = own.times(given, change)
    if given is None or change is None or total is None:
        return None
    slots, bounds = (Var(0), Var(1), Var(2)), (given, change, total)
    splits: dict[Expr, Split] = {slot: (own, ()) for slot, own in zip(slots, bounds, strict=True)}
    return own.sizes.bounds.function(node.row.adjoint(*slots), splits)[0]


def _moment(node: Moment, ref: Ref, own: Tangents) -> Bound | None:
    parts: list[Bound | None] = []
    for arg, slope in own.slopes(node, ref):
        if arg in own.found and own.sizes.builder.type(arg).kind is Kind.SCALAR:
            parts.append(own.times(own.average(slope), own.found[arg]))
        elif arg in own.found:
            parts.append(own.average(own.times(slope, own.found[arg])))
    return own.total(parts)


_RULES: Table[Bound | None] = Table(
    {
        LinComb: _lincomb,
        MatMul: _matmul,
        Scale: _scale,
        Nonlin: _applied,
        RowNonlin: _rows,
        Moment: _moment,
        Rename: lambda node, ref, own: own.found.get(node.of, ()),
        Stack: lambda node, ref, own: own.total(
            own.found[part] for part in node.of if part in own.found
        ),
    },
    lambda *_: (),
)


def _of_function(node: Nonlin | Moment, ref: Ref, own: Tangents) -> Any:
    arguments = dict(slots_of(node))
    for slot, arg in arguments.items():
        yield arg, own.slope(node.fn.expr, slot, arguments)


_SLOPES: Table[Any] = Table({Nonlin: _of_function, Moment: _of_function}, lambda *_: ())
