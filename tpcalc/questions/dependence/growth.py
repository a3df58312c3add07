"""Finite moments: which Z are bounded by a polynomial of Gaussians of finite variance.

Such a Z has moments of every order. The degree is a bound, followed through the graph by the growth
that activations declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.functions import Fn
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree, of_forms
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LRef,
    Noise,
    Number,
    OuterExpect,
    Product,
    Start,
    Starts,
    Total,
)
from tpcalc.limit.views import the_product
from tpcalc.program.base import Table
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack
from tpcalc.questions.dependence.sets import Sets

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass
class Growth:
    """Degrees of polynomial bounds of all nodes of a limit graph."""

    sets: Sets  # what each node depends on
    # for each node its degree: of a scalar that does not stay random 0
    of: list[Degree] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ref in range(len(self.sets.of)):
            self.of.append(_DEGREES(self.sets.context.nodes[ref], ref, self))

    def _sum(self, node: LinComb | Total) -> Degree:
        scalars = [ZERO if s is None else self.of[s] for s in node.scalars]
        pairs = zip(scalars, (self.of[v] for v in node.vectors), strict=True)
        return largest_degree(degree_sum(pair) for pair in pairs)

    def _outer(self, node: OuterExpect) -> Degree:
        rows, cols = ([self.of[v] for v in side] for side in (node.rows, node.cols))
        scalars = [self.of[s] for s in node.scalars]
        at = self.sets.context.ranking.chamber.at
        kernel = degree_of(node.fn.expr, of_forms(rows, cols, node.forms), scalars, at)
        return degree_sum((kernel, self.of[node.vector]))

    def _average(self, node: Expect, ref: LRef) -> Degree:
        found = self._function(node.fn, node.vectors, node.scalars)
        return ZERO if found is not None and not self.sets.whole(ref) else found

    def _hat(self, *vectors: int) -> Degree:
        """A Gaussian whose variance is a product of E[(Z^x)^2], given scalars that stay random."""
        random = [self.sets.random(self.sets.whole(vector)) for vector in vectors]
        inner = [self.of[vector] for vector in vectors]
        if any(degree is None for degree in inner):
            return None
        return degree_sum([ONE, *(d for d, felt in zip(inner, random, strict=True) if felt)])

    def _product(self, node: Product, ref: LRef) -> Degree:
        hat, terms = self._hat(node.vector), self.sets.dots[ref].open
        if not terms:
            return hat
        if self.sets.random(self.sets.whole(node.vector)):
            return None  # the coefficients are functions of random scalars, and not followed
        earlier = [the_product(self.sets.context.nodes[term]) for term in terms]
        return largest_degree([hat, *(self.of[q.vector] for q in earlier)])

    def _function(self, fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]) -> Degree:
        own, given = [self.of[v] for v in vectors], [self.of[s] for s in scalars]
        return degree_of(fn.expr, own, given, self.sets.context.ranking.chamber.at)


_DEGREES: Table[Degree] = Table(
    {
        Start: lambda node, ref, growth: ONE,
        Input: lambda node, ref, growth: ONE,
        Number: lambda node, ref, growth: ZERO,
        Noise: lambda node, ref, growth: None,  # no Gaussian, and its law is not computed
        Product: lambda node, ref, growth: growth._product(node, ref),
        Fluctuation: lambda node, ref, growth: growth._hat(*node.vectors),
        Starts: lambda node, ref, growth: ONE,
        Data: lambda node, ref, growth: ZERO,
        LinComb: lambda node, ref, growth: growth._sum(node),
        Total: lambda node, ref, growth: growth._sum(node),
        Rename: lambda node, ref, growth: growth.of[node.of],
        Stack: lambda node, ref, growth: largest_degree(growth.of[one] for one in node.of),
        OuterExpect: lambda node, ref, growth: growth._outer(node),
        Nonlin: lambda node, ref, growth: growth._function(node.fn, node.vectors, node.scalars),
        Expect: lambda node, ref, growth: growth._average(node, ref),
    }
)
