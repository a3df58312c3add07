"""``AtDepth``: a network whose depth is the symbol L, with a number of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tpcalc.dsl.blocks import Value
from tpcalc.dsl.handles import Scalar
from tpcalc.functions.roots import root
from tpcalc.networks.network import Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.orders import Ex
from tpcalc.passes.at_depth import at_depth
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, Node
from tpcalc.program.program import Program

__all__ = ["AtDepth"]


@dataclass(frozen=True, eq=False)
class AtDepth(Architecture):
    """A network with so many blocks, and learning rates with their powers of it.

    Args:
        network: The network, with a block that is repeated L times.
        depth: What L is.
        rates: For labels of parameters of the block the power of L of their learning rates.
        base: A number of blocks that counts as one: powers are of L / base.
    """

    network: Architecture
    depth: int
    rates: Mapping[str, Ex] = field(default_factory=dict)
    base: int = 1

    @property
    def words(self) -> str:
        """The network in a phrase."""
        return self.network.words.replace("L blocks", f"{self.depth} blocks")

    @property
    def heading(self) -> str:
        """The same for the heading of a page."""
        return self.network.heading.replace("L blocks", f"{self.depth} blocks")

    @property
    def axes(self) -> Mapping[str, int]:
        """The finite axes of one input."""
        return self.network.axes

    def forward(self, t: NetworkTracer, x: Scalar) -> Value | Sequence[Scalar]:
        """The outputs for one input, with L blocks.

        Args:
            t: Makes parameters.
            x: The input.
        """
        return self.network.forward(t, x)

    def finished(self, program: Program) -> Program:
        """The program with its blocks written out.

        Args:
            program: What the forward pass wrote.
        """
        rated: Table[Node] = Table({Input: self._rated}, lambda node: node)
        nodes = tuple(map(rated, self.network.finished(program).nodes))
        return at_depth(replace(program, nodes=nodes), self.depth, self.base)

    def _rated(self, node: Input) -> Node:
        mark = node.family.mark
        if mark is None or mark.label not in self.rates:
            return node
        power = self.rates[mark.label].constant
        assert power is not None
        factor = root(self.depth, power) / root(self.base, power)
        return Input(replace(node.family, mark=replace(mark, rate=mark.rate * factor)), node.cell)
