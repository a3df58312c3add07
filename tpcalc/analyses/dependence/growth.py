"""Finite moments: which Z are bounded by a polynomial of Gaussians of finite variance.

Such a Z has moments of every order. The degree is a bound, followed through the graph by the growth
that activations declare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.analyses.dependence.sets import Sets
from tpcalc.functions import Expr
from tpcalc.limit.degrees import Degree, degree_of, degree_sum, largest_degree
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    Noise,
    Number,
    OuterExpect,
    Product,
    ScalarApply,
    Start,
)

__all__ = ["Growth"]

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass
class Growth:
    """Degrees of polynomial bounds of all nodes of a limit graph.

    Args:
        sets: What each node depends on.

    Attributes:
        of: For each node its degree: of a scalar that does not stay random 0.
    """

    sets: Sets
    of: list[Degree] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ref in range(len(self.sets.of)):
            self.of.append(self._find(ref))

    def _find(self, ref: int) -> Degree:
        node = self.sets.context.nodes[ref]
        if isinstance(node, Start | Draw):
            return ONE
        if isinstance(node, Number):
            return ZERO
        if isinstance(node, Noise):
            return None  # no Gaussian, and its law is not computed
        if isinstance(node, Product):
            return self._product(ref, node)
        if isinstance(node, Fluctuation):
            return self._hat(*node.vectors)
        if isinstance(node, Combine):
            scalars = [ZERO if s is None else self.of[s] for s in node.scalars]
            pairs = zip(scalars, (self.of[v] for v in node.vectors), strict=True)
            return largest_degree(degree_sum(pair) for pair in pairs)
        if isinstance(node, OuterExpect):
            rows = [self.of[r] for r in (*node.rows, *node.cols)]
            kernel = self._expr(node.fn.expr, rows, [self.of[s] for s in node.scalars])
            return degree_sum((kernel, self.of[node.vector]))
        if isinstance(node, ScalarApply):
            return self._expr(node.fn.expr, [], [self.of[s] for s in node.scalars])
        assert isinstance(node, Apply | Expect)
        vectors = [self.of[v] for v in node.vectors]
        found = self._expr(node.fn.expr, vectors, [self.of[s] for s in node.scalars])
        if isinstance(node, Expect) and found is not None and not self.sets.of[ref]:
            return ZERO
        return found

    def _hat(self, *vectors: int) -> Degree:
        """A Gaussian whose variance is a product of E[(Z^x)^2], given scalars that stay random."""
        random = [self.sets.random(self.sets.of[vector]) for vector in vectors]
        inner = [self.of[vector] for vector in vectors]
        if any(degree is None for degree in inner):
            return None
        return degree_sum([ONE, *(d for d, felt in zip(inner, random, strict=True) if felt)])

    def _product(self, ref: int, node: Product) -> Degree:
        hat, terms = self._hat(node.vector), self.sets.dots[ref].open
        if not terms:
            return hat
        if self.sets.random(self.sets.of[node.vector]):
            return None  # the coefficients are functions of random scalars, and not followed
        earlier = [self.sets.context.nodes[term] for term in terms]
        return largest_degree(
            [hat, *(self.of[q.vector] for q in earlier if isinstance(q, Product))]
        )

    def _expr(self, expr: Expr, vectors: list[Degree], scalars: list[Degree]) -> Degree:
        return degree_of(expr, vectors, scalars, self.sets.context.ranking.chamber.at)
