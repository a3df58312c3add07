"""The limit graph under construction, with what each node depends on at finite width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from tpcalc.functions import Call, Fn, Par
from tpcalc.functions.expr import add, walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.limit.graph import (
    Apply,
    Draw,
    Expect,
    Fluctuation,
    LNode,
    LRef,
    Noise,
    Number,
    Product,
    Root,
    Rows,
    ScalarApply,
    Start,
    Twice,
    family_of,
)
from tpcalc.limit.parity import Parity
from tpcalc.limit.views import product_of
from tpcalc.orders.coset import Lattice
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Ref
from tpcalc.program.program import Program

__all__ = ["Building", "is_hidden"]


@dataclass
class Building:
    """The nodes of a graph under construction.

    Args:
        program: What it is derived from.
    """

    program: Program
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)  # a bit for each random input
    random: list[bool] = field(default_factory=list)  # whether it hangs on a random scalar
    missing: list[str] = field(default_factory=list)  # why a node has no value, or ""
    sides: list[int] = field(default_factory=list)  # a bit for each side of a matrix below a node
    bits: dict[str, int] = field(default_factory=dict)
    known: dict[LNode, LRef] = field(default_factory=dict)
    anchors: dict[str, LRef] = field(default_factory=dict)  # some vector of each dimension
    families: set[str] = field(default_factory=set)  # of fluctuations
    turning: set[str] = field(default_factory=set)  # the matrices of an average under way
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
        self.nodes.append(node)
        self.dims.append(dim)
        if dim is not None:
            self.anchors.setdefault(dim, len(self.nodes) - 1)
            self.parity.add(len(self.nodes) - 1, node)
        refs = references(node)
        self.roots.append(self._roots(node, refs))
        self.random.append(_SPREADS(node) or any([self.random[other] for other in refs]))
        self.missing.append(self._missing(node, refs))
        self.sides.append(self._sides(node, refs))
        self.known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _missing(self, node: LNode, refs: tuple[LRef, ...]) -> str:
        """Why a node has no value: "hidden" (terms not kept decide), "noise", or "" if it has."""
        own = _LACKS(node)
        if own == "hidden":
            return own
        below = {self.missing[ref] for ref in refs}
        return "hidden" if "hidden" in below else own or ("noise" if "noise" in below else "")

    def _sides(self, node: LNode, refs: tuple[LRef, ...]) -> int:
        """The sides of matrices that a vector holds products of; a scalar holds none."""
        out = 0
        for ref in refs:
            if self.dims[ref] is not None:
                out |= self.sides[ref]
        product = product_of(node)
        return out if product is None else out | self.side(product.matrix, product.transpose)

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

    def _roots(self, node: LNode, refs: tuple[LRef, ...]) -> int:
        """The random inputs that a node depends on, but for numbers that they only determine."""
        out = 0
        for ref in refs:
            if self.dims[ref] is not None or self.random[ref] or self.missing[ref]:
                out |= self.roots[ref]
        return out | _OWN(node, self)

    def _fluctuation(self, node: Fluctuation) -> int:
        self.families.add(self.family(node.root))
        return self.root(node.root)

    def varies(self, start: Start) -> bool:
        """Whether a start vector has a variance."""
        cov = self.program.group[start.group].cov
        return cov is None or cov[start.index][start.index] != 0

    def bit(self, root: str) -> int:
        """The bit of a random input."""
        return self.bits.setdefault(root, 1 << len(self.bits))

    def is_lawless(self, ref: LRef) -> bool:
        """Whether a node hangs on a number whose law is not known."""
        return self.missing[ref] == "noise"

    def is_loose(self, ref: LRef) -> bool:
        """Whether a node hangs on a random number, with a law or without."""
        return self.random[ref] or self.is_lawless(ref)

    def dim(self, ref: Ref) -> str:
        """The dimension class of a vector node of the program."""
        return self.program.types[ref].width[0]

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


def _of_function(node: Apply | Expect) -> str:
    return "hidden" if is_hidden(node.fn) else ""


def _of_hidden(node: Apply | Expect | Noise, building: Building) -> int:
    return -1 if is_hidden(node.fn) else 0


# Why a node itself has no value, whatever it is made of.
_LACKS: Table[str] = Table(
    {
        Apply: _of_function,
        Expect: _of_function,
        Noise: lambda node: "hidden" if is_hidden(node.fn) else "noise",
    },
    lambda node: "",
)
# Whether a node is a random scalar.
_SPREADS: Table[bool] = Table(
    {Fluctuation: lambda node: True, Draw: lambda node: node.std != 0}, lambda node: False
)
_ROOTS: Table[int] = Table(
    {
        Rows: lambda root, building: 0,
        Twice: lambda root, building: building.root(root.matrix),
    },
    lambda root, building: building.bit(building.family(root)),
)
# The random inputs that a node itself brings.
_OWN: Table[int] = Table(
    {
        **dict.fromkeys((Apply, Expect, Noise), _of_hidden),
        Start: lambda node, building: building.root(node),
        Fluctuation: lambda node, building: building._fluctuation(node),
        Product: lambda node, building: building.root(node.matrix),
        Draw: lambda node, building: building.bit(f"scalar {node.name}"),
    },
    lambda node, building: 0,
)
