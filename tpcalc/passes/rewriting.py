"""Programs that are written anew, node by node, with some nodes in other words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tpcalc.program.base import renumbered
from tpcalc.program.nodes import Node, Ref
from tpcalc.program.program import Builder, Program

Rule = Callable[[Node, Ref], Ref]


@dataclass
class Rewriting:
    """A program while it is written anew.

    Example:
        >>> from tpcalc.program.nodes import Family, Input, MatMul
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> x, w = (builder.add(Input(Family(*one))) for one in (("x", ("n",)), ("W", ("n", "n"))))
        >>> builder.output("h", builder.add(MatMul(w, x)))
        >>> own = Rewriting(builder.finish(), Builder())
        >>> own.by(lambda node, ref: own.copied(node)).outputs
        {'h': 2}
    """

    program: Program  # the program as it was
    out: Builder  # the new one so far
    # what stands for its nodes there
    new: dict[Ref, Ref] = field(default_factory=dict, kw_only=True)

    def copied(self, node: Node) -> Ref:
        """A node as it was, of what stands for its operands."""
        return self.out.add(renumbered(node, self.new.__getitem__))

    def each(self, rule: Rule, refs: Iterable[Ref]) -> None:
        """Some nodes by a rule."""
        for ref in refs:
            self.out.line = self.program.line_of(ref)
            self.new[ref] = rule(self.program.nodes[ref], ref)
        self.out.line = None

    def by(self, rule: Rule) -> Builder:
        """All nodes by a rule, and the outputs."""
        self.each(rule, range(len(self.program.nodes)))
        for name, ref in self.program.outputs:
            self.out.output(name, self.new[ref])
        return self.out
