"""Weights that start at 0: put in once a program is differentiated, so that they have gradients."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from tpcalc.passes.sums import padded
from tpcalc.program.base import Table, matmul_of, matrix_of, renumbered
from tpcalc.program.nodes import Data, Family, Input, LinComb, Node, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Type

ZERO = Fraction(0)


def started_at_zero(program: Program, names: Collection[str]) -> Program:
    """The program with these matrices, groups of start vectors and scalars at 0.

    Example:
        >>> from tpcalc.program.nodes import MatMul
        >>> builder = Builder()
        >>> x = builder.add(Input(Family.group("x", "n", (0,))))
        >>> w = builder.add(Input(Family("W", ("n", "n"))))
        >>> builder.output("h", builder.add(MatMul(w, x)))
        >>> started_at_zero(builder.finish(), {"W"}).nodes[-1]
        LinComb(numbers=(Fraction(0, 1),), scalars=(None,), vectors=(0,), over=())
    """
    if not names:
        return program
    out, made = Builder(program.dims), list[Ref]()
    for ref, node in enumerate(program.nodes):
        out.line = program.line_of(ref)
        new = renumbered(_zero(node, names), made.__getitem__)
        product = matmul_of(node)
        if product is not None and matrix_of(program.nodes, product).name in names:
            new = _product(out, program.types[ref], made[product.vector])
        made.append(out.add(new))
    for name, ref in program.outputs:
        out.output(name, made[ref])
    return out.finish(keep_unused=False)


def _product(out: Builder, type_: Type, x: Ref) -> Node:
    """0 in place of a matrix times x."""
    if out.type(x).width != type_.width:
        none = Family(f"0 on {type_.width[0]}", type_.width, mean=(ZERO,), cov=((ZERO,),))
        x = out.add(Input(none))
    return LinComb((ZERO,), (None,), (padded(out, x, type_.axes),))


def _at_zero(node: Input, names: Collection[str]) -> Node:
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


_zero: Table[Node] = Table({Input: _at_zero}, lambda node, names: node)
