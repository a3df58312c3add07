"""Limit graph -> engine script.

One register for each node. Gaussian groups are handed to the engine as *images*: where start
vectors are only ever used in linear combinations with numbers (the columns of an input layer
applied to data), the combinations themselves are drawn, jointly, with as many draws as their
covariance has rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

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
from tpcalc.engine.starts import factor
from tpcalc.errors import LimitError
from tpcalc.functions import Fn, Var, const
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LimitGraph,
    LRef,
    Number,
    OuterExpect,
    Product,
    ScalarApply,
    Start,
    graph_refs,
)
from tpcalc.program.nodes import Group

__all__ = ["Compiled", "compile_graph"]

FIRST = Fn(Var(0), 1)
SECOND = Fn(Var(0) ** 2, 1)


@dataclass(frozen=True)
class Compiled:
    """A script with the place of each target in its results.

    Args:
        script: What the engine runs.
        scalars: Result index of each scalar target.
        moments: Result indices (mean, second moment) of each vector target.
        random: Names of scalar targets that depend on a random scalar.
    """

    script: Script
    scalars: Mapping[str, int]
    moments: Mapping[str, tuple[int, int]]
    random: frozenset[str]


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
    images = _images(graph)
    _emit_starts(state, images, names)
    random: set[LRef] = set()
    for ref, node in enumerate(graph.nodes):
        if isinstance(node, Fluctuation) or (isinstance(node, Draw) and node.std != 0):
            random.add(ref)
        elif any(other in random for other in graph_refs(node)):
            random.add(ref)
        if ref not in state.vector:
            _emit(state, ref, names.get(ref, ""))
    results: list[int] = []
    scalars: dict[str, int] = {}
    pairs: dict[str, tuple[int, int]] = {}
    for name, target in graph.targets:
        if target.node is None:
            continue
        if graph.vector_dim[target.node] is None:
            scalars[name] = len(results)
            results.append(state.scalar[target.node])
        elif moments:
            pair = []
            for fn in (FIRST, SECOND):
                register = state.new_scalar()
                state.out.append(Mean(fn, (state.vector[target.node],), (), register))
                pair.append(len(results))
                results.append(register)
            pairs[name] = (pair[0], pair[1])
    wanted = {name: target.node for name, target in graph.targets}
    script = Script(
        tuple(Space(dim.name, float(dim.ratio)) for dim in graph.dims),
        tuple(Matrix(*matrix) for matrix in graph.matrices),
        tuple(state.out),
        tuple(state.spaces),
        state.scalars,
        tuple(state.labels),
        tuple(results),
        tuple(state.vector[node] for name in collect if (node := wanted[name]) is not None),
    )
    chance = frozenset(
        name for name, target in graph.targets if target.node is not None and target.node in random
    )
    return Compiled(script, scalars, pairs, chance)


def _images(graph: LimitGraph) -> dict[str, list[LRef]]:
    """For each group the nodes to draw: its images under constant sums, or else its members."""
    direct: dict[str, list[LRef]] = {}
    combined: dict[str, list[LRef]] = {}
    opaque: set[str] = set()
    group_of: dict[LRef, str] = {}
    targets = {target.node for _, target in graph.targets}
    for ref, node in enumerate(graph.nodes):
        if isinstance(node, Start):
            group_of[ref] = node.group
            direct.setdefault(node.group, []).append(ref)
            if ref in targets:
                opaque.add(node.group)
            continue
        starts = [other for other in graph_refs(node) if other in group_of]
        groups = {group_of[other] for other in starts}
        plain = (
            isinstance(node, Combine)
            and len(groups) == 1
            and len(starts) == len(node.vectors)
            and all(scalar is None for scalar in node.scalars)
        )
        if plain:
            combined.setdefault(groups.pop(), []).append(ref)
        else:
            opaque.update(groups)
    out: dict[str, list[LRef]] = {}
    for group, members in direct.items():
        images = combined.get(group, [])
        use_images = group not in opaque and images
        out[group] = images if use_images else members
    return out


def _emit_starts(
    state: _State, images: Mapping[str, list[LRef]], names: Mapping[LRef, str]
) -> None:
    groups = {group.name: group for group in state.graph.groups}
    for name, refs in images.items():
        group = groups[name]
        rows = np.array([_coefficients(state.graph, ref, group) for ref in refs])
        mean = rows @ np.array([float(value) for value in group.mean])
        if group.cov is None:
            cov = rows @ rows.T
        else:
            cov = rows @ np.array([[float(v) for v in row] for row in group.cov]) @ rows.T
        registers = []
        for ref in refs:
            state.vector[ref] = state.new_vector(group.dim, names.get(ref, ""))
            registers.append(state.vector[ref])
        state.out.append(
            Starts(group.dim, tuple(mean.tolist()), factor(cov, name), tuple(registers))
        )
    # Members that only images need get no register; _emit skips them.
    for ref, node in enumerate(state.graph.nodes):
        if isinstance(node, Start) and ref not in state.vector:
            state.vector[ref] = -1


def _coefficients(graph: LimitGraph, ref: LRef, group: Group) -> list[float]:
    row = [0.0] * len(group.mean)
    node = graph.nodes[ref]
    if isinstance(node, Start):
        row[node.index] = 1.0
    elif isinstance(node, Combine):
        for number, vector in zip(node.numbers, node.vectors, strict=True):
            start = graph.nodes[vector]
            assert isinstance(start, Start)
            row[start.index] += float(number)
    return row


def _emit(state: _State, ref: LRef, label: str) -> None:
    node = state.graph.nodes[ref]
    dim = state.graph.vector_dim[ref]
    if dim is not None:
        out = state.vector[ref] = state.new_vector(dim, label)
    else:
        out = state.scalar[ref] = state.new_scalar()
    if isinstance(node, Product):
        matrix = node.matrix
        state.out.append(Multiply(matrix, node.transpose, state.vectors([node.vector]), (out,)))
    elif isinstance(node, Apply):
        state.out.append(
            Map(node.fn, state.vectors(node.vectors), state.scalars_of(node.scalars), out)
        )
    elif isinstance(node, Combine):
        scalars = tuple(None if s is None else state.scalar[s] for s in node.scalars)
        numbers = tuple(float(number) for number in node.numbers)
        state.out.append(Sum(numbers, scalars, state.vectors(node.vectors), out))
    elif isinstance(node, Expect):
        state.out.append(
            Mean(node.fn, state.vectors(node.vectors), state.scalars_of(node.scalars), out)
        )
    elif isinstance(node, OuterExpect):
        state.out.append(
            Outer(
                node.fn,
                state.vectors(node.rows),
                state.vectors(node.cols),
                state.scalars_of(node.scalars),
                state.vector[node.vector],
                out,
            )
        )
    elif isinstance(node, Fluctuation):
        state.out.append(_noise(state, node, out))
    elif isinstance(node, Number):
        state.out.append(ScalarMap(Fn(const(node.value), 0, 0), (), out))
    elif isinstance(node, Draw):
        state.out.append(DrawScalar(float(node.value), float(node.std), out))
    elif isinstance(node, ScalarApply):
        state.out.append(ScalarMap(node.fn, state.scalars_of(node.scalars), out))
    else:
        raise AssertionError(type(node))


def _noise(state: _State, node: Fluctuation, out: int) -> Noise:
    group = next(group for group in state.graph.groups if group.name == node.group)
    variance = 1.0
    if group.cov is not None:
        row = group.cov[node.index]
        variance = float(row[node.index])
        if any(value != 0 for index, value in enumerate(row) if index != node.index):
            raise LimitError(
                f"the fluctuation of a moment of {node.group}[{node.index}], which is correlated "
                "with other members of its group.",
                hint="Write the group as independent start vectors and their combinations.",
            )
    dim = next(dim for dim in state.graph.dims if dim.name == group.dim)
    return Noise(
        f"{node.group}[{node.index}]",
        group.dim,
        variance / float(dim.ratio),
        state.vector[node.vector],
        out,
    )
