"""Programs run at a small width with numpy, node by node: the independent reading of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tpcalc.functions.tape import evaluate
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Nonlin, OuterNonlin, Scale
from tpcalc.program.program import Program
from tpcalc.program.rules import Rules, interpret

DEPTH = 9


class World:
    """Sizes and inputs: arrays of group members and matrices by name.

    Args:
        width: n.
        inputs: ``(group, index)`` and matrix names to arrays.
    """

    def __init__(self, program: Program, width: int, inputs: Mapping[Any, Any]) -> None:
        self.width = width
        self.inputs = inputs
        self.sizes = {dim.name: int(dim.ratio * width) for dim in program.dims}
        self.types = program.types


def _size(world: World, ref: int) -> int:
    return world.sizes[world.types[ref].width[0]]


def _scale(node: Scale, ref: int, values: list[Any], world: World) -> Any:
    n_power, depth_power = float(node.n_power.at({})), float(node.depth_power.at({}))
    return values[node.of] * float(world.width) ** n_power * float(DEPTH) ** depth_power


def _input(node: Input, ref: int, values: list[Any], world: World) -> Any:
    family = node.family
    return world.inputs[(family.name, node.index) if len(family.width) == 1 else family.name]


def _data(node: Data, ref: int, values: list[Any], world: World) -> Any:
    (value,) = node.values
    return float(value)


def _nonlin(node: Nonlin, ref: int, values: list[Any], world: World) -> Any:
    found = evaluate(node.fn, [values[r] for r in node.vectors], [values[r] for r in node.scalars])
    if not node.vectors:
        return float(found)
    return np.broadcast_to(found, (_size(world, ref),))


def _moment(node: Moment, ref: int, values: list[Any], world: World) -> Any:
    found = evaluate(node.fn, [values[r] for r in node.vectors], [values[r] for r in node.scalars])
    return float(np.mean(found))


def _lincomb(node: LinComb, ref: int, values: list[Any], world: World) -> Any:
    return sum(
        float(number) * (1.0 if scalar is None else values[scalar]) * values[vector]
        for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True)
    )


def _outer(node: OuterNonlin, ref: int, values: list[Any], world: World) -> Any:
    rows = [values[r][:, None] for r in node.rows]
    cols = [values[r][None, :] for r in node.cols]
    matrix = evaluate(node.fn, [*rows, *cols], [values[r] for r in node.scalars])
    shape = (_size(world, ref), _size(world, node.vector))
    return np.broadcast_to(matrix, shape) @ values[node.vector] / shape[1]


def _matmul(node: MatMul, ref: int, values: list[Any], world: World) -> Any:
    matrix = values[node.matrix]
    return (matrix.T if node.transpose else matrix) @ values[node.vector]


RULES: Rules[Any, World] = Rules(
    "numpy",
    {
        Input: _input,
        Data: _data,
        MatMul: _matmul,
        Nonlin: _nonlin,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: _outer,
        Scale: _scale,
    },
)


def run(program: Program, width: int, inputs: Mapping[Any, Any]) -> dict[str, Any]:
    """The outputs of a program at one width.

    Args:
        program: The program.
        width: n.
        inputs: Arrays for group members ``(group, index)`` and for matrices by name.
    """
    values = interpret(program, RULES, World(program, width, inputs))
    return {name: values[ref] for name, ref in program.outputs}
