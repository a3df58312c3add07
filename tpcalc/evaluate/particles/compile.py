"""Limit graph -> engine script.

One register for each node; powers of n are gone already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tpcalc.engine.instructions import (
    DrawScalar,
    Instruction,
    Map,
    Matrix,
    Mean,
    Multiply,
    Noise,
    Outer,
    ScalarMap,
    Script,
    Space,
    Starts,
    Sum,
)
from tpcalc.engine.starts import members_factor
from tpcalc.evaluate.closure.chance import random_nodes
from tpcalc.evaluate.family import family
from tpcalc.functions import Call, Fn, Par, Var, const
from tpcalc.functions.expr import Pow, walk
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    LRef,
    Number,
    OuterExpect,
    Product,
    Target,
)
from tpcalc.limit.views import function_of, number_of, start_of
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, LinComb, Nonlin

__all__ = ["COLUMNS", "Compiled", "compile_graph"]

COLUMNS = 2048  # that a function of forms is averaged over: the others change little

FIRST = Fn(Var(0), 1)
SECOND = Fn(Var(0) ** 2, 1)
ZERO = Fn(const(0), 0)


@dataclass(frozen=True)
class Compiled:
    """A script with the place of each target in its results.

    Args:
        script: What the engine runs.
        scalars: Result index of each scalar target.
        moments: Result indices (mean, second moment) of each vector target; None for one that is 0
            by symmetry.
        random: Result indices of scalars that stay random.
        denominators: Result indices of scalars that the program divides by.
        jumps: Result indices of scalars that are a jump of other scalars.
    """

    script: Script
    scalars: Mapping[str, int]
    moments: Mapping[str, tuple[int | None, int | None]]
    random: frozenset[int]
    denominators: tuple[int, ...] = ()
    jumps: tuple[int, ...] = ()


@dataclass
class _State:
    graph: LimitGraph
    vector: dict[LRef, int] = field(default_factory=dict)
    scalar: dict[LRef, int] = field(default_factory=dict)
    spaces: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    scalars: int = 0
    out: list[Instruction] = field(default_factory=list)

    def new_vector(self, dim: str, label: str = "") -> int:
        self.spaces.append(dim)
        self.labels.append(label)
        return len(self.spaces) - 1

    def new_scalar(self) -> int:
        self.scalars += 1
        return self.scalars - 1

    def vectors(self, refs: Sequence[LRef]) -> tuple[int, ...]:
        return tuple(self.vector[ref] for ref in refs)

    def scalars_of(self, refs: Sequence[LRef]) -> tuple[int, ...]:
        return tuple(self.scalar[ref] for ref in refs)


_FUNCTIONS: Table[tuple[Fn, tuple[LRef, ...]]] = Table(
    dict.fromkeys((Nonlin, Expect), lambda node: (node.fn, node.scalars)),
    lambda node: (ZERO, ()),
)


@dataclass
class _Columns:
    """The results of a script."""

    registers: list[int] = field(default_factory=list)
    random: set[int] = field(default_factory=set)

    def add(self, register: int, chance: bool = False) -> int:
        if chance:
            self.random.add(len(self.registers))
        self.registers.append(register)
        return len(self.registers) - 1

    def all(self, registers: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(self.add, registers))


def compile_graph(
    graph: LimitGraph, *, moments: bool = True, collect: Sequence[str] = ()
) -> Compiled:
    """Compile a limit graph.

    Args:
        graph: The graph.
        moments: Whether mean and second moment of vector targets are computed.
        collect: Vector targets whose samples are returned.
    """
    state = _State(graph)
    names: dict[LRef, str] = {}
    for name, target in graph.targets:
        if target.node is not None:
            names.setdefault(target.node, name)
    _emit_starts(state, names)
    random = random_nodes(graph)
    for ref in range(len(graph.nodes)):
        if ref not in state.vector:
            _emit(state, ref, names.get(ref, ""))
    columns = _Columns()
    scalars: dict[str, int] = {}
    pairs: dict[str, tuple[int | None, int | None]] = {}
    for name, target in graph.targets:
        if target.node is None:
            continue
        if graph.vector_dim[target.node] is None:
            scalars[name] = columns.add(state.scalar[target.node], target.node in random)
        elif moments:
            first, second = (
                None if found is None else columns.add(*found)
                for found in _moments(state, target, random)
            )
            pairs[name] = (first, second)
    denominators = columns.all(state.scalars_of(sorted(_divisors(graph) - random)))
    jumps = columns.all(state.scalars_of(sorted(_jumps(graph) - random)))
    wanted = {name: target.node for name, target in graph.targets}
    script = Script(
        tuple(Space(dim.name, float(dim.ratio)) for dim in graph.dims),
        tuple(
            Matrix(*matrix, "orthogonal" if matrix[0] in graph.orthogonal else "gaussian")
            for matrix in graph.matrices
        ),
        tuple(state.out),
        tuple(state.spaces),
        state.scalars,
        tuple(state.labels),
        tuple(columns.registers),
        tuple(state.vector[at] for name in collect if (at := wanted[name]) is not None),
    )
    return Compiled(script, scalars, pairs, frozenset(columns.random), denominators, jumps)


def _moments(
    state: _State, target: Target, random: frozenset[LRef]
) -> Iterator[tuple[int, bool] | None]:
    """The registers of E Z and E Z^2, each with whether it is random; None for what is 0."""
    if target.moments is not None:
        for ref in target.moments:
            yield None if ref is None else (state.scalar[ref], ref in random)
        return
    assert target.node is not None
    for fn in (FIRST, SECOND):
        register = state.new_scalar()
        state.out.append(Mean(fn, (state.vector[target.node],), (), register))
        yield register, target.node in random


def _divisors(graph: LimitGraph) -> set[LRef]:
    """Scalars, other than given numbers, that something is divided by."""
    found: set[LRef] = set()
    for fn, scalars in map(_FUNCTIONS, graph.nodes):
        for part in walk(fn.expr):
            if isinstance(part, Pow) and part.exponent < 0 and isinstance(part.base, Par):
                ref = scalars[part.base.index]
                if number_of(graph.nodes[ref]) is None:
                    found.add(ref)
    return found


def _jumps(graph: LimitGraph) -> set[LRef]:
    """Scalars that are a jump of other scalars, such as the sign of one."""
    return {
        ref
        for ref, node in enumerate(map(function_of, graph.nodes))
        if node is not None
        and not node.vectors
        and isinstance(node.fn.expr, Call)
        and node.fn.expr.atom.facts.kinks
        and node.fn.expr.atom.derivative is None
    }


def _emit_starts(state: _State, names: Mapping[LRef, str]) -> None:
    groups = {group.name: group for group in state.graph.groups}
    members: dict[str, dict[LRef, int]] = {}
    for ref, node in enumerate(map(start_of, state.graph.nodes)):
        if node is not None:
            members.setdefault(node.group, {})[ref] = node.index
    for name, refs in members.items():
        group = groups[name]
        indices = list(refs.values())
        registers = []
        for ref in refs:
            state.vector[ref] = state.new_vector(group.dim, names.get(ref, ""))
            registers.append(state.vector[ref])
        state.out.append(
            Starts(
                group.dim,
                tuple(float(group.means[index]) for index in indices),
                members_factor(group.cov, indices, name),
                tuple(registers),
            )
        )


def _emit(state: _State, ref: LRef, label: str) -> None:
    node = state.graph.nodes[ref]
    dim = state.graph.vector_dim[ref]
    if dim is not None:
        out = state.vector[ref] = state.new_vector(dim, label)
    else:
        out = state.scalar[ref] = state.new_scalar()
    state.out.append(_INSTRUCTIONS(node, state, out))


def _multiply(node: Product, state: _State, out: int) -> Instruction:
    return Multiply(node.matrix, node.transpose, state.vectors([node.vector]), (out,))


def _map(node: Nonlin, state: _State, out: int) -> Instruction:
    scalars = state.scalars_of(node.scalars)
    if not node.vectors:
        return ScalarMap(node.fn, scalars, out)
    return Map(node.fn, state.vectors(node.vectors), scalars, out)


def _draw(node: Input, state: _State, out: int) -> Instruction:
    return DrawScalar(float(node.family.means[0]), float(node.family.std), out)


def _sum(node: LinComb, state: _State, out: int) -> Instruction:
    scalars = tuple(None if s is None else state.scalar[s] for s in node.scalars)
    numbers = tuple(float(number) for number in node.numbers)
    return Sum(numbers, scalars, state.vectors(node.vectors), out)


def _mean(node: Expect, state: _State, out: int) -> Instruction:
    return Mean(node.fn, state.vectors(node.vectors), state.scalars_of(node.scalars), out)


def _outer(node: OuterExpect, state: _State, out: int) -> Instruction:
    return Outer(
        node.fn,
        state.vectors(node.rows),
        state.vectors(node.cols),
        state.scalars_of(node.scalars),
        state.vector[node.vector],
        out,
        node.forms,
        COLUMNS if node.forms else 0,
    )


def _noise(node: Fluctuation, state: _State, out: int) -> Instruction:
    matrices = {name: (rows, cols) for name, rows, cols in state.graph.matrices}
    name, weights = family(node.root, state.graph.groups, state.graph.dims, matrices)
    return Noise(name, weights, state.vectors(node.vectors), out)


_INSTRUCTIONS: Table[Instruction] = Table(
    {
        Product: _multiply,
        Nonlin: _map,
        LinComb: _sum,
        Expect: _mean,
        OuterExpect: _outer,
        Fluctuation: _noise,
        Number: lambda node, state, out: ScalarMap(Fn(const(node.value), 0, 0), (), out),
        Input: _draw,
    }
)
