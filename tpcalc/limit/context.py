"""The limit graph under construction, with what each node depends on at finite width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from tpcalc.errors import TpcalcError
from tpcalc.functions import Call, Fn, Par, Var
from tpcalc.functions.expr import Mul, add, walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.limit.algebra import Explosion
from tpcalc.limit.expand import is_positive
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LNode,
    LRef,
    Noise,
    Number,
    Product,
    ScalarApply,
    Start,
    graph_refs,
)
from tpcalc.limit.parity import Parity
from tpcalc.limit.series import Ranking, Rest, Series
from tpcalc.orders import Ex
from tpcalc.orders.chamber import Power
from tpcalc.orders.coset import Lattice
from tpcalc.program.nodes import InputMatrix, Ref
from tpcalc.program.program import Program

__all__ = ["Context", "Piece", "Template", "is_hidden", "start_root"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A term of an expanded function: its power of n and a function of the listed nodes."""

    power: Power
    fn: Fn
    vectors: tuple[LRef, ...]
    scalars: tuple[LRef, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """An expanded function whose pieces number the terms of the arguments' series."""

    parts: tuple[Piece, ...]
    rest: Rest | None
    soft: Rest | None
    drift: Rest | None


SINGULAR = 1e-12  # of the largest: an eigenvalue of a covariance that may be rounding


def _root(cov: tuple[tuple[Fraction | float, ...], ...]) -> Any:
    """A matrix whose product with its transpose is a covariance."""
    values, vectors = np.linalg.eigh(np.array(cov, dtype=float))
    kept = np.where(values > SINGULAR * values.max(initial=0.0), values, 0.0)
    return vectors * np.sqrt(kept)


@dataclass
class Context:
    """The graph under construction."""

    program: Program
    ranking: Ranking
    values: dict[str, Ex | Fraction]
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)  # a bit for each random input
    images: list[frozenset[LRef]] = field(default_factory=list)  # sums of start vectors below
    missing: list[str] = field(default_factory=list)  # why a node has no value, or ""
    sides: list[int] = field(default_factory=list)  # a bit for each side of a matrix below a node
    bits: dict[str, int] = field(default_factory=dict)
    known: dict[LNode, LRef] = field(default_factory=dict)
    smooth: list[bool] = field(default_factory=list)  # whether the law has a density
    positive: list[bool] = field(default_factory=list)  # whether it stays away from 0 by its form
    anchors: dict[str, LRef] = field(default_factory=dict)  # some vector of each dimension
    templates: dict[object, Template] = field(default_factory=dict)
    shapes: dict[object, int] = field(default_factory=dict)
    exploded: list[Explosion] = field(default_factory=list)
    uncovered: dict[Ref, TpcalcError] = field(default_factory=dict)  # nodes that no rule covers
    fresh: Iterator[int] = field(default_factory=count)
    parity: Parity = field(init=False)
    # Ratios of rows and columns of each Haar matrix.
    orthogonal: dict[str, tuple[Fraction, Fraction]] = field(init=False)

    def __post_init__(self) -> None:
        # Cosets of long training runs are large, and their zeros are rarely asked for.
        largest = 128 if len(self.program.nodes) < 10_000 else 16
        ratio = {dim.name: dim.ratio for dim in self.program.dims}
        self.orthogonal = {
            node.name: (ratio[node.rows], ratio[node.cols])
            for node in self.program.nodes
            if isinstance(node, InputMatrix) and node.law == "orthogonal"
        }
        self.parity = Parity(self.program.group, frozenset(self.orthogonal), Lattice(largest))

    def add(self, node: LNode, dim: str | None) -> LRef:
        found = self.known.get(node)
        if found is not None:
            return found
        self.nodes.append(node)
        self.dims.append(dim)
        if dim is not None:
            self.anchors.setdefault(dim, len(self.nodes) - 1)
            self.parity.add(len(self.nodes) - 1, node)
        self.roots.append(self._roots(node))
        self.missing.append(self._missing(node))
        self.sides.append(self._sides(node))
        self.images.append(self._images(node))
        self.smooth.append(self._has_density(node))
        self.positive.append(isinstance(node, Apply) and is_positive(node.fn.expr))
        self.known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _missing(self, node: LNode) -> str:
        """Why a node has no value: "hidden" (terms not kept decide), "noise", or "" if it has."""
        if isinstance(node, Apply | Expect | Noise) and is_hidden(node.fn):
            return "hidden"
        below = {self.missing[ref] for ref in graph_refs(node)}
        if "hidden" in below:
            return "hidden"
        return "noise" if isinstance(node, Noise) or "noise" in below else ""

    def _sides(self, node: LNode) -> int:
        out = 0
        for ref in graph_refs(node):
            out |= self.sides[ref]
        return out | self.side(node) if isinstance(node, Product) else out

    def side(self, node: Product) -> int:
        """The bit of the side of a matrix that a product uses."""
        return self.bit(f"side {node.matrix} {node.transpose}")

    def both_sides(self, node: Product) -> int:
        """The bits of both sides of the matrix that a product uses."""
        return self.bit(f"side {node.matrix} False") | self.bit(f"side {node.matrix} True")

    def _roots(self, node: LNode) -> int:
        """All random inputs that the finite-width value of a node depends on."""
        out = 0
        for ref in graph_refs(node):
            out |= self.roots[ref]
        if isinstance(node, Start | Fluctuation):
            return out | self.bit(start_root(self.program, node.group, node.index))
        if isinstance(node, Product):
            return out | self.bit(f"matrix {node.matrix}")
        if isinstance(node, Apply | Expect | Noise) and is_hidden(node.fn):
            return -1
        return out | self.bit(f"scalar {node.name}") if isinstance(node, Draw) else out

    def _images(self, node: LNode) -> frozenset[LRef]:
        """The start vectors, and sums of them, through which a node depends on the start."""
        if isinstance(node, Start) or self._is_image(node):
            return frozenset({len(self.nodes) - 1})
        vectors = [ref for ref in graph_refs(node) if self.dims[ref] is not None]
        return frozenset().union(*(self.images[ref] for ref in vectors))

    def _is_image(self, node: LNode) -> bool:
        return (
            isinstance(node, Combine)
            and all(scalar is None for scalar in node.scalars)
            and all(isinstance(self.nodes[vector], Start) for vector in node.vectors)
        )

    def _has_density(self, node: LNode) -> bool:
        """Whether a Z has a bounded density: a Gaussian direction of its own is in it.

        Two things are assumed: that a product with a matrix has a direction that earlier products
        did not have, unless its vector is a sum of theirs; and that a scalar which is no given
        number does not cancel one term against others. What is not known counts as no.
        """
        if isinstance(node, Start | Product):
            return self.parity.own[self.known_ref(node)] != 0
        if not isinstance(node, Combine):
            return False
        terms = self._terms(node)
        given = [vector for vector, plain in terms if plain]
        return (bool(given) and self._has_own(given)) or self._has_own([v for v, _ in terms])

    def _terms(self, node: Combine, levels: int = 3) -> list[tuple[LRef, bool]]:
        """The terms of a sum of sums, each with whether a given number is in front of it."""
        out: list[tuple[LRef, bool]] = []
        for vector, scalar in zip(node.vectors, node.scalars, strict=True):
            inner = self.nodes[vector]
            if isinstance(inner, Combine) and levels and not self._is_image(inner):
                below = self._terms(inner, levels - 1)
                out += [(term, plain and scalar is None) for term, plain in below]
            else:
                out.append((vector, scalar is None))
        return out

    def _has_own(self, vectors: Sequence[LRef]) -> bool:
        """Whether one term of a sum has a Gaussian direction that the others have not.

        A term ``gate * D`` with such a direction in D may be left out: where the gate is open the
        sum has a density, and elsewhere the rest decides.
        """
        left = list(vectors)
        while left:
            dropped = None
            for place, vector in enumerate(left):
                others = [other for index, other in enumerate(left) if index != place]
                if self._is_free(vector, others):
                    return True
                if dropped is None and self._is_gated(vector, others):
                    dropped = place
            if dropped is None:
                return False
            left.pop(dropped)
        return False

    def _is_gated(self, vector: LRef, others: Sequence[LRef]) -> bool:
        """Whether a vector is a function times a Z with a direction that nothing else here has."""
        node = self.nodes[vector]
        if not isinstance(node, Apply) or not isinstance(node.fn.expr, Mul):
            return False
        for factor in node.fn.expr.factors:
            if isinstance(factor, Var):
                own = [v for i, v in enumerate(node.vectors) if i != factor.index]
                if self._is_free(node.vectors[factor.index], [*others, *own]):
                    return True
        return False

    def _is_free(self, vector: LRef, others: Sequence[LRef], levels: int = 3) -> bool:
        """Whether a Gaussian direction of a vector is in none of the others."""
        node, parity = self.nodes[vector], self.parity
        below = 0
        for other in others:
            below |= parity.depends[other]
        if parity.own.get(vector, 0) & ~below:
            return True
        if self._is_image(node) or isinstance(node, Start):
            return self._is_new_image(vector, others)
        if isinstance(node, Combine) and levels:
            for place, term in enumerate(node.vectors):
                rest = [v for index, v in enumerate(node.vectors) if index != place]
                if self._is_free(term, [*others, *rest], levels - 1):
                    return True
        return False

    def _is_new_image(self, image: LRef, others: Sequence[LRef]) -> bool:
        """Whether a sum of start vectors is no sum of those that the others depend on."""
        if any(self.parity.depends[other] == -1 for other in others):
            return False
        used = sorted(frozenset().union(*(self.images[other] for other in others)))
        rows = [self._weights(ref) for ref in (*used, image)]
        columns = sorted({place for row in rows for place in row})
        table = np.array([[row.get(place, 0.0) for place in columns] for row in rows])
        least = SINGULAR**0.5 * float(np.abs(table).max(initial=0.0))
        ranks = [np.linalg.matrix_rank(part, tol=least) for part in (table, table[:-1])]
        return bool(ranks[0] > ranks[1])

    def _weights(self, ref: LRef) -> dict[tuple[str, int], float]:
        """A sum of start vectors in independent coordinates: group and number of each."""
        node = self.nodes[ref]
        pairs = [(ref, 1.0)]
        if isinstance(node, Combine):
            numbers = (float(number) for number in node.numbers)
            pairs = list(zip(node.vectors, numbers, strict=True))
        out: dict[tuple[str, int], float] = {}
        for vector, number in pairs:
            start = self.nodes[vector]
            assert isinstance(start, Start)
            cov = self.program.group[start.group].cov
            row = [(start.index, 1.0)] if cov is None else enumerate(_root(cov)[start.index])
            for index, weight in row:
                place = (start.group, index)
                out[place] = out.get(place, 0.0) + number * float(weight)
        return out

    def known_ref(self, node: LNode) -> LRef:
        """The number of a node that is being added or is there."""
        return self.known.get(node, len(self.nodes) - 1)

    def bit(self, root: str) -> int:
        """The bit of a random input."""
        return self.bits.setdefault(root, 1 << len(self.bits))

    def start_bits(self) -> list[int]:
        """The bits of the start vectors met so far."""
        return [bit for root, bit in self.bits.items() if root.startswith("start ")]

    def shape(self, series: Series[LRef]) -> int:
        """A number for the powers of a series; equal for equal powers, looked up once for each."""
        if series.shape is None:
            key = (
                tuple(power for power, _ in series.terms),
                series.rest,
                series.soft,
                series.drift,
            )
            object.__setattr__(series, "shape", self.shapes.setdefault(key, len(self.shapes)))
        assert series.shape is not None
        return series.shape

    def dim(self, ref: Ref) -> str:
        """The dimension class of a vector node of the program."""
        return self.program.types[ref].dims[0]

    def scalar_sum(self, items: Sequence[LRef]) -> LRef:
        """The node of a sum of scalars."""
        if len(items) == 1:
            return items[0]
        refs = list(dict.fromkeys(items))
        total = add(Par(refs.index(item)) for item in items)
        return self.add(ScalarApply(Fn(total, 0, len(refs)), tuple(refs)), None)

    def number(self, value: Fraction | float) -> LRef:
        return self.add(Number(value), None)


@lru_cache(maxsize=2**14)
def is_hidden(fn: Fn) -> bool:
    """Whether a function holds a value that is not followed."""
    return any(isinstance(part, Call) and part.atom.name == HIDDEN for part in walk(fn.expr))


def start_root(program: Program, group: str, index: int) -> str:
    """Members of a group with a covariance count as one random input."""
    return f"start {group}" if program.group[group].cov is not None else f"start {group} {index}"
