"""Certainty: which nodes of a limit graph are provably not 0.

The order of a quantity is that of its leading term if the term is not 0. Parity finds zeros and
never errs; what it leaves may still be 0 by accident. Here the other half: a node is certain where
the form of its function and independent directions exclude that. What is neither is for the
evaluators to settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, walk
from tpcalc.functions.indicator import AT_ZERO
from tpcalc.limit.building import Building
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LRef,
    Number,
    Product,
    Start,
    Starts,
    Total,
    product_of,
    start_of,
)
from tpcalc.limit.law import Density, Laws
from tpcalc.limit.steep import Steep
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack


def is_isometric(context: Building, node: Product) -> bool:
    """Whether a product with a Haar matrix keeps angles: it goes to the larger dimension."""
    rows, cols = context.orthogonal[node.matrix]
    return rows <= cols if node.transpose else cols <= rows


def known_product(context: Building, node: Product) -> tuple[Fraction, LRef] | None:
    """A product with a Haar matrix as a multiple of a node that is there."""
    inner = product_of(context.nodes[node.vector])
    if (
        inner is not None
        and (inner.matrix, inner.transpose) == (node.matrix, not node.transpose)
        and is_isometric(context, inner)
    ):
        return max(context.orthogonal[node.matrix]), inner.vector
    found = context.known.get(node)
    return None if found is None else (Fraction(1), found)


NOWHERE, SOMEWHERE, EVERYWHERE = 0, 1, 2  # where a node is known not to be 0


@dataclass
class Certainty:
    """What is certainly not 0 in a graph under construction."""

    context: Building  # the graph
    laws: Laws = field(init=False)
    steep: Steep = field(init=False)
    _known: dict[LRef, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.laws = Laws(self.context, self.holds)
        self.steep = Steep(self.context, self.laws, self.holds)

    def _has_density(self, vector: LRef) -> bool:
        """Whether forms prove that no part of a vector is at any point."""
        return self.laws.density(vector) is Density.PROVED

    def holds(self, ref: LRef) -> bool:
        """Whether a node is certainly not 0 (a vector: on a positive share of its coordinates)."""
        stack = [ref]
        while stack:  # arguments first: graphs are deeper than the recursion limit
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            asked = _ASKED(self.context.nodes[top])
            missing = [other for other in asked if other not in self._known]
            if missing:
                stack += missing
                continue
            known = _DECIDED(self.context.nodes[top], self, top)
            if known == NOWHERE and asked and self.context.dims[top] is not None:
                known = EVERYWHERE if self.steep.proves(top) else NOWHERE
            self._known[top] = known
            stack.pop()
        return self._known[ref] > NOWHERE

    def _start(self, node: Start, ref: LRef) -> int:
        mean = self.context.program.group[node.group].means[node.index]
        return EVERYWHERE if self._has_density(ref) or mean != 0 else NOWHERE

    def _gaussian(self, ref: LRef) -> int:
        return EVERYWHERE if self._has_density(ref) else NOWHERE

    def _all(self, refs: Sequence[LRef]) -> bool:
        return all(self._known[ref] for ref in refs)

    def _fluctuation(self, node: Fluctuation) -> int:
        start = start_of(node.root)
        spread = start is None or self.context.varies(start)
        return EVERYWHERE if spread and self._all(node.vectors) else NOWHERE

    def _product(self, node: Product) -> int:
        """W^T y is 0 where W is orthogonal with fewer columns and y has nothing in their span."""
        if not self._known[node.vector]:
            return NOWHERE
        context = self.context
        used = context.sides[node.vector] & context.both_sides(node)
        if node.matrix not in context.orthogonal or not used:
            return EVERYWHERE
        return SOMEWHERE if is_isometric(context, node) else NOWHERE

    def _is_new(self, node: Product, sides: int) -> bool:
        """Whether vectors that hold products of some sides hold nothing of what this one draws."""
        context = self.context
        if node.matrix not in context.orthogonal:
            return not sides & context.side(node.matrix, node.transpose)
        return not (sides | context.sides[node.vector]) & context.both_sides(node)

    def _combined(self, node: LinComb) -> int:
        """One certain term with a Gaussian direction that the others certainly do not hold."""
        context = self.context
        parity = context.parity
        supports = [parity.depends[vector] for vector in node.vectors]
        for place, (scalar, vector) in enumerate(zip(node.scalars, node.vectors, strict=True)):
            if not self._known[vector] or (scalar is not None and not self._known[scalar]):
                continue
            if len(node.vectors) == 1:
                return self._known[vector]
            others = sides = 0
            for index, other in enumerate(node.vectors):
                if index != place:
                    others |= supports[index]
                    sides |= context.sides[other]
            own, product = parity.own.get(vector, 0), product_of(context.nodes[vector])
            if product is not None and not self._is_new(product, sides):
                continue  # perhaps a multiple of what the product before it held
            if own & ~others:
                return EVERYWHERE
        return NOWHERE

    def _applied(self, node: Nonlin) -> int:
        """A product of powers and named functions, of which one at most is 0 somewhere."""
        if not self._all(node.scalars):
            return NOWHERE
        places = [self._factor(factor, node.vectors) for factor in _factors(node.fn.expr)]
        if NOWHERE in places or places.count(SOMEWHERE) > 1:
            return NOWHERE
        return min(places)

    def _factor(self, factor: Expr, vectors: tuple[LRef, ...]) -> int:
        """Where one factor is not 0."""
        if isinstance(factor, Const | Par):
            return EVERYWHERE
        if isinstance(factor, Var):
            return self._known[vectors[factor.index]]
        if isinstance(factor, Pow):
            inner = factor.base
            if isinstance(inner, Par):
                return EVERYWHERE
            return self._known[vectors[inner.index]] if isinstance(inner, Var) else NOWHERE
        call = _visible(factor)
        if call is None or not isinstance(call.arg, Var):
            return NOWHERE
        vector = vectors[call.arg.index]
        if not self._has_density(vector) or not self._known[vector]:
            return NOWHERE
        return SOMEWHERE if call.atom.facts.kinks else EVERYWHERE

    def _mean(self, node: Expect) -> int:
        """The mean of an even power, times numbers that are not 0."""
        power = _even_power(node.fn)
        if power is None or not self._all(node.scalars):
            return NOWHERE
        return EVERYWHERE if self._factor(power, node.vectors) > NOWHERE else NOWHERE


@lru_cache(maxsize=2**12)
def _even_power(fn: Fn) -> Pow | None:
    """The even power that a function is, but for numbers in front."""
    factors = [f for f in _factors(fn.expr) if not isinstance(f, Const | Par)]
    if len(factors) != 1 or not isinstance(factors[0], Pow):
        return None
    return factors[0] if factors[0].exponent > 0 and factors[0].exponent % 2 == 0 else None


# The nodes that the answer to a node hangs on.
_ASKED: Table[tuple[LRef, ...]] = Table(
    {
        **dict.fromkeys((Product, Fluctuation, Nonlin, Rename, Stack), references),
        Expect: lambda node: references(node) if _even_power(node.fn) else (),
        LinComb: lambda node: (*node.vectors, *(s for s in node.scalars if s is not None)),
    },
    lambda node: (),
)
# Where a node is not 0, by what is known of those.
_DECIDED: Table[int] = Table(
    {
        Start: lambda node, by, ref: by._start(node, ref),
        Number: lambda node, by, ref: EVERYWHERE if node.value != 0 else NOWHERE,
        Input: lambda node, by, ref: EVERYWHERE,
        Data: lambda node, by, ref: EVERYWHERE if all(node.values) else NOWHERE,
        Rename: lambda node, by, ref: by._known[node.of],
        Stack: lambda node, by, ref: min(by._known[ref] for ref in node.of),
        **dict.fromkeys((Starts, Total), lambda node, by, ref: by._gaussian(ref)),
        Product: lambda node, by, ref: by._product(node),
        Fluctuation: lambda node, by, ref: by._fluctuation(node),
        LinComb: lambda node, by, ref: by._combined(node),
        Nonlin: lambda node, by, ref: by._applied(node),
        Expect: lambda node, by, ref: by._mean(node),
    },
    lambda node, by, ref: NOWHERE,
)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    return expr.factors if isinstance(expr, Mul) else (expr,)


def _visible(expr: Expr) -> Call | None:
    """The named function that a factor is, but for a part that lives where it is 0."""
    if isinstance(expr, Add):
        terms = [term for term in expr.terms if not _hidden_part(term)]
        return _visible(terms[0]) if len(terms) == 1 else None
    return expr if isinstance(expr, Call) else None


def _hidden_part(expr: Expr) -> bool:
    return any(isinstance(part, Call) and part.atom == AT_ZERO for part in walk(expr))
