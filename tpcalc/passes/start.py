"""Weights that start at 0: put in once a program is differentiated, so that they have gradients."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from tpcalc.program.base import Table
from tpcalc.program.nodes import Data, Family, Input, LinComb, MatMul, Node
from tpcalc.program.program import Program, prune
from tpcalc.program.views import input_of

__all__ = ["started_at_zero"]

ZERO = Fraction(0)


def started_at_zero(program: Program, names: Collection[str]) -> Program:
    """The program with these matrices, groups of start vectors and scalars at 0.

    Args:
        program: A program; what it computes of their gradients stays.
        names: Their names.

    Example:
        >>> from tpcalc.program.program import Builder
        >>> builder = Builder()
        >>> x = builder.add(Input(Family.group("x", "n", (0,))))
        >>> w = builder.add(Input(Family("W", ("n", "n"))))
        >>> builder.output("h", builder.add(MatMul(w, x)))
        >>> started_at_zero(builder.finish(), {"W"}).nodes[-1]
        LinComb(numbers=(Fraction(0, 1),), scalars=(None,), vectors=(0,), over=())
    """
    if not names:
        return program
    nodes = tuple(_AT_ZERO(node, program, names) for node in program.nodes)
    return prune(Program(program.dims, nodes, program.outputs, program.where))


def _product(node: MatMul, program: Program, names: Collection[str]) -> Node:
    matrix = input_of(program.nodes[node.matrix])
    if matrix is None or matrix.name not in names:
        return node
    rows, cols = matrix.family.width[::-1] if node.transpose else matrix.family.width
    assert rows == cols, "only square matrices start at 0"
    return LinComb((ZERO,), (None,), (node.vector,))


def _zero(node: Input, program: Program, names: Collection[str]) -> Node:
    """A start vector without variance, or the number 0; a matrix is left to its products."""
    family = node.family
    if family.name not in names or len(family.width) == 2:
        return node
    if not family.width:
        whole = node.cell is None
        return Data(
            node.name, (ZERO,) * (family.size if whole else 1), family.axes if whole else ()
        )
    # Another name, so that a covariance that is put in for the group passes this one by.
    zeros = (ZERO,) * family.size
    name, cov = f"{family.name} at 0", (zeros,) * family.size
    return Input(Family(name, family.width, family.axes, mean=zeros, cov=cov), node.cell)


_AT_ZERO: Table[Node] = Table({MatMul: _product, Input: _zero}, lambda node, program, names: node)
