"""Parity: which expectations are 0 because the law of the limit is symmetric.

The directions whose sign can be flipped, each on its own, without changing the law of the limit:
the independent Gaussians of the start vectors, and for each side of a random matrix the orthonormal
directions that its Gaussian parts (the hats) are built on. Every Z carries the coset of characters
that can occur in it. A zero found here is certain; "may be nonzero" is not "is nonzero".

What can be flipped alone can be flipped together, too, which shows fewer zeros. In a long run the
later directions of a side share the signs of its first ones, so that a product takes a bounded
number of comparisons and the spaces of characters stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import or_

from tpcalc.exponents.coset import ALL, EVEN, Coset, Lattice
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.indicator import HIDDEN
from tpcalc.limit.graph import LNode, LRef, OuterExpect, Product, Start, Starts, Total
from tpcalc.program.base import Table
from tpcalc.program.nodes import Family, LinComb, Nonlin, Rename, Stack

OWN = 32  # products with a side of a matrix that each have a sign of their own
LARGEST = 64  # members of a group up to which the exact factor is computed


@dataclass(slots=True)
class _Family:
    """Directions of one side of a matrix with one sign: what they are, and where they are sent."""

    vector: Coset
    draw: Coset
    bits: int  # of the draws
    below: int  # what the vectors depend on


@dataclass
class Parity:
    """The cosets of the vector nodes of a limit graph under construction.

    ``own`` holds for start vectors and products the bit of a Gaussian direction that is theirs: a
    multiple of it that is not 0 is in them, and in nothing before. ``depends`` holds for every
    vector the bits of all directions that it may depend on, with their sign or without. ``draws``
    holds the cosets of the directions of products, the same for those with one sign. ``alone``
    holds the products whose vectors are orthogonal to all that the matrix was applied to before.
    """

    groups: Mapping[str, Family]  # the Gaussian groups of the program
    orthogonal: frozenset[str] = frozenset()  # names of the matrices with a Haar law
    lattice: Lattice = field(default_factory=Lattice)
    own: dict[LRef, int] = field(default_factory=dict)
    depends: dict[LRef, int] = field(default_factory=dict)
    draws: dict[LRef, Coset] = field(default_factory=dict)
    alone: set[LRef] = field(default_factory=set)
    _of: dict[LRef, Coset] = field(default_factory=dict)
    _starts: dict[str, list[tuple[Coset, int, int]]] = field(default_factory=dict)
    _sides: dict[tuple[str, bool], list[_Family]] = field(default_factory=dict)
    _count: int = 0

    def add(self, ref: LRef, node: LNode) -> None:
        """Find the coset of a vector node."""
        _ADDED(node, ref, self)

    def _add_own(self, ref: LRef, found: tuple[Coset, int, int]) -> None:
        self._of[ref], self.own[ref], self.depends[ref] = found

    def _add_function(self, node: Nonlin, ref: LRef) -> None:
        self._of[ref] = self.character(node.fn, node.vectors) or EVEN
        self.depends[ref] = self._all(node.vectors) if self._of[ref] != ALL else -1

    def _add_cells(self, refs: Sequence[LRef], ref: LRef) -> None:
        """Cells of other blocks: none of their directions is one of its own."""
        self._of[ref] = self._hull([self._of[vector] for vector in refs])
        self.depends[ref] = self._all(refs)

    def _add_outer(self, node: OuterExpect, ref: LRef) -> None:
        self._of[ref] = self.outer(node) or EVEN
        self.depends[ref] = self._all(node.rows)

    def outer(self, node: OuterExpect) -> Coset | None:
        """The coset of an average over the columns; None where it is certainly 0.

        The columns are an independent copy, with flips of their own: what is left of the function
        times the vector are the characters that feel none of these.
        """
        lattice, bits = self.lattice, self._count
        rows = [self._of[row] for row in node.rows]
        cols = [lattice.shifted(self._of[col], bits) for col in node.cols]
        given = rows + cols
        if node.forms:
            pairs = [lattice.product(row, col) for row, col in zip(rows, cols, strict=True)]
            given = [
                self._hull(
                    [pair for pair, own in zip(pairs, node.forms, strict=True) if own == form]
                )
                for form in range(node.fn.vectors)
            ]
        found = self._expr(node.fn.expr, given)
        if found is None:
            return None
        whole = lattice.product(found, lattice.shifted(self._of[node.vector], bits))
        return lattice.within(whole, (1 << bits) - 1)

    def _all(self, vectors: Sequence[LRef]) -> int:
        return union(self.depends[vector] for vector in vectors)

    def coset(self, ref: LRef) -> Coset:
        """The coset of a vector node."""
        return self._of[ref]

    def zero_mean(self, fn: Fn, vectors: Sequence[LRef]) -> bool:
        """Whether the expectation of a function of Z's is certainly 0."""
        found = self.character(fn, vectors)
        return found is None or not self.lattice.has_zero(found)

    def character(self, fn: Fn, vectors: Sequence[LRef]) -> Coset | None:
        """The coset of a function of Z's; None for the function 0."""
        return self._expr(fn.expr, [self._of[vector] for vector in vectors])

    def _expr(self, expr: Expr, vectors: Sequence[Coset]) -> Coset | None:
        lattice = self.lattice
        if isinstance(expr, Const):
            return EVEN if expr.value != 0 else None
        if isinstance(expr, Par):  # a number, or random but independent of every direction
            return EVEN
        if isinstance(expr, Var):
            return vectors[expr.index]
        if isinstance(expr, Add):
            terms = [self._expr(term, vectors) for term in expr.terms]
            present = [term for term in terms if term is not None]
            return self._hull(present) if present else None
        if isinstance(expr, Mul):
            total = EVEN
            for factor in expr.factors:
                part = self._expr(factor, vectors)
                if part is None:
                    return None
                total = lattice.product(total, part)
            return total
        assert isinstance(expr, Pow | Call)
        inner = self._expr(expr.base if isinstance(expr, Pow) else expr.arg, vectors)
        return EVEN if inner is None else _applied(lattice, expr, inner)

    def _hull(self, cosets: Sequence[Coset]) -> Coset:
        total = cosets[0]
        for coset in cosets[1:]:
            total = self.lattice.hull(total, coset)
        return total

    def _fresh(self) -> Coset:
        self._count += 1
        return self.lattice.single(self._count - 1)

    def _block(self, node: Starts) -> tuple[Coset, int, int]:
        """Of a whole group: independent members are flipped together."""
        group = self.groups[node.group]
        centred = not any(group.means)
        if group.cov is None:
            coset = self._fresh()
            own = self.lattice.support(coset)
            return coset if centred else self.lattice.hull(coset, EVEN), own, own
        cosets, _, bits = zip(*self._members(group), strict=True)
        return self._hull(cosets), 0, union(bits)

    def _start(self, node: Start) -> tuple[Coset, int, int]:
        found = self._starts.get(node.group)
        if found is None:
            found = self._starts[node.group] = self._members(self.groups[node.group])
        return found[node.index]

    def _members(self, group: Family) -> list[tuple[Coset, int, int]]:
        """For each member its coset (with 0 where it has a mean) and its own direction, or 0."""
        directions = [self._fresh() for _ in group.means]
        out = []
        for index, row in enumerate(_factor(group)):
            mixed = [directions[j] for j, used in enumerate(row) if used]
            coset = self._hull(mixed) if mixed else EVEN
            certain = row[index] and group.size <= LARGEST
            own = self.lattice.support(directions[index]) if certain else 0
            centred = group.means[index] == 0
            bits = sum(self.lattice.support(direction) for direction in mixed)
            out.append((coset if centred else self.lattice.hull(coset, EVEN), own, bits))
        return out

    def _product(self, ref: LRef, node: Product) -> tuple[Coset, int, int]:
        """What x = hat + correction; the hat is a sum of the draws of the directions of x.

        A Haar matrix goes both ways between its directions: those of the other side, too, are taken
        off a vector before what is left of it becomes a direction.
        """
        lattice, haar = self.lattice, node.matrix in self.orthogonal
        x, below = self._of[node.vector], self.depends[node.vector]
        side = self._sides.setdefault((node.matrix, node.transpose), [])
        back = self._sides.get((node.matrix, not node.transpose), [])
        draw = self._fresh()
        own = bits = lattice.support(draw)
        near = [family for family in side if self._meet(x, family.vector)]
        felt = [family for family in back if self._meet(x, family.draw)]
        if not near and not (haar and felt):
            self.alone.add(ref)
        if not near or len(side) < OWN:  # else it takes the sign of one that it may be part of
            near.insert(0, _Family(x, draw, 0, 0))
            side.append(near[0])
        family = near[0]
        for other in near:
            bits |= other.bits
            below |= other.below
        total = self._hull([other.draw for other in near])
        direction = self._hull([x, *(other.vector for other in near)])
        for other in felt:
            total = lattice.hull(total, other.vector)
            bits |= other.below
            if haar:
                direction, below = lattice.hull(direction, other.draw), below | other.bits
        family.vector, family.bits = direction, family.bits | own
        family.below |= below
        self.draws[ref] = family.draw
        return total, own, bits

    def _meet(self, a: Coset, b: Coset) -> bool:
        """Whether the product of what has two cosets may have a mean."""
        return self.lattice.has_zero(self.lattice.product(a, b))


_ADDED: Table[None] = Table(
    {
        Start: lambda node, ref, parity: parity._add_own(ref, parity._start(node)),
        Starts: lambda node, ref, parity: parity._add_own(ref, parity._block(node)),
        Product: lambda node, ref, parity: parity._add_own(ref, parity._product(ref, node)),
        Nonlin: lambda node, ref, parity: parity._add_function(node, ref),
        LinComb: lambda node, ref, parity: parity._add_cells(node.vectors, ref),
        Total: lambda node, ref, parity: parity._add_cells(node.vectors, ref),
        Rename: lambda node, ref, parity: parity._add_cells((node.of,), ref),
        Stack: lambda node, ref, parity: parity._add_cells(node.of, ref),
        OuterExpect: lambda node, ref, parity: parity._add_outer(node, ref),
    },
    lambda node, ref, parity: None,
)


def union(bits: Iterable[int]) -> int:
    """All of some sets."""
    return reduce(or_, bits, 0)


def _applied(lattice: Lattice, expr: Expr, inner: Coset) -> Coset:
    """The coset of a function of one variable."""
    if isinstance(expr, Pow):
        if expr.exponent.denominator != 1:
            return lattice.span(inner)
        return inner if expr.exponent % 2 else lattice.even(inner)
    assert isinstance(expr, Call)
    if expr.atom.name == HIDDEN:
        return ALL
    by_parity: dict[str, Callable[[Coset], Coset]] = {"odd": lambda c: c, "even": lattice.even}
    return by_parity.get(expr.atom.facts.parity, lattice.span)(inner)


def _factor(group: Family) -> list[list[bool]]:
    """Which independent Gaussians each member holds: the exact factor L D L^T of the covariance."""
    count = group.size
    if group.cov is None:
        return [[i == j for j in range(count)] for i in range(count)]
    if count > LARGEST:  # every direction that may occur
        return [[j <= i for j in range(count)] for i in range(count)]
    left = [[Fraction(entry) for entry in row] for row in group.cov]
    used = [[False] * count for _ in range(count)]
    for j in range(count):
        pivot = left[j][j]
        if pivot == 0:
            continue
        column = [left[i][j] / pivot for i in range(count)]
        for i in range(j, count):
            used[i][j] = column[i] != 0
            for k in range(j, count):
                left[i][k] -= column[i] * column[k] * pivot
    return used
