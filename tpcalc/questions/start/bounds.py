"""Bounds on sizes at the start of training, of every node of a program that grows.

They are those of ``verdict/graded``, with six additions. A negative or fractional power of numbers
is that power of their bound, which needs the bound to be reached: the node is kept as a divisor,
to be tested; of a positive number plus what is nowhere below 0 it is bounded. A function of an
argument that explodes has its degree at infinity. What starts at 0 is 0. What is the same in all
coordinates drops out where a mean is taken off. Values are blocks: one bound holds for all cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import inf, isfinite, log2
from typing import ClassVar

import numpy as np

from tpcalc.exponents.coset import EVEN, Coset
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, mul, power, substitute, walk
from tpcalc.functions.rows import RowFn
from tpcalc.functions.tape import evaluate
from tpcalc.passes.separate import scaled
from tpcalc.program.base import Table, input_of
from tpcalc.program.nodes import (
    Data,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    Ref,
    Rename,
    RowNonlin,
    Stack,
    slots_of,
)
from tpcalc.program.program import Builder
from tpcalc.program.rules import Level, Rules
from tpcalc.questions.start.forms import Forms, averaged, least_where
from tpcalc.questions.verdict.graded import ZERO, Bound, Bounds, Split, Unbounded
from tpcalc.questions.verdict.stationary import RULES, NodeBounds, State, Value, image

Power = Fraction | float | None  # None: it is 0; inf: nothing is known
CENTRED = Var(0) - Par(0)
MOST = 12  # parts of a bound; more are one for each size
FAR = (12, 24, 36)  # powers of 2 at which the degree of a function at infinity is seen


class AtStart(Bounds):
    """Bounds where divisors are as large as their bounds, and arguments may explode."""

    floor = Fraction(1)

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[Expr, Fraction] = {}
        self.above: dict[Expr, float] = {}

    def reduced(self, parts: Iterable[tuple[Fraction, Coset]]) -> Bound:
        """The canonical form; of many parts those of one size together, 0 kept out where it is."""
        found = super().reduced(parts)
        if len(found) <= MOST:
            return found
        kept: dict[tuple[Fraction, bool], Coset] = {}
        zero, hull = self.lattice.has_zero, self.lattice.hull
        for size, coset in found:
            for mixed in (zero(coset), True):  # what holds 0 is apart from what does not
                whole = hull(kept[size, mixed], coset) if (size, mixed) in kept else coset
                if mixed or not zero(whole):
                    kept[size, mixed] = whole
                    break
        return super().reduced((size, coset) for (size, _), coset in kept.items())

    def function(self, expr: Expr, arguments: Mapping[Expr, Split]) -> Split:
        """The bound on a function, and on how far a change of its arguments moves it."""
        slots = _slots(expr)
        if isinstance(expr, Pow) and expr.exponent < 0 and self.least(expr.base) > 0:
            parts = self.sum(*(bound for slot in slots for bound in arguments[slot]))
            return ((ZERO, self.lattice.span(self.hull(parts)) if parts else EVEN),), ()
        if len(slots) == 1 and not isinstance(expr, Var | Par) and _has_call(expr):
            (slot,) = slots
            bound = self.sum(*arguments[slot])
            if bound and bound[0][0] > 0:
                return self._far(expr, slot, bound), ()
        if isinstance(expr, Mul):
            factors, shares = _shares(expr.factors)
            grouped = _by_slot(factors)
            if shares or 1 < len(grouped) < len(factors):
                # A share is at most 1, and feels all that it is made of.
                felt = self.sum(*(b for s in shares for at in _slots(s) for b in arguments[at]))
                share = ((ZERO, self.lattice.span(self.hull(felt)) if felt else EVEN),)
                own = [self.function(each, arguments) for each in grouped]
                return self._multiplied([(share, ()), *own])
        return super().function(expr, arguments)

    def least(self, expr: Expr) -> float:
        """A number that a function is nowhere below."""
        return least_where(expr, self.above)

    def root(self, expr: Pow | Call, base: Split) -> Split:
        """A negative or fractional power of what is as large as its bound."""
        degree = expr.exponent if isinstance(expr, Pow) else expr.atom.facts.homogeneity
        below = expr.base if isinstance(expr, Pow) else expr.arg
        bound, exponent = self.sum(*base), Fraction(str(degree))
        if not bound:
            raise Unbounded  # a division by what is 0
        if exponent < 0 and any(isinstance(slot, Var) for slot in _slots(below)):
            raise Unbounded  # coordinate by coordinate it may be near 0
        if exponent < 0:
            self.claims[below] = bound[0][0]
        return ((exponent * bound[0][0], self.lattice.span(self.hull(bound))),), ()

    def _far(self, expr: Expr, slot: Expr, bound: Bound) -> Bound:
        degree = far_degree(expr, slot)
        if degree is None:
            raise Unbounded
        return ((max(degree, ZERO) * bound[0][0], self.lattice.span(self.hull(bound))),)


@dataclass
class StartState(State):
    """The same with the program, and bounds on how far vectors are from one number."""

    bounds: AtStart = field(kw_only=True)
    forms: Forms = field(kw_only=True)
    apart: dict[Ref, Bound] = field(default_factory=dict)

    def know(self, arguments: Iterable[tuple[Expr, Ref]]) -> None:
        """Tell the operations which arguments of a function are nowhere below 0."""
        self.bounds.above = self.forms.above(arguments)


def _slots(expr: Expr) -> set[Expr]:
    return {part for part in walk(expr) if isinstance(part, Var | Par)}


def _has_call(expr: Expr) -> bool:
    return any(isinstance(part, Call) for part in walk(expr))


def _by_slot(factors: tuple[Expr, ...]) -> list[Expr]:
    """The factors of a product, those of one and the same argument multiplied."""
    own: dict[frozenset[Expr], list[Expr]] = {}
    for k, factor in enumerate(factors):
        slots = frozenset(_slots(factor))
        key = slots if len(slots) == 1 else frozenset((const(k),))
        own.setdefault(key, []).append(factor)
    grouped: list[Expr] = []
    for key, members in own.items():
        joined = len(members) > 1 and any(map(_has_call, members))
        grouped += [mul(members)] if joined and key else members
    return grouped


def _shares(factors: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], list[Expr]]:
    """A product without terms over sums of positive terms that they are part of; and these."""
    left, shares = list(factors), list[Expr]()
    for factor in factors:
        if not isinstance(factor, Pow) or not isinstance(factor.base, Add) or factor.exponent >= 0:
            continue
        terms = factor.base.terms
        if factor.exponent.denominator != 1 or not all(map(_is_positive, terms)):
            continue
        there = [own for own in left if _is_part(own, terms)][: -int(factor.exponent)]
        for own in there:
            left.remove(own)
        if there:
            left.remove(factor)
            rest = factor.exponent + len(there)
            left += [power(factor.base, rest)] if rest else []
            shares += [*there, factor]
    return tuple(left), shares


def _is_part(factor: Expr, terms: tuple[Expr, ...]) -> bool:
    """Whether a factor is some of the terms of a sum, with numbers in front."""
    parts = factor.terms if isinstance(factor, Add) else (factor,)
    return any(isinstance(p, Call) for p in parts) and all(scaled(p)[1] in terms for p in parts)


def _is_positive(term: Expr) -> bool:
    positive = isinstance(term, Const) and term.value > 0
    return positive or (isinstance(term, Call) and term.atom.facts.tame)


@lru_cache(maxsize=4096)
def far_degree(expr: Expr, slot: Expr) -> Fraction | None:
    """The degree of a function of one argument at infinity, 0 if it vanishes there; None: above.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> [str(far_degree(lookup(name).fn.expr, Var(0))) for name in ("gelu", "tanh", "exp")]
        ['1', '0', 'None']
    """
    fn = Fn(substitute(expr, {slot: Var(0)}), 1)
    found = ZERO
    for sign in (1.0, -1.0):
        with np.errstate(all="ignore"):
            at = np.array([sign * 2.0**k for k in FAR])
            values = np.abs(np.broadcast_to(evaluate(fn, [at]), at.shape))
        if not np.isfinite(values).all():
            return None
        if values[-1] == 0:
            continue
        steps = [log2(b / a) / 12 if a else inf for a, b in pairwise(values)]
        if not isfinite(steps[-1]):
            return None
        found = max(found, Fraction(round(4 * steps[-1]), 4))
    return found


@dataclass
class StartSizes(NodeBounds):
    """Bounds on the nodes of a program, also on those that are added later."""

    # nodes with what they divide by, and the exponent that it is taken at
    divisors: dict[Ref, dict[Expr, Fraction]] = field(default_factory=dict)
    ends: ClassVar[tuple[type[Exception], ...]] = (Unbounded,)

    def __post_init__(self) -> None:
        self._bounds, self.forms = AtStart(), Forms(self.builder)
        place = "%{}".format
        self._state: StartState = StartState(
            place, self.values, bounds=self._bounds, forms=self.forms
        )

    def size(self, ref: Ref) -> Power:
        """The exponent of a node."""
        return size_of(self.of(ref))

    @property
    def bounds(self) -> Bounds:
        """The operations on bounds."""
        return self._bounds

    def function(self, expr: Expr, arguments: Mapping[Expr, Ref]) -> Bound | None:
        """The bound on a function of nodes; None where it has none."""
        splits: dict[Expr, Split] = {}
        for slot, ref in arguments.items():
            bound = self.of(ref)
            if bound is None:
                return None
            splits[slot] = bound, ()
        self._state.know(arguments.items())
        try:
            return self._bounds.sum(*self._bounds.function(expr, splits))
        except Unbounded:
            return None
        finally:
            self._bounds.claims = {}

    def image(self, node: MatMul, bound: Bound) -> Bound:
        """The bound on a matrix times what has a bound."""
        return () if _is_zero(node, self.builder) else image(node, bound, self._state)

    def _value(self, ref: Ref, node: Node) -> Value:
        try:
            rule = START_RULES.rule(type(node), f"%{ref}")
            return rule(node, ref, self._known, self._state)  # type: ignore[arg-type]
        finally:
            if self._bounds.claims:
                self.divisors[ref], self._bounds.claims = self._bounds.claims, {}


def size_of(bound: Bound | None) -> Power:
    """The exponent of what has a bound, or none."""
    return inf if bound is None else bound[0][0] if bound else None


def _data(node: Data, ref: Ref, values: list[Value], state: State) -> Value:
    return Value(None, ((ZERO, EVEN),) if any(node.values) else ())


def _input(node: Input, ref: Ref, values: list[Value], state: State) -> Value:
    mark = node.family.mark
    if mark is not None and mark.at_zero and len(node.family.width) < 2:
        return Value(None, ())
    if len(node.family.width) == 2:
        return Value(ref, ())  # it stands for itself
    return RULES.table[Input](node, ref, values, state)


def _matmul(node: MatMul, ref: Ref, values: list[Value], state: StartState) -> Value:
    if _is_zero(node, state.forms.builder):
        return Value(None, ())
    return RULES.table[MatMul](node, ref, values, state)


def _is_zero(node: MatMul, builder: Builder) -> bool:
    """Whether the matrix of a product starts at 0."""
    matrix = input_of(builder.node(node.matrix))
    return matrix is not None and matrix.family.mark is not None and matrix.family.mark.at_zero


def _applied(node: Nonlin | Moment, ref: Ref, values: list[Value], state: StartState) -> Value:
    state.know(slots_of(node))
    return RULES.table[type(node)](node, ref, values, state)


def _nonlin(node: Nonlin, ref: Ref, values: list[Value], state: StartState) -> Value:
    """Of a vector less its mean what is the same in all coordinates is no part."""
    found = _applied(node, ref, values, state)
    if node.fn.expr != CENTRED:
        return found
    (vector,), bounds = node.vectors, state.bounds
    if averaged(state.forms.builder.node(node.scalars[0])) != (vector, Var(0)):
        return found
    apart = _apart(vector, values, state)
    return Value(None, bounds.sum(apart, bounds.average(apart)))


def _apart(ref: Ref, values: list[Value], state: StartState) -> Bound:
    """How far the coordinates of a vector are from one number."""
    if ref not in state.apart:
        whole, found = state.total(values[ref]), None
        if whole and state.bounds.lattice.has_zero(whole[0][1]):  # else its largest part varies
            with suppress(Unbounded):
                found = _APART(state.forms.builder.node(ref), values, state)
        state.apart[ref] = whole if found is None else found
    return state.apart[ref]


def _apart_nonlin(node: Nonlin, values: list[Value], state: StartState) -> Bound | None:
    whole = [state.total(values[vector]) for vector in node.vectors]
    powers = (part.exponent for part in walk(node.fn.expr) if isinstance(part, Pow))
    large = any(bound and bound[0][0] > 0 for bound in whole)
    if large or any(power < 1 or power.denominator != 1 for power in powers):
        return None
    arguments: dict[Expr, Split] = {}
    for place, (vector, bound) in enumerate(zip(node.vectors, whole, strict=True)):
        apart = _apart(vector, values, state)
        number = () if apart == bound else ((bound[0][0], EVEN),)
        arguments[Var(place)] = number, apart
    state.know(slots_of(node))
    scalars = enumerate(node.scalars)
    arguments |= {Par(place): (state.total(values[scalar]), ()) for place, scalar in scalars}
    return state.bounds.function(node.fn.expr, arguments)[1]


def _apart_sum(node: LinComb, values: list[Value], state: StartState) -> Bound:
    parts: list[Bound] = []
    for scalar, vector in zip(node.scalars, node.vectors, strict=True):
        apart = _apart(vector, values, state)
        factor = ZERO if scalar is None else state.bounds.size(state.total(values[scalar]))
        parts.append(() if factor is None else state.bounds.shift(apart, factor))
    return state.bounds.sum(*parts)


_APART: Table[Bound | None] = Table(
    {
        Nonlin: _apart_nonlin,
        LinComb: _apart_sum,
        Rename: lambda node, values, state: _apart(node.of, values, state),
    },
    lambda node, values, state: None,
)


@lru_cache(maxsize=256)
def _end_cells(row: RowFn, slots: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    cells = row.cells(slots)
    return cells[0], cells[-1]


def _rows(node: RowNonlin, ref: Ref, values: list[Value], state: StartState) -> Value:
    """Every cell of a row is a function of all of its cells, which have one bound."""
    found = state.forms.builder.type(ref)
    size = dict(found.axes)[node.along]
    slots = tuple((Var if found.kind is Kind.VECTOR else Par)(k) for k in range(size))
    arguments: dict[Expr, Split] = dict.fromkeys(slots, (state.total(values[node.of]), ()))
    state.know(dict.fromkeys(slots, node.of).items())
    parts = (state.bounds.function(cell, arguments) for cell in _end_cells(node.row, slots))
    return Value(None, state.bounds.sum(*(bound for part in parts for bound in part)))


START_RULES: Rules[Value, StartState] = Rules(
    "bounds at the start",
    {
        **RULES.table,
        Data: _data,
        Input: _input,
        MatMul: _matmul,
        Moment: _applied,
        Nonlin: _nonlin,
        Rename: lambda node, ref, values, state: values[node.of],
        RowNonlin: _rows,
        Stack: lambda node, ref, values, state: Value(
            None, state.bounds.sum(*(state.total(values[part]) for part in node.of))
        ),
    },
    level=Level.BLOCKS,
)
