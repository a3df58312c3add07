"""Raw program -> engine script at one width: powers of n become numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np

from tpcalc.engine.blocks import Blocks, Writer
from tpcalc.engine.instructions import (
    DrawScalar,
    Instruction,
    Map,
    Matrix,
    Mean,
    Multiply,
    ScalarMap,
    Script,
    Space,
    Sum,
)
from tpcalc.engine.starts import starts_of
from tpcalc.errors import UsageError
from tpcalc.evaluate.particles.emit import INSTRUCTIONS
from tpcalc.finite.widths import scale_factor
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.functions.fn import FIRST, SQUARE
from tpcalc.names import cell_name
from tpcalc.program.base import input_of, references
from tpcalc.program.nodes import (
    Data,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Level, Rules, interpret
from tpcalc.results.data import grouped

LAZY_LAWS = ("gaussian", "orthogonal")  # of which products reveal what is asked


@dataclass
class _State:
    program: Program
    width: int
    values: Mapping[str, Fraction]
    blocks: Blocks
    members: dict[str, dict[int, int]] = field(default_factory=dict)
    matrices: list[Matrix] = field(default_factory=list)

    def write(self, instruction: Instruction) -> None:
        self.blocks.writer.out.append(instruction)


def compile_program(
    program: Program, width: int, values: Mapping[str, Fraction] | None = None
) -> tuple[Script, list[tuple[str, str]]]:
    """Compile a raw program at a width."""
    for family in program.families.values():
        if family.law not in LAZY_LAWS:
            raise UsageError(
                f"the matrix {family.name!r} has {family.law} entries, and products reveal "
                "Gaussian and orthogonal matrices only.",
                where=f"width {width}",
                hint="backend='dense' (--backend dense) draws all laws.",
            )
    state = _state(program, width, dict(values or {}))
    _starts(state)
    interpret(program, LAZY_RULES, state)
    writer = state.blocks.writer
    results: list[int] = []
    keys: list[tuple[str, str]] = []
    for name, ref in program.outputs:
        registers = state.blocks.registers(ref)
        scalar = program.types[ref].kind is Kind.SCALAR
        for cell in np.ndindex(registers.shape):
            own, register = cell_name(name, cell), int(registers[cell])
            if scalar:
                results.append(register)
                keys.append((own, "value"))
                continue
            for fn, statistic in ((FIRST, "mean"), (SQUARE, "second_moment")):
                results.append(writer.new_scalar())
                state.write(Mean(fn, (register,), (), results[-1]))
                keys.append((own, statistic))
    script = Script(
        tuple(Space(dim.name, float(dim.ratio)) for dim in program.dims),
        tuple(state.matrices),
        tuple(writer.out),
        tuple(writer.spaces),
        writer.scalars,
        tuple(writer.labels),
        tuple(results),
    )
    return script, keys


def _state(program: Program, width: int, values: Mapping[str, Fraction]) -> _State:
    names: dict[Ref, str] = {}
    for name, ref in program.outputs:
        names.setdefault(ref, name)
    blocks = Blocks(
        Writer(),
        [found.axes for found in program.types],
        [found.width[0] if found.width else None for found in program.types],
        lambda ref, cell: cell_name(names[ref], cell) if ref in names else "",
    )
    return _State(program, width, values, blocks)


def _starts(state: _State) -> None:
    """Draw each group once, with the members that occur."""
    used: dict[str, dict[int, None]] = {}
    for node in map(input_of, state.program.nodes):
        if node is not None and len(node.family.width) == 1:
            used.setdefault(node.family.name, {}).update(dict.fromkeys(_cells(node)))
    for name, found in used.items():
        group, indices = state.program.group[name], list(found)
        writer = state.blocks.writer
        registers = [writer.new_vector(group.dim, f"{name}[{index}]") for index in indices]
        state.members[name] = dict(zip(indices, registers, strict=True))
        state.write(starts_of(group, indices, registers))


def _cells(node: Input) -> Sequence[int]:
    """The cells of its family that an input is."""
    return range(node.family.size) if node.cell is None else (node.cell,)


def _data(node: Data, ref: Ref, values: Sequence[None], state: _State) -> None:
    if node.axes:
        state.blocks.data(ref, node.values)
    else:
        out = int(state.blocks.fresh(ref))
        state.write(DrawScalar(float(node.values[0]), 0.0, out))


def _input(node: Input, ref: Ref, values: Sequence[None], state: _State) -> None:
    family, blocks = node.family, state.blocks
    shape = tuple(blocks.sizes(ref).values())
    if len(family.width) == 1:
        found = [state.members[family.name][cell] for cell in _cells(node)]
        blocks.held[ref] = np.array(found).reshape(shape)
        return
    parts = [family.part(cell) for cell in _cells(node)]
    if family.width:  # its numbers among the matrices: products name them
        known = {matrix.name: place for place, matrix in enumerate(state.matrices)}
        for part in parts:
            if part.name not in known:
                known[part.name] = len(state.matrices)
                rows, cols = part.width
                state.matrices.append(Matrix(part.name, rows, cols, part.law))
        blocks.held[ref] = np.array([known[part.name] for part in parts]).reshape(shape)
        return
    for part, out in zip(parts, blocks.fresh(ref).ravel().tolist(), strict=True):
        state.write(DrawScalar(float(part.means[0]), float(part.std), out))


def _matmul(node: MatMul, ref: Ref, values: Sequence[None], state: _State) -> None:
    """The products of a matrix with all cells, times n^(1/2) as its entries are N(0, 1)."""
    cells = ((at[node.matrix], at[node.vector], out) for out, at in state.blocks.cells(ref, ()))
    dim = state.program.types[ref].width[0]
    for matrix, batch in grouped(cells, itemgetter(0)).items():
        _, vectors, outs = zip(*batch, strict=True)
        small = tuple(state.blocks.writer.new_vector(dim) for _ in outs)
        state.write(Multiply(state.matrices[matrix].name, node.transpose, vectors, small))
        for one, out in zip(small, outs, strict=True):
            state.write(Sum((float(np.sqrt(state.width)),), (None,), (one,), out))


def _each(node: Any, ref: Ref, values: Sequence[None], state: _State) -> None:
    """An instruction for each cell."""
    for out, at in state.blocks.cells(ref, references(node)):
        state.write(INSTRUCTIONS(node, at, out, None))


def _nonlin(node: Nonlin, ref: Ref, values: Sequence[None], state: _State) -> None:
    if node.vectors:
        _each(node, ref, values, state)
    else:
        state.blocks.applied(ref, node.fn, node.scalars)


def _rows(node: RowNonlin, ref: Ref, values: Sequence[None], state: _State) -> None:
    size, vector = state.blocks.sizes(ref)[node.along], state.blocks.dims[ref] is not None
    slots = [Var(k) if vector else Par(k) for k in range(size)]
    cells = node.row.cells(slots)
    for out, at in state.blocks.cells(ref, (node.of,)):
        row = tuple(here[node.of] for here in at.along({node.along: size}))
        expr = cells[at.where[node.along]]
        if vector:
            state.write(Map(Fn(expr, size), row, (), out))
        else:
            state.write(ScalarMap(Fn(expr, 0, size), row, out))


def _lincomb(node: LinComb, ref: Ref, values: Sequence[None], state: _State) -> None:
    if node.over:
        state.blocks.total(ref, node.numbers, node.scalars, node.vectors, node.over)
    else:
        _each(node, ref, values, state)


def _moment(node: Moment, ref: Ref, values: Sequence[None], state: _State) -> None:
    pair = len(node.vectors) == 2 and node.fn.is_inner
    if not (pair and state.blocks.gram(ref, *node.vectors)):
        _each(node, ref, values, state)


def _scale(node: Scale, ref: Ref, values: Sequence[None], state: _State) -> None:
    factor = scale_factor(node, state.width, state.values, state.program.place(ref))
    if state.blocks.dims[ref] is None:
        state.blocks.applied(ref, Fn(Par(0) * const(factor), 0, 1), (node.of,))
        return
    for out, at in state.blocks.cells(ref, (node.of,)):
        state.write(Sum((factor,), (None,), (at[node.of],), out))


LAZY_RULES: Rules[None, _State] = Rules(
    "lazy finite width",
    {
        Data: _data,
        Input: _input,
        Rename: lambda node, ref, values, state: state.blocks.rename(ref, node.of),
        Stack: lambda node, ref, values, state: state.blocks.stack(ref, node.of, node.axis),
        MatMul: _matmul,
        Nonlin: _nonlin,
        RowNonlin: _rows,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: lambda node, ref, values, state: state.blocks.outer(ref, node),
        Scale: _scale,
    },
    level=Level.BLOCKS,
)
