"""``curvature``: the pairs of maps in whose updates a block is not linear."""

from __future__ import annotations

from itertools import product

from tpcalc.errors import NotDifferentiable
from tpcalc.passes.template import Template
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Moment, Nonlin, OuterNonlin
from tpcalc.program.views import matmul_of

Pair = tuple[str, str]
Places = tuple[int, int]


def curvature(block: Template) -> frozenset[Pair]:
    """The pairs of maps, by their labels, in whose updates a block has a second derivative.

    A map that reads what another writes is multiplied by it; besides only functions whose slopes
    depend on what they read have one.
    """
    reads: list[frozenset[str]] = []  # for each node the maps that it depends on
    found: list[frozenset[Pair]] = []
    for node in block.program.nodes:
        below = references(node)
        maps = frozenset[str]().union(*(reads[ref] for ref in below))
        pairs = frozenset[Pair]().union(*(found[ref] for ref in below))
        times = matmul_of(node)
        if times is not None and times.matrix in block.parameters:
            label = block.parameters[times.matrix].label
            pairs |= {(label, other) for other in maps}
            maps |= {label}
        for i, j in _CURVED(node):
            pairs |= set(product(reads[below[i]], reads[below[j]]))
        reads.append(maps)
        found.append(pairs)
    return found[block.outputs[0]]


def _entrywise(node: Nonlin | Moment) -> list[Places]:
    """The pairs of arguments of which the slope by one depends on the other."""
    fn, found = node.fn, list[Places]()
    for i in range(fn.vectors + fn.scalars):
        try:
            slope = fn.by(i) if i < fn.vectors else fn.by_scalar(i - fn.vectors)
        except NotDifferentiable:
            slope = fn
        vectors, scalars = slope.uses
        found += [(i, j) for j in (*vectors, *(fn.vectors + s for s in scalars))]
    return found


def _all(node: OuterNonlin) -> list[Places]:
    places = range(len(references(node)))
    return [(i, j) for i in places for j in places]


_CURVED: Table[list[Places]] = Table(
    {Nonlin: _entrywise, Moment: _entrywise, OuterNonlin: _all}, lambda node: []
)
