"""Weights that start at 0: put in once a program is differentiated, so that they have gradients."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from tpcalc.program.nodes import (
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Node,
)
from tpcalc.program.program import Program, prune

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
        >>> builder.group(Group("x", "n", (0,)))
        >>> x, w = builder.add(InputVector("x", 0)), builder.add(InputMatrix("W", "n", "n"))
        >>> builder.output("h", builder.add(MatMul(w, x)))
        >>> started_at_zero(builder.finish(), {"W"}).nodes[-1]
        LinComb(numbers=(Fraction(0, 1),), scalars=(None,), vectors=(0,))
    """
    if not names:
        return program
    groups = tuple(_zero(group) if group.name in names else group for group in program.groups)
    nodes: list[Node] = []
    for node in program.nodes:
        if isinstance(node, MatMul):
            matrix = program.nodes[node.matrix]
            if isinstance(matrix, InputMatrix) and matrix.name in names:
                other = program.types[node.vector].dims
                mine = matrix.rows if not node.transpose else matrix.cols
                assert other == (mine,), "only square matrices start at 0"
                node = LinComb((ZERO,), (None,), (node.vector,))
        elif isinstance(node, InputVector) and node.group in names:
            node = replace(node, group=_name(node.group))
        elif isinstance(node, InputScalar) and node.name in names:
            node = replace(node, value=ZERO, std=ZERO)
        nodes.append(node)
    return prune(Program(program.dims, groups, tuple(nodes), program.outputs, program.where))


def _zero(group: Group) -> Group:
    zeros = (ZERO,) * len(group.mean)
    return Group(_name(group.name), group.dim, zeros, (zeros,) * len(zeros))


def _name(group: str) -> str:
    """Another name, so that a covariance that is put in for the group passes this one by."""
    return f"{group} at 0"
