"""Raw program -> engine script at one width: powers of n become numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.engine.instructions import (
    DrawScalar,
    Instruction,
    Map,
    Matrix,
    Mean,
    Multiply,
    Outer,
    ScalarMap,
    Script,
    Space,
    Starts,
    Sum,
)
from tpcalc.engine.starts import members_factor
from tpcalc.errors import UsageError
from tpcalc.finite.widths import scale_factor
from tpcalc.functions import Fn, Par, Var, const
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
    Scale,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Rules, interpret
from tpcalc.program.views import input_of, matrix_of

__all__ = ["LAZY_RULES", "compile_program"]

FIRST = Fn(Var(0), 1)
LAZY_LAWS = ("gaussian", "orthogonal")  # of which products reveal what is asked
SECOND = Fn(Var(0) ** 2, 1)


@dataclass
class _State:
    program: Program
    width: int
    values: Mapping[str, Fraction]
    spaces: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    scalars: int = 0
    out: list[Instruction] = field(default_factory=list)
    members: dict[str, dict[int, int]] = field(default_factory=dict)
    names: dict[Ref, str] = field(default_factory=dict)

    def new_vector(self, dim: str, label: str = "") -> int:
        self.spaces.append(dim)
        self.labels.append(label)
        return len(self.spaces) - 1

    def new_scalar(self) -> int:
        self.scalars += 1
        return self.scalars - 1

    def vector_for(self, ref: Ref) -> int:
        return self.new_vector(self.program.types[ref].width[0], self.names.get(ref, ""))


def compile_program(
    program: Program, width: int, values: Mapping[str, Fraction] | None = None
) -> tuple[Script, list[tuple[str, str]]]:
    """Compile a raw program at a width.

    Args:
        program: The program.
        width: n.
        values: Numbers for symbols in exponents.

    Returns:
        The script, and for each of its results (output name, statistic).

    Raises:
        UsageError: A matrix whose entries are independent and not Gaussian.
    """
    for family in program.families.values():
        if family.law not in LAZY_LAWS:
            raise UsageError(
                f"the matrix {family.name!r} has {family.law} entries, and products reveal "
                "Gaussian and orthogonal matrices only.",
                where=f"width {width}",
                hint="backend='dense' (--backend dense) draws all laws.",
            )
    state = _State(program, width, dict(values or {}))
    for name, ref in program.outputs:
        state.names.setdefault(ref, name)
    _starts(state)
    registers = interpret(program, LAZY_RULES, state)
    results: list[int] = []
    keys: list[tuple[str, str]] = []
    for name, ref in program.outputs:
        if program.types[ref].kind is Kind.SCALAR:
            results.append(registers[ref])
            keys.append((name, "value"))
            continue
        for fn, statistic in ((FIRST, "mean"), (SECOND, "second_moment")):
            register = state.new_scalar()
            state.out.append(Mean(fn, (registers[ref],), (), register))
            results.append(register)
            keys.append((name, statistic))
    script = Script(
        tuple(Space(dim.name, float(dim.ratio)) for dim in program.dims),
        tuple(
            Matrix(family.name, *family.width, family.law)
            for family in program.families.values()
            if len(family.width) == 2
        ),
        tuple(state.out),
        tuple(state.spaces),
        state.scalars,
        tuple(state.labels),
        tuple(results),
    )
    return script, keys


def _starts(state: _State) -> None:
    """Draw each group once, with the members that occur."""
    used: dict[str, list[int]] = {}
    for node in map(input_of, state.program.nodes):
        if node is not None and len(node.family.width) == 1:
            found = used.setdefault(node.family.name, [])
            if node.index not in found:
                found.append(node.index)
    for name, indices in used.items():
        group = state.program.group[name]
        registers = [state.new_vector(group.dim, f"{name}[{index}]") for index in indices]
        state.members[name] = dict(zip(indices, registers, strict=True))
        spread = members_factor(group.cov, indices, name)
        mean = tuple(float(group.means[index]) for index in indices)
        state.out.append(Starts(group.dim, mean, spread, tuple(registers)))


def _data(node: Data, ref: Ref, values: list[int], state: _State) -> int:
    out = state.new_scalar()
    state.out.append(DrawScalar(float(node.values[0]), 0.0, out))
    return out


def _input(node: Input, ref: Ref, values: list[int], state: _State) -> int:
    family = node.family
    if len(family.width) == 1:
        return state.members[family.name][node.index]
    if family.width:
        return -1  # no register: products name it
    out = state.new_scalar()
    state.out.append(DrawScalar(float(family.means[0]), float(family.std), out))
    return out


def _matmul(node: MatMul, ref: Ref, values: list[int], state: _State) -> int:
    matrix = matrix_of(state.program.nodes, node)
    small = state.vector_for(ref)
    state.out.append(Multiply(matrix.name, node.transpose, (values[node.vector],), (small,)))
    out = state.vector_for(ref)  # entries N(0, 1): n^(1/2) times the engine's N(0, 1/n)
    state.out.append(Sum((float(np.sqrt(state.width)),), (None,), (small,), out))
    return out


def _refs(values: list[int], refs: Sequence[Ref]) -> tuple[int, ...]:
    return tuple(values[ref] for ref in refs)


def _nonlin(node: Nonlin, ref: Ref, values: list[int], state: _State) -> int:
    if not node.vectors:
        out = state.new_scalar()
        state.out.append(ScalarMap(node.fn, _refs(values, node.scalars), out))
        return out
    out = state.vector_for(ref)
    state.out.append(Map(node.fn, _refs(values, node.vectors), _refs(values, node.scalars), out))
    return out


def _lincomb(node: LinComb, ref: Ref, values: list[int], state: _State) -> int:
    out = state.vector_for(ref)
    scalars = tuple(None if scalar is None else values[scalar] for scalar in node.scalars)
    numbers = tuple(float(number) for number in node.numbers)
    state.out.append(Sum(numbers, scalars, _refs(values, node.vectors), out))
    return out


def _moment(node: Moment, ref: Ref, values: list[int], state: _State) -> int:
    out = state.new_scalar()
    state.out.append(Mean(node.fn, _refs(values, node.vectors), _refs(values, node.scalars), out))
    return out


def _outer(node: OuterNonlin, ref: Ref, values: list[int], state: _State) -> int:
    out = state.vector_for(ref)
    state.out.append(
        Outer(
            node.fn,
            _refs(values, node.rows),
            _refs(values, node.cols),
            _refs(values, node.scalars),
            values[node.vector],
            out,
            node.forms,
        )
    )
    return out


def _scale(node: Scale, ref: Ref, values: list[int], state: _State) -> int:
    factor_ = scale_factor(node, state.width, state.values, state.program.place(ref))
    if state.program.types[ref].kind is Kind.VECTOR:
        out = state.vector_for(ref)
        state.out.append(Sum((factor_,), (None,), (values[node.of],), out))
        return out
    out = state.new_scalar()
    fn = Fn(Par(0) * const(factor_), 0, 1)
    state.out.append(ScalarMap(fn, (values[node.of],), out))
    return out


_TABLE: dict[type, Callable[[Any, Ref, list[int], _State], int]] = {
    Data: _data,
    Input: _input,
    MatMul: _matmul,
    Nonlin: _nonlin,
    LinComb: _lincomb,
    Moment: _moment,
    OuterNonlin: _outer,
    Scale: _scale,
}

LAZY_RULES: Rules[int, _State] = Rules("lazy finite width", _TABLE)
