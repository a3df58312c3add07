"""The limit graph under construction, with what each node depends on at finite width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import count

from tpcalc.functions import Call, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.limit.expand import Explosion
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
    Start,
    graph_refs,
)
from tpcalc.limit.parity import Parity
from tpcalc.limit.series import Ranking, Rest, Series
from tpcalc.orders import Ex
from tpcalc.orders.chamber import Power
from tpcalc.orders.coset import Lattice
from tpcalc.program.nodes import Ref
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


@dataclass
class Context:
    """The graph under construction."""

    program: Program
    ranking: Ranking
    values: dict[str, Ex | Fraction]
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)  # a bit for each random input
    missing: list[str] = field(default_factory=list)  # why a node has no value, or ""
    bits: dict[str, int] = field(default_factory=dict)
    known: dict[LNode, LRef] = field(default_factory=dict)
    smooth: list[bool] = field(default_factory=list)  # whether the law has a density
    anchors: dict[str, LRef] = field(default_factory=dict)  # some vector of each dimension
    templates: dict[object, Template] = field(default_factory=dict)
    shapes: dict[object, int] = field(default_factory=dict)
    exploded: list[Explosion] = field(default_factory=list)
    fresh: Iterator[int] = field(default_factory=count)
    parity: Parity = field(init=False)

    def __post_init__(self) -> None:
        # Cosets of long training runs are large, and their zeros are rarely asked for.
        largest = 128 if len(self.program.nodes) < 10_000 else 16
        self.parity = Parity(self.program.group, Lattice(largest))

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
        self.smooth.append(self._has_density(node))
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

    def _has_density(self, node: LNode) -> bool:
        """Whether no positive part of the coordinates takes one value.

        Gaussians have a density, and so have functions without kinks of them; a sum inherits it
        from a term, unless it may cancel it (``x - relu(x)``); that a sum of other dependent terms
        does not cancel is assumed, not proved. What is not known counts as no.
        """
        if isinstance(node, Start):
            cov = self.program.group[node.group].cov
            return cov is None or cov[node.index][node.index] != 0
        if isinstance(node, Product):
            return True
        if isinstance(node, Apply):
            moves = any(isinstance(part, Var) for part in walk(node.fn.expr))
            return moves and not _kinked(node.fn) and all(self.smooth[v] for v in node.vectors)
        if isinstance(node, Combine):
            return any(self.smooth[v] and not self._cancelled(v, node) for v in node.vectors)
        return False

    def _cancelled(self, vector: LRef, total: Combine) -> bool:
        """Whether a sum holds a kinked function of one of its terms alone."""
        for other in total.vectors:
            node = self.nodes[other]
            if isinstance(node, Apply) and set(node.vectors) == {vector} and _kinked(node.fn):
                return True
        return False

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

    def number(self, value: Fraction | float) -> LRef:
        return self.add(Number(value), None)


@lru_cache(maxsize=2**14)
def is_hidden(fn: Fn) -> bool:
    """Whether a function holds a value that is not followed."""
    return any(isinstance(part, Call) and part.atom.name == HIDDEN for part in walk(fn.expr))


def _kinked(fn: Fn) -> bool:
    return any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(fn.expr))


def start_root(program: Program, group: str, index: int) -> str:
    """Members of a group with a covariance count as one random input."""
    return f"start {group}" if program.group[group].cov is not None else f"start {group} {index}"
