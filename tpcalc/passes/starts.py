"""Programs with other starts of parameters: at 0, or correlated along the depth.

Parameters W_l, one for each repetition of a block, start as sum_m F_lm U_m with independent U_m and
F F^T the correlation of the repetitions. The U_m are no parameters: what training adds to W_l is a
parameter that starts at 0. So gradients are those of the W_l, and the program is one of independent
matrices that are shared by the blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tpcalc.engine.starts import factor
from tpcalc.passes.rewriting import Rewriting
from tpcalc.passes.sums import padded
from tpcalc.program.along import Along, along_of
from tpcalc.program.base import Table, input_of, matmul_of, matrix_of
from tpcalc.program.nodes import Data, Family, Input, LinComb, MatMul, Node, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Type

ZERO = Fraction(0)


def zero_starts(program: Program) -> frozenset[str]:
    """The names of the parameters that start at 0, and those of their cells."""
    still = [one for one in program.families.values() if one.mark and one.mark.at_zero]
    cells = (one.part(index).name for one in still for index in range(one.size) if one.axes)
    return frozenset((*(one.name for one in still), *cells))


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
    made = Rewriting(program, Builder(program.dims))

    def started(node: Node, ref: Ref) -> Ref:
        product = matmul_of(node)
        if product is not None and matrix_of(program.nodes, product).name in names:
            return _product(made.out, program.types[ref], made.new[product.vector])
        return made.copied(_zero(node, names))

    return made.by(started).finish(keep_unused=False)


def _product(out: Builder, type_: Type, x: Ref) -> Ref:
    """0 in place of a matrix times x."""
    if out.type(x).width != type_.width:
        none = Family(f"0 on {type_.width[0]}", type_.width, mean=(ZERO,), cov=((ZERO,),))
        x = out.add(Input(none))
    return out.add(LinComb((ZERO,), (None,), (padded(out, x, type_.axes),)))


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


Weights = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class AlongDepth:
    """A parameter of a block that is repeated."""

    law: str  # its law along the depth at the start
    names: tuple[str, ...]  # what it is called in each repetition


def factor_along(law: Along, count: int, name: str) -> Weights:
    """A factor F of the correlation F F^T of so many repetitions."""
    law.check(count)
    row = law.autocovariance(count)
    return factor(
        row[abs(np.subtract.outer(range(count), range(count)))], f"{name} along the depth"
    )


def started_along(program: Program, lines: Iterable[AlongDepth]) -> Program:
    """The program with sums of independent draws in front of parameters that start at 0.

    Example:
        >>> from tpcalc.program.nodes import Family
        >>> builder = Builder()
        >>> x = builder.add(Input(Family("x", ("n",))))
        >>> for l in (1, 2):
        ...     w = builder.add(Input(Family(f"W.{l}", ("n", "n"))))
        ...     builder.output(f"h[{l}]", builder.add(MatMul(w, x)))
        >>> found = started_along(builder.finish(), [AlongDepth("fgn(3/4)", ("W.1", "W.2"))])
        >>> sorted(found.families)
        ['W.1', 'W.1 drawn', 'W.2', 'W.2 drawn', 'x']
    """
    made = _Made(program, Builder(program.dims))
    for line in lines:
        weights = factor_along(along_of(line.law), len(line.names), line.names[0])
        for name, row in zip(line.names, weights, strict=True):
            made.terms[name] = [(f, of) for f, of in zip(row, line.names, strict=False) if f]
    if not made.terms:
        return program
    return made.by(lambda node, ref: _RULES(node, made)).finish(keep_unused=False)


@dataclass
class _Made(Rewriting):
    terms: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def drawn(self, node: Input) -> Mapping[Ref, float]:
        """The independent draws that a parameter starts as, with their numbers."""
        families = (
            (f, replace(node.family, name=f"{of} drawn", mark=None))
            for f, of in self.terms[node.name]
        )
        return {self.out.add(Input(family, node.cell)): f for f, family in families}

    def total(self, terms: Mapping[Ref, float], last: Ref) -> Ref:
        """Draws with their numbers, and what training adds."""
        refs = (*terms, last)
        return self.out.add(LinComb((*terms.values(), 1), (None,) * len(refs), refs))


def _input(node: Input, made: _Made) -> Ref:
    own = made.out.add(node)
    if node.name not in made.terms or len(node.family.width) == 2:
        return own
    return made.total(made.drawn(node), own)


def _matmul(node: MatMul, made: _Made) -> Ref:
    matrix, x = input_of(made.program.nodes[node.matrix]), made.new[node.vector]
    own = made.out.add(MatMul(made.new[node.matrix], x, node.transpose))
    if matrix is None or matrix.name not in made.terms:
        return own
    parts = {
        made.out.add(MatMul(draw, x, node.transpose)): number
        for draw, number in made.drawn(matrix).items()
    }
    return made.total(parts, own)


_RULES: Table[Ref] = Table({Input: _input, MatMul: _matmul}, lambda node, made: made.copied(node))
