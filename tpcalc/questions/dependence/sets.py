"""Dependency sets: the Gaussians that each node of a limit graph is a function of.

A product What x is its hat, a Gaussian of its own, and a correction: a sum over the earlier
products What^T y that x depends on, with deterministic coefficients. Those that are 0 by symmetry
are left out, with the vectors y that they multiply.

A node with axes has a set for each of its cells; a node without has one cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.functions import Expr, Par, Var
from tpcalc.functions.expr import Add, Mul
from tpcalc.limit.axes import along, united
from tpcalc.limit.context import Context
from tpcalc.limit.corrections import Dot, correlated, dot_of
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
    product_of,
    rename_of,
    stack_of,
    start_of,
    the_product,
)
from tpcalc.program.base import Table, lincomb_of, references
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack
from tpcalc.program.types import Axes
from tpcalc.questions.dependence.gates import Gates, Opened, Openings, image_of

Bits = NDArray[Any]  # of ints, with the axes of a node
Cell = tuple[int, ...]
Home = tuple[LRef, Cell]  # a cell of a node
Weights = tuple[tuple[tuple[str, int], Fraction], ...]  # members of groups with their numbers


def united_bits(sets: Iterable[int] | Bits) -> int:
    """All of several sets."""
    bits = 0
    for one in sets.flat if isinstance(sets, np.ndarray) else sets:
        bits |= one
    return bits


@dataclass
class Sets:
    """Dependency sets of all nodes of a limit graph, as bits of Gaussians."""

    context: Context  # the graph
    gates: Gates  # which arguments of functions are felt; what is not is left out
    of: list[Bits] = field(default_factory=list)  # for each node the sets of its cells
    # for each product its correction: which of the earlier ones, whatever their cells
    dots: dict[LRef, Dot] = field(default_factory=dict)
    # for each Gaussian the cell of a node that it stands in
    homes: list[Home] = field(default_factory=list)
    # for those that are sums of start vectors, the numbers in front
    weights: dict[int, Weights] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scalars = 0
        self._numbers: dict[object, int] = {}
        self._none: frozenset[LRef] = frozenset()
        self._gone: frozenset[tuple[int, int]] = frozenset()
        self._shut: frozenset[tuple[LRef, Expr]] = frozenset()
        self._earlier: dict[tuple[str, bool], list[LRef]] = {}
        self._masks: dict[LRef, int] = {}  # of all cells of a product
        self._inner: dict[int, int] = {}  # of a hat the set of the vector
        self._rest: dict[LRef, Bits] = {}  # of sums of blocks what is no start vector
        self._openings = Openings(self.context)
        for ref, node in enumerate(tuple(self.context.nodes)):
            product = product_of(node)
            if product is not None:
                self._masks[ref] = united_bits(self._own(ref))
                self.dots[ref] = self._dot(product)
            self.of.append(self._find(ref))
            if product is not None:
                self._earlier.setdefault((product.matrix, product.transpose), []).append(ref)
            if self.context.dims[ref] is not None:
                self.gates.add(ref)

    def without(
        self,
        coefficients: Iterable[LRef],
        dots: Iterable[tuple[int, int]],
        terms: Iterable[tuple[LRef, Expr]],
    ) -> list[Bits]:
        """The sets if some coefficients and terms were 0."""
        kept, self.of, inner, rest = self.of, [], dict(self._inner), dict(self._rest)
        self._none, self._gone = frozenset(coefficients), frozenset(dots)
        self._shut = frozenset(terms)
        for ref in range(len(kept)):
            self.of.append(self._find(ref))
        found, self.of, self._inner, self._rest = self.of, kept, inner, rest
        self._none, self._gone, self._shut = frozenset(), frozenset(), frozenset()
        return found

    def names(self, bits: int) -> Iterator[int]:
        """The Gaussians of a set, in the order of the graph."""
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def random(self, bits: int) -> int:
        """The part of a set that is scalars."""
        return bits & self._scalars

    def whole(self, ref: LRef) -> int:
        """What the cells of a node depend on, all together."""
        return united_bits(self.of[ref])

    @cached_property
    def homed(self) -> dict[LRef, int]:
        """The Gaussians that stand in the cells of each node."""
        found: dict[LRef, int] = {}
        for number, (ref, _) in enumerate(self.homes):
            found[ref] = found.get(ref, 0) | 1 << number
        return found

    def at(self, ref: LRef, cell: Cell) -> int:
        """What a cell of a node depends on."""
        found: int = np.broadcast_to(self.of[ref], self._shape(ref))[cell]
        return found

    def hats(self, ref: LRef) -> dict[Cell, int]:
        """The Gaussians of the cells of a product."""
        zeros = self.context.zeros(ref)
        cells = np.ndindex(*self._shape(ref))
        return {cell: self._number(ref, cell) for cell in cells if zeros is None or not zeros[cell]}

    def below(self, hat: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Earlier hats in the correction of one: those that may count, and those that do not."""
        ref, cell = self.homes[hat]
        dot, felt = self.dots[ref], self._inner[hat] & self._same(ref, cell)
        return (
            tuple(self.names(felt & self._all_hats(dot.open))),
            tuple(self.names(felt & self._all_hats(dot.zero))),
        )

    def alike(self, hat: int) -> int:
        """The hats of the same matrix, and of others of which no block holds the matrix."""
        return self._same(*self.homes[hat])

    def argument(self, hat: int) -> Home:
        """The vector that a product multiplies."""
        ref, cell = self.homes[hat]
        return self.part(the_product(self.context.nodes[ref]).vector, ref, cell)

    def part(self, of: LRef, ref: LRef, cell: Cell) -> Home:
        """The cell of an operand that the cell of a node reads."""
        where = dict(zip(dict(self.context.axes[ref]), cell, strict=True))
        return of, tuple(where[name] for name, _ in self.context.axes[of])

    def start_part(self, home: Home) -> tuple[int | None, bool]:
        """The Gaussian that the start vectors in a sum make, and whether it is all of the sum."""
        ref, cell = home
        opened = self._openings.of(ref) if self.context.program.has_blocks else None
        if opened is None or len(found := opened.weights(cell)) < 2:
            return None, False
        return self._numbers[found], not np.broadcast_to(self._rest[ref], self._shape(ref))[cell]

    def correlated(self, a: LRef, b: LRef) -> bool:
        """Whether the vectors of two products may have E[Z Z'] different from 0."""
        return correlated(self.context.nodes, self.context.parity, a, b)

    def _shape(self, ref: LRef) -> Cell:
        return tuple(size for _, size in self.context.axes[ref])

    def _number(self, ref: LRef, cell: Cell, key: object = None) -> int:
        """The number of a Gaussian; equal keys are one."""
        number = self._numbers.setdefault((ref, cell) if key is None else key, len(self.homes))
        if number == len(self.homes):
            self.homes.append((ref, cell))
        return number

    def _randoms(self, bits: Bits) -> Bits:
        """The parts of sets that are scalars."""
        return np.asarray(bits & self._scalars, dtype=object)

    def _own(self, ref: LRef) -> Bits:
        """A Gaussian for every cell."""
        out = np.empty(self._shape(ref), dtype=object)
        for cell in np.ndindex(*out.shape):
            out[cell] = 1 << self._number(ref, cell)
        return out

    def _find(self, ref: LRef) -> Bits:
        found = np.asarray(_SETS(self.context.nodes[ref], ref, self), dtype=object)
        zeros = self.context.zeros(ref)
        if zeros is not None:
            found = np.asarray(np.where(zeros, 0, found), dtype=object)
        return found

    def _start(self, ref: LRef, node: Start | Starts, members: Sequence[int]) -> Bits:
        cov = self.context.program.group[node.group].cov
        found = np.empty(self._shape(ref), dtype=object)
        for cell, index in zip(np.ndindex(*found.shape), members, strict=True):
            key, fixed = (node.group, index), cov is not None and cov[index][index] == 0
            found[cell] = 0 if fixed else 1 << self._number(ref, cell, key)
            if not fixed:
                self.weights[self._numbers[key]] = ((key, Fraction(1)),)
        return found

    def _scalar(self, ref: LRef, node: Input | Fluctuation | Noise) -> Bits:
        own = self._own(ref)
        self._scalars |= united_bits(own)
        return np.asarray(own | self._randoms(self._all(references(node), ref)), dtype=object)

    def _product(self, ref: LRef, node: Product) -> Bits:
        found = self._own(ref)
        inner = np.broadcast_to(self._along(node.vector, self.context.axes[ref]), found.shape)
        mask, made = self._all_hats(self.dots[ref].open), dict[int, int]()
        for cell in np.ndindex(*found.shape):
            felt, hat = int(inner[cell]), self._number(ref, cell)
            self._inner[hat] = felt
            near = felt & mask & self._same(ref, cell) if mask else 0
            if near not in made or self._gone:
                earlier = (q for q in self.names(near) if (hat, q) not in self._gone)
                made[near] = united_bits(self._inner[q] for q in earlier)
            found[cell] |= made[near] | self.random(felt)
        return found

    def _all_hats(self, products: Iterable[LRef]) -> int:
        return united_bits(self._masks[q] for q in products)

    def _same(self, ref: LRef, cell: Cell) -> int:
        """The hats of the same matrix, where a product is of several."""
        node = the_product(self.context.nodes[ref])
        axes = self.context.program.families[node.matrix].axes
        if not axes:
            return -1
        names = [name for name, _ in self.context.axes[ref]]
        kept = [names.index(name) for name, _ in axes]
        own, found = [cell[place] for place in kept], 0
        for side in (node.transpose, not node.transpose):
            for q in (*self._earlier.get((node.matrix, side), ()), ref):
                other = [name for name, _ in self.context.axes[q]]
                places = [other.index(name) for name, _ in axes]
                for at in np.ndindex(*self._shape(q)):
                    if [at[place] for place in places] == own:
                        found |= 1 << self._number(q, at)
        return found

    def _sum(self, ref: LRef, node: LinComb | Total) -> Bits:
        if not self.context.program.has_blocks:
            if vectors := image_of(self.context, ref):
                starts = [start_of(self.context.nodes[v]) for v in vectors]
                members = [(one.group, one.index) for one in starts if one is not None]
                numbers = map(Fraction, lincomb_of(self.context.nodes[ref]).numbers)  # type: ignore[union-attr]
                self.weights[self._number(ref, ())] = tuple(zip(members, numbers, strict=True))
                return self._own(ref)
            pairs = zip(node.scalars, node.vectors, strict=True)
            kept = [(s, v) for s, v in pairs if s not in self._none]
            refs = [r for pair in kept for r in pair if r is not None]
            return self._all(refs, ref)
        opened = self._openings.of(ref)
        found = self._terms(ref, node, closed=opened is None)
        if opened is None:
            return found
        self._rest[ref] = found
        return self._with_starts(ref, opened)

    def _rest_of(self, ref: LRef) -> Bits:
        """What a sum depends on besides its start vectors."""
        if (renamed := rename_of(self.context.nodes[ref])) is not None:
            return self._rest_of(renamed.of)
        if (stack := stack_of(self.context.nodes[ref])) is not None:
            return self._stacked(ref, stack, [self._rest_of(one) for one in stack.of])
        nothing = np.zeros((1,) * len(self.context.axes[ref]), dtype=object)
        return self._rest.get(ref, nothing)

    def _with_starts(self, ref: LRef, opened: Opened) -> Bits:
        """A sum with the Gaussian that its start vectors make together."""
        found = np.array(np.broadcast_to(self._rest[ref], self._shape(ref)), dtype=object)
        for cell in np.ndindex(*found.shape):
            weights = opened.weights(cell)
            key: object = weights[0][0] if len(weights) == 1 else weights
            if weights:
                number = self._number(ref, cell, key)
                self.weights.setdefault(number, weights)
                found[cell] |= 1 << number
        return found

    def _terms(self, ref: LRef, node: LinComb | Total, closed: bool) -> Bits:
        """What the terms of a sum of blocks depend on, in the cells where they are not 0."""
        axes, context = self.context.axes, self.context
        total: Bits = np.zeros((1,) * len(axes[ref]), dtype=object)
        for _, scalar, vector, names in node.terms:
            if scalar is not None and scalar in self._none:
                continue
            refs = [one for one in (scalar, vector) if one is not None]
            every = united(axes[one] for one in refs)
            held = not closed and self._openings.is_known(scalar)
            held = held and self._openings.of(vector) is not None
            part = self._rest_of(vector) if held else self.of[vector]
            part = along(part, axes[vector], every)
            if scalar is not None:
                part = part | self._along(scalar, every)
            zeros = [(one, z) for one in refs if (z := context.zeros(one)) is not None]
            for one, zero in zeros:
                part = np.where(along(zero, axes[one], every), 0, part)
            part = np.asarray(part, dtype=object)
            for place in reversed(range(len(every))):
                if every[place][0] in names:
                    part = np.asarray(np.bitwise_or.reduce(part, axis=place), dtype=object)
            kept = tuple(pair for pair in every if pair[0] not in names)
            total = np.asarray(total | along(part, kept, axes[ref]), dtype=object)
        return total

    def _outer(self, ref: LRef, node: OuterExpect) -> Bits:
        every = united(self.context.axes[one] for one in references(node))
        found = self._refs((*node.rows, *node.scalars), every)
        found = found | self._randoms(self._refs((*node.cols, node.vector), every))
        found = np.asarray(found, dtype=object)
        for place in reversed(range(len(every))):
            if every[place][0] in node.over:
                found = np.asarray(np.bitwise_or.reduce(found, axis=place), dtype=object)
        kept = tuple(pair for pair in every if pair[0] not in node.over)
        return along(found, kept, self.context.axes[ref])

    def _average(self, ref: LRef, node: Expect) -> Bits:
        found = self._all(node.scalars, ref) | self._randoms(self._all(node.vectors, ref))
        return np.asarray(found, dtype=object)

    def _along(self, of: LRef, axes: Axes) -> Bits:
        return along(self.of[of], self.context.axes[of], axes)

    def _all(self, refs: Iterable[LRef], ref: LRef) -> Bits:
        return self._refs(refs, self.context.axes[ref])

    def _refs(self, refs: Iterable[LRef], axes: Axes) -> Bits:
        bits: Bits = np.zeros((1,) * len(axes), dtype=object)
        for one in refs:
            bits = np.asarray(bits | self._along(one, axes), dtype=object)
        return bits

    def _applied(self, ref: LRef, node: Nonlin) -> Bits:
        if not node.vectors:
            return self._all(node.scalars, ref)
        used: set[LRef] = set()
        node = self.gates.opened(node)
        for term in self.gates.felt(node):
            factors = term.factors if isinstance(term, Mul) else (term,)
            scalars = {node.scalars[f.index] for f in factors if isinstance(f, Par)}
            if (ref, term) not in self._shut and not scalars & self._none:
                used.update(self._read(term, node))
        return self._all(used, ref)

    def _read(self, expr: Expr, node: Nonlin) -> Iterator[LRef]:
        """The nodes that an expression reads; a sum of some by the node that it is."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if isinstance(part, Par):
                yield node.scalars[part.index]
            elif isinstance(part, Var):
                yield node.vectors[part.index]
            else:
                own = part.parts
                terms = [node.vectors[one.index] for one in own if isinstance(one, Var)]
                whole = self.summed(terms) if isinstance(part, Add) else None
                if whole is not None and whole < len(self.of) and len(terms) == len(own):
                    yield whole
                else:
                    stack += own

    def summed(self, vectors: Sequence[LRef]) -> LRef | None:
        """The node of a sum of blocks, which functions of it do not read."""
        if not self.context.program.has_blocks or len(vectors) < 2:
            return None
        ones, none = (Fraction(1),) * len(vectors), (None,) * len(vectors)
        return self.context.known.get(LinComb(ones, none, tuple(vectors)))

    def _stacked(self, ref: LRef, node: Stack, items: Sequence[Bits]) -> Bits:
        axes = self.context.axes[ref]
        below = tuple(pair for pair in axes if pair[0] != node.axis)
        shape = [size for _, size in below]
        place = [name for name, _ in axes].index(node.axis)
        pairs = zip(node.of, items, strict=True)
        cells = (along(own, self.context.axes[one], below) for one, own in pairs)
        return np.stack([np.broadcast_to(one, shape) for one in cells], place)

    def _dot(self, node: Product) -> Dot:
        """The earlier products of the other side that x depends on, by what symmetry says."""
        earlier = self._earlier.get((node.matrix, not node.transpose), [])
        felt, context = self.whole(node.vector), self.context
        depends = united_bits(1 << q for q in earlier if felt & self._masks[q])
        return dot_of(context.nodes, context.parity, node.vector, earlier, depends)


def _members(node: Starts, ref: LRef, sets: Sets) -> Bits:
    return sets._start(ref, node, range(sets.context.program.group[node.group].size))


_SETS: Table[Bits] = Table(
    {
        Start: lambda node, ref, sets: sets._start(ref, node, (node.index,)),
        Starts: _members,
        Input: lambda node, ref, sets: sets._scalar(ref, node),
        Fluctuation: lambda node, ref, sets: sets._scalar(ref, node),
        Noise: lambda node, ref, sets: sets._scalar(ref, node),
        Product: lambda node, ref, sets: sets._product(ref, node),
        Nonlin: lambda node, ref, sets: sets._applied(ref, node),
        LinComb: lambda node, ref, sets: sets._sum(ref, node),
        Total: lambda node, ref, sets: sets._sum(ref, node),
        OuterExpect: lambda node, ref, sets: sets._outer(ref, node),
        Expect: lambda node, ref, sets: sets._average(ref, node),
        Rename: lambda node, ref, sets: sets.of[node.of],
        Stack: lambda node, ref, sets: sets._stacked(ref, node, [sets.of[k] for k in node.of]),
        Number: lambda node, ref, sets: sets._all((), ref),
        Data: lambda node, ref, sets: sets._all((), ref),
    }
)
