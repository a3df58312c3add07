"""Images: sums of start vectors with given numbers, and which vectors depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tpcalc.limit.building import Building
from tpcalc.limit.graph import LRef, Start
from tpcalc.limit.ranks import Weights, rank, root
from tpcalc.limit.views import start_of, the_start
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import LinComb
from tpcalc.program.views import lincomb_of

__all__ = ["Images"]


@dataclass
class Images:
    """The sums of start vectors in a graph under construction.

    Args:
        context: The graph.
    """

    context: Building
    _below: list[frozenset[LRef]] = field(default_factory=list)
    _known: dict[LRef, bool] = field(default_factory=dict)
    _coordinates: dict[LRef, Weights] = field(default_factory=dict)
    _ranks: dict[tuple[LRef, ...], int] = field(default_factory=dict)

    def is_one(self, ref: LRef) -> bool:
        """Whether a vector is a start vector or a sum of some with given numbers."""
        found = self._known.get(ref)
        if found is None:
            found = self._known[ref] = _OF_STARTS(self.context.nodes[ref], self.context)
        return found

    def is_sum(self, ref: LRef) -> bool:
        """Whether it is such a sum."""
        return self.is_one(ref) and lincomb_of(self.context.nodes[ref]) is not None

    def varies(self, image: LRef) -> bool:
        """Whether an image is not the same on all coordinates."""
        return bool(self._rank([image]))

    def below(self, ref: LRef) -> frozenset[LRef]:
        """The images that a vector is made of."""
        nodes, dims = self.context.nodes, self.context.dims
        for here in range(len(self._below), ref + 1):
            if dims[here] is None:  # most nodes of a long run are scalars
                self._below.append(frozenset())
            elif self.is_one(here):
                self._below.append(frozenset({here}))
            else:
                vectors = [v for v in references(nodes[here]) if dims[v] is not None]
                self._below.append(frozenset().union(*(self._below[v] for v in vectors)))
        return self._below[ref]

    def is_new(self, image: LRef, others: Sequence[LRef]) -> bool:
        """Whether an image is no sum of those that other vectors depend on."""
        if any(self.context.parity.depends[other] == -1 for other in others):
            return False
        used = sorted(frozenset().union(*map(self.below, others)))
        return self._rank([*used, image]) > self._rank(used)

    def _rank(self, images: Sequence[LRef]) -> int:
        """How many of some images are independent."""
        key = tuple(images)
        if key not in self._ranks:
            self._ranks[key] = rank([self._weights(ref) for ref in images])
        return self._ranks[key]

    def _weights(self, ref: LRef) -> Weights:
        """An image in independent coordinates."""
        if ref in self._coordinates:
            return self._coordinates[ref]
        out = self._coordinates[ref] = {}
        for start, number in _STARTS(self.context.nodes[ref], self.context):
            cov = self.context.program.group[start.group].cov
            row = [(start.index, 1.0)] if cov is None else enumerate(root(cov)[start.index])
            for index, weight in row:
                place = (start.group, index)
                out[place] = out.get(place, 0.0) + number * float(weight)
        return out


def _sums_starts(node: LinComb, context: Building) -> bool:
    return all(scalar is None for scalar in node.scalars) and all(
        start_of(context.nodes[vector]) is not None for vector in node.vectors
    )


_OF_STARTS: Table[bool] = Table(
    {Start: lambda node, context: True, LinComb: _sums_starts},
    lambda node, context: False,
)


def _summed_starts(node: LinComb, context: Building) -> list[tuple[Start, float]]:
    pairs = zip(node.vectors, node.numbers, strict=True)
    return [(the_start(context.nodes[vector]), float(number)) for vector, number in pairs]


_STARTS: Table[list[tuple[Start, float]]] = Table(
    {Start: lambda node, context: [(node, 1.0)], LinComb: _summed_starts}
)
