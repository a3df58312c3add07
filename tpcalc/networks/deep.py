"""``AtDepth``: a network whose depth is the symbol L, with a number of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from tpcalc.exponents import Ex
from tpcalc.functions.numbers import root
from tpcalc.networks.network import Architecture, Rewritten
from tpcalc.passes.at_depth import at_depth, numbered
from tpcalc.passes.starts import AlongDepth
from tpcalc.program.along import FRESH, along_of
from tpcalc.program.base import Table
from tpcalc.program.family import Family
from tpcalc.program.nodes import Input, Node
from tpcalc.program.program import Program


@dataclass(frozen=True, eq=False)
class AtDepth(Rewritten):
    """A network with so many blocks, and learning rates with their powers of it."""

    network: Architecture  # the network, with a block that is repeated L times
    depth: int  # what L is
    # for labels of parameters of the block the power of L of their learning rates
    rates: Mapping[str, Ex] = field(default_factory=dict)
    base: int = 1  # a number of blocks that counts as one: powers are of L / base

    @property
    def words(self) -> str:
        """The network in a phrase."""
        return self.network.words.replace("L blocks", f"{self.depth} blocks")

    @property
    def heading(self) -> str:
        """The same for the heading of a page."""
        return self.network.heading.replace("L blocks", f"{self.depth} blocks")

    def finished(self, program: Program) -> Program:
        """The program with its blocks written out."""
        rated = self.rewritten(program, Table({Input: self._rated}, lambda node: node))
        return at_depth(rated, self.depth, self.base)

    @cached_property
    def along_depth(self) -> tuple[AlongDepth, ...]:
        """Its parameters that are correlated along the depth at the start."""
        blocks = range(1, self.depth + 1)
        return tuple(
            AlongDepth(one.along, tuple(numbered(one.name, k) for k in blocks))
            for one in self.network.smallest.families.values()
            if _is_correlated(one) and one.mark is not None and not one.mark.at_zero
        )

    def _rated(self, node: Input) -> Node:
        mark = node.family.mark
        if mark is None or mark.label not in self.rates:
            return node
        power = self.rates[mark.label].constant
        assert power is not None
        mark = replace(mark, rate=mark.rate * root(self.depth, power) / root(self.base, power))
        family = replace(node.family, mark=mark)
        if _is_correlated(family):  # how these start is written in front of them: ``along_depth``
            family = replace(family, along=FRESH, mark=replace(mark, start=Fraction(0)))
        return Input(family, node.cell)


def _is_correlated(family: Family) -> bool:
    """Whether a parameter depends on itself along the depth at the start."""
    return family.mark is not None and bool(family.along) and not along_of(family.along).fresh
