"""Dependency sets: the Gaussians that each node of a limit graph is a function of.

A product What x is its hat, a Gaussian of its own, and a correction: a sum over the earlier
products What^T y that x depends on, with deterministic coefficients. Those that are 0 by symmetry
are left out, with the vectors y that they multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tpcalc.analyses.dependence.gates import Gates
from tpcalc.functions import Expr, Par, Var
from tpcalc.functions.expr import Mul, walk
from tpcalc.limit.context import Context
from tpcalc.limit.corrections import Dot, correlated, dot_of
from tpcalc.limit.graph import Expect, Fluctuation, LRef, Noise, Number, OuterExpect, Product, Start
from tpcalc.limit.views import product_of, start_of, the_product
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Input, LinComb, Nonlin
from tpcalc.program.views import lincomb_of

__all__ = ["Sets", "image_of"]


@dataclass
class Sets:
    """Dependency sets of all nodes of a limit graph, as bits of the nodes that are Gaussians.

    Args:
        context: The graph.
        gates: Which arguments of functions are felt; what is not is left out.

    Attributes:
        of: For each node its set.
        dots: For each product its correction.
    """

    context: Context
    gates: Gates
    of: list[int] = field(default_factory=list)
    dots: dict[LRef, Dot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scalars = 0
        self._none: frozenset[LRef] = frozenset()
        self._shut: frozenset[tuple[LRef, Expr]] = frozenset()
        self._earlier: dict[tuple[str, bool], list[LRef]] = {}
        for ref, node in enumerate(tuple(self.context.nodes)):
            if (product := product_of(node)) is not None:
                self.dots[ref] = self._dot(product)
            self.of.append(self._find(ref))
            if product is not None:
                self._earlier.setdefault((product.matrix, product.transpose), []).append(ref)
            if self.context.dims[ref] is not None:
                self.gates.add(ref)

    def without(
        self,
        coefficients: Iterable[LRef],
        dots: Iterable[tuple[LRef, LRef]],
        terms: Iterable[tuple[LRef, Expr]],
    ) -> list[int]:
        """The sets if some coefficients and terms were 0.

        Args:
            coefficients: Scalars in front of vectors.
            dots: Products, each with the earlier product whose coefficient it is.
            terms: Functions of vectors, each with one of its summands.
        """
        kept, self.of = self.of, []
        whole, gone = dict(self.dots), set(dots)
        self._none, self._shut = frozenset(coefficients), frozenset(terms)
        for ref, dot in whole.items():
            self.dots[ref] = Dot(tuple(q for q in dot.open if (ref, q) not in gone), dot.zero)
        for ref in range(len(kept)):
            self.of.append(self._find(ref))
        found, self.of, self.dots = self.of, kept, whole
        self._none, self._shut = frozenset(), frozenset()
        return found

    def names(self, bits: int) -> Iterator[LRef]:
        """The Gaussians of a set, in the order of the graph.

        Args:
            bits: The set.
        """
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def random(self, bits: int) -> int:
        """The part of a set that is scalars.

        Args:
            bits: The set.
        """
        return bits & self._scalars

    def _find(self, ref: LRef) -> int:
        return _SETS(self.context.nodes[ref], ref, self)

    def _start(self, ref: LRef, node: Start) -> int:
        cov = self.context.program.group[node.group].cov
        return 1 << ref if cov is None or cov[node.index][node.index] != 0 else 0

    def _scalar(self, ref: LRef, node: Input | Fluctuation | Noise) -> int:
        self._scalars |= 1 << ref
        return 1 << ref | self.random(self._all(references(node)))

    def _product(self, ref: LRef, node: Product) -> int:
        terms = [the_product(self.context.nodes[earlier]) for earlier in self.dots[ref].open]
        return 1 << ref | self._all(t.vector for t in terms) | self.random(self.of[node.vector])

    def _sum(self, ref: LRef, node: LinComb) -> int:
        if image_of(self.context, ref):
            return 1 << ref
        pairs = zip(node.scalars, node.vectors, strict=True)
        kept = [(s, v) for s, v in pairs if s not in self._none]
        return self._all([v for _, v in kept]) | self._all(s for s, _ in kept if s is not None)

    def _outer(self, node: OuterExpect) -> int:
        over = self._all((*node.cols, node.vector))
        return self._all((*node.rows, *node.scalars)) | self.random(over)

    def _average(self, node: Expect) -> int:
        return self._all(node.scalars) | self.random(self._all(node.vectors))

    def _all(self, refs: Iterable[LRef]) -> int:
        bits = 0
        for ref in refs:
            bits |= self.of[ref]
        return bits

    def _applied(self, ref: LRef, node: Nonlin) -> int:
        if not node.vectors:
            return self._all(node.scalars)
        used: set[Expr] = set()
        node = self.gates.opened(node)
        for term in self.gates.felt(node):
            factors = term.factors if isinstance(term, Mul) else (term,)
            scalars = {node.scalars[f.index] for f in factors if isinstance(f, Par)}
            if (ref, term) not in self._shut and not scalars & self._none:
                used |= {part for part in walk(term) if isinstance(part, Var | Par)}
        refs = [
            node.vectors[part.index] if isinstance(part, Var) else node.scalars[part.index]
            for part in used
            if isinstance(part, Var | Par)
        ]
        return self._all(refs)

    def _dot(self, node: Product) -> Dot:
        """The earlier products of the other side that x depends on, by what symmetry says."""
        earlier = self._earlier.get((node.matrix, not node.transpose), [])
        context = self.context
        return dot_of(context.nodes, context.parity, node.vector, earlier, self.of[node.vector])

    def correlated(self, a: LRef, b: LRef) -> bool:
        """Whether the vectors of two products may have E[Z Z'] different from 0.

        Args:
            a: One product (or fluctuation).
            b: The other.
        """
        return correlated(self.context.nodes, self.context.parity, a, b)


_SETS: Table[int] = Table(
    {
        Start: lambda node, ref, sets: sets._start(ref, node),
        Input: lambda node, ref, sets: sets._scalar(ref, node),
        Fluctuation: lambda node, ref, sets: sets._scalar(ref, node),
        Noise: lambda node, ref, sets: sets._scalar(ref, node),
        Product: lambda node, ref, sets: sets._product(ref, node),
        Nonlin: lambda node, ref, sets: sets._applied(ref, node),
        LinComb: lambda node, ref, sets: sets._sum(ref, node),
        OuterExpect: lambda node, ref, sets: sets._outer(node),
        Expect: lambda node, ref, sets: sets._average(node),
        Number: lambda node, ref, sets: 0,
    }
)


def image_of(context: Context, ref: LRef) -> tuple[LRef, ...]:
    """The start vectors that a node is a given linear combination of; none for any other node.

    Args:
        context: The graph.
        ref: The node.
    """
    node = lincomb_of(context.nodes[ref])
    if node is None or any(scalar is not None for scalar in node.scalars):
        return ()
    if len(node.vectors) < 2:  # a multiple of one start vector is that start vector
        return ()
    starts = all(start_of(context.nodes[vector]) is not None for vector in node.vectors)
    return node.vectors if starts else ()
