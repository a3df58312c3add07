"""``started_along``: parameters whose start is correlated along the depth, written as sums.

Parameters W_l, one for each repetition of a block, start as sum_m F_lm U_m with independent U_m and
F F^T the correlation of the repetitions. The U_m are no parameters: what training adds to W_l is a
parameter that starts at 0. So gradients are those of the W_l, and the program is one of independent
matrices that are shared by the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tpcalc.engine.starts import factor
from tpcalc.program.along import Along, along_of
from tpcalc.program.base import Table, input_of, renumbered
from tpcalc.program.nodes import Input, LinComb, MatMul, Node, Ref
from tpcalc.program.program import Builder, Program

Weights = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class AlongDepth:
    """A parameter of a block that is repeated.

    Args:
        law: Its law along the depth at the start.
        names: What it is called in each repetition.
    """

    law: str
    names: tuple[str, ...]


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
    for ref, node in enumerate(program.nodes):
        made.out.line = program.line_of(ref)
        made.new[ref] = _RULES(node, made)
    for name, ref in program.outputs:
        made.out.output(name, made.new[ref])
    return made.out.finish(keep_unused=False)


@dataclass
class _Made:
    """A program while it is written anew."""

    program: Program
    out: Builder
    terms: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    new: dict[Ref, Ref] = field(default_factory=dict)

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


def _copy(node: Node, made: _Made) -> Ref:
    return made.out.add(renumbered(node, made.new.__getitem__))


_RULES: Table[Ref] = Table({Input: _input, MatMul: _matmul}, _copy)
