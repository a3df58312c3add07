"""What stands between what a map writes and what reads it: powers of n, factors, norms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from math import prod

from tpcalc.exponents import Ex
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, add, mul, walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.passes.sums import total
from tpcalc.program.base import Table, data_of, references, scale_of
from tpcalc.program.nodes import (
    Data,
    Kind,
    LinComb,
    Moment,
    Nonlin,
    Ref,
    Rename,
    Scale,
    Stack,
    slots_of,
)
from tpcalc.program.program import Builder

Way = tuple[Ex, frozenset[Ref]]  # a power of n, and nodes that multiply
Step = tuple[Ex, Ref | None, str]  # a power of n or a factor, and ON, READ or AVERAGED
ON, READ, AVERAGED = "on", "read", "averaged"


class Readers:
    """The readers of the nodes of a forward pass: what is no linear function of a node."""

    def __init__(self, builder: Builder, outputs: Collection[Ref]) -> None:
        self._builder, self._outputs = builder, frozenset(outputs)
        self._users: dict[Ref, list[Ref]] = defaultdict(list)
        for ref in range(len(builder)):
            for of in dict.fromkeys(references(builder.node(ref))):
                self._users[of].append(ref)

    def ways(self, start: Ref) -> tuple[Way, ...]:
        """The ways from a node to its readers.

        An average counts where nothing else reads the node: others are of its own norm.
        """
        power, scaled = Ex(), scale_of(self._builder.node(start))
        if scaled is not None:  # two in a row are one
            start, power = scaled.of, -scaled.n_power
        reached: dict[Ref, dict[Way, None]] = {start: {(power, frozenset()): None}}
        found: dict[str, dict[Way, None]] = {READ: {}, AVERAGED: {}}
        heap = [start]
        while heap:
            ref = heappop(heap)
            if ref in self._outputs:
                found[READ].update(reached[ref])
            for user in self._users[ref]:
                for more, factor, what in _STEPS(self._builder.node(user), ref, self._builder):
                    if what == ON and user not in reached:
                        heappush(heap, user)
                    goal = reached.setdefault(user, {}) if what == ON else found[what]
                    own = () if factor is None else (factor,)
                    goal.update({(p + more, f.union(own)): None for p, f in reached[ref]})
        return tuple(found[READ] or found[AVERAGED])

    def power(self, start: Ref) -> Ex:
        """The power of n between a node and its readers, where nothing else stands there."""
        ways = self.ways(start)
        if any(factors for _, factors in ways):
            return Ex()
        return max(
            (power for power, _ in ways), key=lambda power: power.constant or 0, default=Ex()
        )

    def between(self, start: Ref) -> Ref | None:
        """What multiplies a change of a node on its ways to readers; None where powers of n do."""
        ways, out = self.ways(start), self._builder
        if not any(factors for _, factors in ways):
            return None
        slots, terms = dict[Ref, Expr](), list[Expr]()
        for number, (power, factors) in enumerate(ways, 1):  # so that no two ways cancel
            own = sorted(factors)
            if power != Ex():
                own.append(out.add(Scale(out.add(Data("one", (Fraction(1),), ())), power)))
            for ref in own:
                kind = Par if out.type(ref).kind is Kind.SCALAR else Var
                slots.setdefault(ref, kind(sum(isinstance(s, kind) for s in slots.values())))
            terms.append(mul((const(number), *(slots[ref] for ref in own))))
        vectors = tuple(ref for ref, slot in slots.items() if isinstance(slot, Var))
        scalars = tuple(ref for ref in slots if ref not in vectors)
        fn = Fn(add(terms), len(vectors), len(scalars))
        only = fn.expr in (Var(0), Par(0))
        found = (vectors or scalars)[0] if only else out.add(Nonlin(fn, vectors, scalars))
        return self._summed(found, dict(out.type(start).axes))

    def _summed(self, ref: Ref, kept: Mapping[str, int]) -> Ref:
        """A weighted sum over the axes that are not kept."""
        out = self._builder
        lost = tuple(pair for pair in out.type(ref).axes if pair[0] not in kept)
        if not lost:
            return ref
        weights = tuple(map(Fraction, range(1, 1 + prod(size for _, size in lost))))
        data = out.add(Data(f"cells{lost}", weights, lost))
        return total(out, [(Fraction(1), data, ref, tuple(name for name, _ in lost))])


def _sum(node: LinComb, of: Ref, builder: Builder) -> Iterator[Step]:
    for scalar, vector in zip(node.scalars, node.vectors, strict=True):
        if vector == of:
            known = scalar is None or data_of(builder.node(scalar)) is not None
            yield Ex(), None if known else scalar, ON
        if scalar == of:
            yield Ex(), vector, ON


def _applied(node: Nonlin, of: Ref, builder: Builder) -> Iterator[Step]:
    for slot, ref in slots_of(node):
        if ref == of:
            for slope, what in _read(node.fn.expr, slot):
                yield Ex(), _factor(node, slope, builder), what


def _read(expr: Expr, slot: Expr) -> Iterator[tuple[Expr, str]]:
    """With which slopes an argument is read in an expression, or goes on as a term of it."""
    if slot not in walk(expr):
        return
    slope = slope_or_none(expr, slot)
    if slope not in (None, const(0)) and slot not in walk(slope):
        yield slope, ON
        return
    for part in expr.parts:
        for inner, what in _read(part, slot):
            yield inner, what if isinstance(expr, Add) else READ


def _factor(node: Nonlin, slope: Expr, builder: Builder) -> Ref | None:
    """A slope as a node; None where it is a number."""
    fn, vectors, scalars = Fn(slope, node.fn.vectors, node.fn.scalars).compact()
    refs = (*(node.vectors[k] for k in vectors), *(node.scalars[k] for k in scalars))
    if not refs:
        return None
    if fn.expr in (Var(0), Par(0)):
        return refs[0]
    return builder.add(Nonlin(fn, refs[: len(vectors)], refs[len(vectors) :]))


_STEPS: Table[Iterator[Step]] = Table(
    {
        LinComb: _sum,
        Nonlin: _applied,
        Scale: lambda node, of, builder: iter([(node.n_power, None, ON)]),
        Rename: lambda node, of, builder: iter([(Ex(), None, ON)]),
        Stack: lambda node, of, builder: iter([(Ex(), None, ON)]),
        Moment: lambda node, of, builder: iter([(Ex(), None, AVERAGED)]),
    },
    lambda node, of, builder: iter([(Ex(), None, READ)]),
)
