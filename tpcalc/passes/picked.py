"""Single cells of blocks as nodes of their own, in a program that keeps its blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from tpcalc.names import cell_name
from tpcalc.program.nodes import Data, LinComb
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes, Ref


def one_hot(out: Builder, axes: Axes, cell: Sequence[int]) -> Ref:
    """A block that is 1 in one cell, and 0 elsewhere."""
    cells = product(*(range(size) for _, size in axes))
    text = ",".join(f"{name}={k}:{size}" for (name, size), k in zip(axes, cell, strict=True))
    own = tuple(cell)
    return out.add(Data(f"at({text})", tuple(Fraction(int(own == other)) for other in cells), axes))


def picked(out: Builder, ref: Ref, axes: Axes, cell: Sequence[int]) -> Ref:
    """A cell of a node, as a node."""
    if not axes:
        return ref
    names = tuple(name for name, _ in axes)
    return out.add(LinComb((Fraction(1),), (one_hot(out, axes, cell),), (ref,), (names,)))


def with_cells(program: Program, names: Collection[str] | None = None) -> Program:
    """The program with an output for each cell of its outputs; its nodes stay blocks.

    Example:
        >>> from tpcalc.program.nodes import Data
        >>> builder = Builder()
        >>> builder.output("x", builder.add(Data("x", (1, 2), (("b", 2),))))
        >>> [name for name, _ in with_cells(builder.finish()).outputs]
        ['x[0]', 'x[1]']
    """
    out = Builder.copy(replace(program, outputs=()))
    for name, ref in program.outputs:
        axes = program.types[ref].axes if names is None or name in names else ()
        for cell in product(*(range(size) for _, size in axes)):
            out.output(cell_name(name, cell), picked(out, ref, axes, cell))
    return out.finish(keep_unused=False)
