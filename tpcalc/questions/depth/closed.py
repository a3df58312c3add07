"""Whether the mean square of the stream is all that a block at the start sees of it."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.networks.network import is_sum
from tpcalc.passes.block import CARRY
from tpcalc.program.base import applied_of, input_of, matmul_of, moment_of, references
from tpcalc.program.nodes import Kind, Moment, Ref
from tpcalc.program.program import Program


@dataclass(frozen=True)
class Closed:
    """Whether the mean square of what enters a block tells that of what leaves it."""

    unknown: str  # why it does not; "" where it does
    gaussian: bool  # whether the stream stays Gaussian with mean 0


def closed(body: Program) -> Closed:
    """Where the stream is a sum of itself and products with fresh matrices, or read by them."""
    # Vectors that are jointly Gaussian, vectors that hold entries of the stream, matrices in use.
    gaussian, held, applied = set[Ref](), set[Ref](), set[Ref]()
    matrices, entrywise = "", list[str]()
    for ref, node in enumerate(body.nodes):
        if body.types[ref].kind is not Kind.VECTOR:
            average = moment_of(node)
            if average is not None and held & {*average.vectors} and not _is_square(average):
                entrywise.append(f"an average at {body.place(ref)} is no square")
            continue
        product, drawn, function = matmul_of(node), input_of(node), applied_of(node)
        parts = {one for one in references(node) if body.types[one].kind is Kind.VECTOR}
        if drawn is not None:
            gaussian.add(ref)
            if drawn.name == CARRY:
                held.add(ref)
        elif product is not None:
            gaussian.add(ref)
            if product.matrix in applied or product.transpose:
                matrices = "a block applies one matrix twice"
            applied.add(product.matrix)
        else:
            linear = function is None or is_sum(function.fn)
            if linear and parts <= gaussian:
                gaussian.add(ref)
            if held & parts:
                held.add(ref)
                if not linear:
                    place = body.place(ref)
                    words = f"a block applies a function to the entries of the stream at {place}"
                    entrywise.append(words)
    is_gaussian = body.ref("next") in gaussian
    return Closed(matrices or ("" if is_gaussian else "".join(entrywise[:1])), is_gaussian)


def _is_square(node: Moment) -> bool:
    """Whether an average is one of products of two vectors, or of one."""
    return all(is_sum(node.fn.by(index)) for index in range(node.fn.vectors))
