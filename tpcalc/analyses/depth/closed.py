"""Whether the mean square of the stream is all that a block at the start sees of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tpcalc.networks.network import is_sum
from tpcalc.passes.block import CARRY
from tpcalc.program.base import references
from tpcalc.program.nodes import Kind, Moment, Node, Ref
from tpcalc.program.program import Program
from tpcalc.program.views import applied_of, input_of, matmul_of, moment_of

__all__ = ["Closed", "closed"]


@dataclass(frozen=True)
class Closed:
    """Whether the mean square of what enters a block tells that of what leaves it.

    Args:
        unknown: Why it does not; "" where it does.
        gaussian: Whether the stream stays Gaussian with mean 0.
    """

    unknown: str
    gaussian: bool


def closed(body: Program) -> Closed:
    """Where the stream is a sum of itself and products with fresh matrices, or read by these alone.

    Args:
        body: A repetition of the block.
    """
    seen = _Seen(body)
    for ref, node in enumerate(body.nodes):
        seen.take(ref, node)
    gaussian = body.ref("next") in seen.gaussian
    return Closed(seen.matrices or ("" if gaussian else seen.entrywise), gaussian)


@dataclass
class _Seen:
    """Which vectors of a block are jointly Gaussian, and which hold entries of the stream."""

    body: Program
    gaussian: set[Ref] = field(default_factory=set)
    held: set[Ref] = field(default_factory=set)
    applied: set[Ref] = field(default_factory=set)
    matrices: str = ""
    entrywise: str = ""

    def take(self, ref: Ref, node: Node) -> None:
        body = self.body
        if body.types[ref].kind is not Kind.VECTOR:
            average = moment_of(node)
            read = average is not None and self.held.intersection(average.vectors)
            if average is not None and read and not _is_square(average):
                self.entrywise = self.entrywise or f"an average at {body.place(ref)} is no square"
            return
        product, drawn, function = matmul_of(node), input_of(node), applied_of(node)
        parts = [one for one in references(node) if body.types[one].kind is Kind.VECTOR]
        if drawn is not None:
            self.gaussian.add(ref)
            if drawn.name == CARRY:
                self.held.add(ref)
        elif product is not None:
            self.gaussian.add(ref)
            if product.matrix in self.applied or product.transpose:
                self.matrices = "a block applies one matrix twice"
            self.applied.add(product.matrix)
        elif function is None or is_sum(function.fn):
            if self.gaussian.issuperset(parts):
                self.gaussian.add(ref)
            if self.held.intersection(parts):
                self.held.add(ref)
        elif self.held.intersection(parts):
            self.held.add(ref)
            self.entrywise = self.entrywise or (
                f"a block applies a function to the entries of the stream at {body.place(ref)}"
            )


def _is_square(node: Moment) -> bool:
    """Whether an average is one of products of two vectors, or of one."""
    return all(is_sum(node.fn.by(index)) for index in range(node.fn.vectors))
