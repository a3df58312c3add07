"""The limit graph under construction, with what each node depends on at finite width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tpcalc.exponents import Ex
from tpcalc.exponents.coset import Lattice
from tpcalc.functions import Call, Fn, Par
from tpcalc.functions.expr import add, walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.limit.axes import NeedsCells, axes_of
from tpcalc.limit.degrees import Degree
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LNode,
    LRef,
    Noise,
    Number,
    OuterExpect,
    Product,
    Root,
    Rows,
    Start,
    Starts,
    Twice,
    family_of,
)
from tpcalc.limit.parity import Parity, union
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Input, Nonlin, Ref
from tpcalc.program.program import Program
from tpcalc.program.types import Axes

MEMBERS = 64  # of a block of start vectors that are looked at one by one


@dataclass
class Building:
    """The nodes of a graph under construction."""

    program: Program  # what it is derived from
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    axes: list[Axes] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)  # a bit for each random input
    random: list[bool] = field(default_factory=list)  # whether it hangs on a random scalar
    missing: list[str] = field(default_factory=list)  # why a node has no value, or ""
    sides: list[int] = field(default_factory=list)  # a bit for each side of a matrix below a node
    bits: dict[str, int] = field(default_factory=dict)
    known: dict[LNode, LRef] = field(default_factory=dict)
    anchors: dict[str, LRef] = field(default_factory=dict)  # some vector of each dimension
    families: set[str] = field(default_factory=set)  # of fluctuations
    turning: set[str] = field(default_factory=set)  # the matrices of an average under way
    degrees: list[Degree] = field(default_factory=list)  # of the first nodes
    read: dict[tuple[str, bool], Degree] = field(default_factory=dict)  # of what was multiplied
    parity: Parity = field(init=False)
    # Ratios of rows and columns of each Haar matrix.
    orthogonal: dict[str, tuple[Fraction, Fraction]] = field(init=False)

    def __post_init__(self) -> None:
        ratio = {dim.name: dim.ratio for dim in self.program.dims}
        self.orthogonal = {
            family.name: (ratio[family.width[0]], ratio[family.width[1]])
            for family in self.program.families.values()
            if family.law == "orthogonal"
        }
        self.parity = Parity(self.program.group, frozenset(self.orthogonal), Lattice())

    def add(self, node: LNode, dim: str | None) -> LRef:
        """The number of a node; equal nodes are one."""
        found = self.known.get(node)
        if found is not None:
            return found
        self.axes.append(axes_of(node, self.axes, self.program.families))
        self.nodes.append(node)
        self.dims.append(dim)
        if dim is not None:
            self.anchors.setdefault(dim, len(self.nodes) - 1)
            self.parity.add(len(self.nodes) - 1, node)
        refs, own = references(node), _OWN(node, self)
        self.roots.append(self._roots(own.roots, refs))
        self.random.append(own.drawn or any([self.random[other] for other in refs]))
        self.missing.append(self._missing(own.missing, refs))
        self.sides.append(self._sides(own.sides, refs))
        self.known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _missing(self, own: str, refs: tuple[LRef, ...]) -> str:
        """Why a node has no value: "hidden" (terms not kept decide), "noise", or "" if it has."""
        if own == "hidden":
            return own
        below = {self.missing[ref] for ref in refs}
        return "hidden" if "hidden" in below else own or ("noise" if "noise" in below else "")

    def _sides(self, own: int, refs: tuple[LRef, ...]) -> int:
        """The sides of matrices that a vector holds products of; a scalar holds none."""
        return own | union(self.sides[ref] for ref in refs if self.dims[ref] is not None)

    def side(self, matrix: str, transpose: bool) -> int:
        """The bit of a side of a matrix."""
        return self.bit(f"side {matrix} {transpose}")

    def both_sides(self, node: Product) -> int:
        """The bits of both sides of the matrix that a product uses."""
        return self.side(node.matrix, False) | self.side(node.matrix, True)

    def root(self, base: Root) -> int:
        """The bit of a start vector (one of correlated ones: of all of them), or of a matrix.

        Rows have none: what they fluctuate by is in their vectors.
        """
        return _ROOTS(base, self)

    def family(self, base: Root) -> str:
        """What all fluctuations share that are drawn together."""
        return family_of(base, self.program.group)

    def _roots(self, own: int, refs: tuple[LRef, ...]) -> int:
        """The random inputs that a node depends on, but for numbers that they only determine."""
        kept = (r for r in refs if self.dims[r] is not None or self.random[r] or self.missing[r])
        return own | union(self.roots[ref] for ref in kept)

    def members(self, node: LNode) -> tuple[Start, ...]:
        """A start vector, or those of a small block along one axis; () of any other node."""
        return _MEMBERS(node, self)

    def varies(self, start: Start) -> bool:
        """Whether a start vector has a variance."""
        cov = self.program.group[start.group].cov
        return cov is None or cov[start.index][start.index] != 0

    def single(self, dim: str) -> LRef:
        """Some vector of a dimension that is no block, for what is constant on its coordinates."""
        if not self.axes[self.anchors[dim]]:
            return self.anchors[dim]
        for group in self.program.groups:
            if group.dim == dim:  # of a block of start vectors a further one, which nothing reads
                return self.add(Start(group.name, 0), dim)
        raise NeedsCells(f"a constant on the coordinates of {dim}, which has no start vectors")

    def bit(self, root: str) -> int:
        """The bit of a random input."""
        return self.bits.setdefault(root, 1 << len(self.bits))

    def is_lawless(self, ref: LRef) -> bool:
        """Whether a node hangs on a number whose law is not known."""
        return self.missing[ref] == "noise"

    def is_loose(self, ref: LRef) -> bool:
        """Whether a node hangs on a random number, with a law or without."""
        return self.random[ref] or self.missing[ref] == "noise"

    def dim(self, ref: Ref) -> str:
        """The dimension class of a vector node of the program."""
        return self.program.types[ref].width[0]

    def at(self, power: Ex) -> Fraction | None:
        """The value of a power of a function that may hold symbols."""
        return power.constant

    def scalar_sum(self, items: Sequence[LRef]) -> LRef:
        """The node of a sum of scalars."""
        if len(items) == 1:
            return items[0]
        refs = list(dict.fromkeys(items))
        total = add(Par(refs.index(item)) for item in items)
        return self.scalar(Fn(total, 0, len(refs)), refs)

    def scalar(self, fn: Fn, scalars: Sequence[LRef]) -> LRef:
        """The node of a function of scalars."""
        return scalars[0] if fn.expr == Par(0) else self.add(Nonlin(fn, (), tuple(scalars)), None)

    def number(self, value: Fraction | float) -> LRef:
        return self.add(Number(value), None)


@lru_cache(maxsize=2**14)
def is_hidden(fn: Fn) -> bool:
    """Whether a function holds a value that is not followed."""
    return any(isinstance(part, Call) and part.atom.name == HIDDEN for part in walk(fn.expr))


class _Own(NamedTuple):
    """What a node itself brings, whatever it is made of."""

    roots: int = 0
    sides: int = 0
    drawn: bool = False
    missing: str = ""


_NOTHING, _HIDDEN, _NOISE = _Own(), _Own(roots=-1, missing="hidden"), _Own(missing="noise")


def _of_starts(node: Starts, building: Building) -> _Own:
    """The bit of a group, and those of its members where one may be a root by itself."""
    found = building.bit(f"start {node.group}")
    return _Own(found | union(map(building.root, building.members(node))))


def _of_product(node: Product, building: Building) -> _Own:
    return _Own(building.root(node.matrix), building.side(node.matrix, node.transpose))


def _of_function(node: Nonlin | Expect | OuterExpect, building: Building) -> _Own:
    return _HIDDEN if is_hidden(node.fn) else _NOTHING


def _of_fluctuation(node: Fluctuation, building: Building) -> _Own:
    building.families.add(building.family(node.root))
    return _Own(building.root(node.root), drawn=True)


def _of_block(node: Starts, building: Building) -> tuple[Start, ...]:
    group = building.program.group[node.group]
    if len(group.axes) != 1 or group.size > MEMBERS:
        return ()
    return tuple(Start(node.group, index) for index in range(group.size))


_MEMBERS: Table[tuple[Start, ...]] = Table(
    {Start: lambda node, building: (node,), Starts: _of_block}, lambda node, building: ()
)
_OWN: Table[_Own] = Table(
    {
        Start: lambda node, building: _Own(building.root(node)),
        Starts: _of_starts,
        Product: _of_product,
        Nonlin: _of_function,
        Expect: _of_function,
        OuterExpect: _of_function,
        Fluctuation: _of_fluctuation,
        Noise: lambda node, building: _HIDDEN if is_hidden(node.fn) else _NOISE,
        Input: lambda node, building: _Own(building.bit(f"scalar {node.name}"), drawn=True),
    },
    lambda node, building: _NOTHING,
)
_ROOTS: Table[int] = Table(
    {
        Start: lambda root, building: building.bit(building.family(root)),
        str: lambda root, building: building.bit(building.family(root)),
        Rows: lambda root, building: 0,
        Twice: lambda root, building: building.root(root.matrix),
    }
)
