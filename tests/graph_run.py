"""A limit graph read as a finite network: averages for expectations, matrices for products.

At width n every output of a program is n**power times this, up to what vanishes: coordinate by
coordinate, with the same draws. So it is an oracle of each derivation, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.numpy_run import RULES, Rule, World, mean, outer
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    Noise,
    Number,
    OuterExpect,
    Product,
    Rows,
    Start,
    Twice,
)


def run(graph: LimitGraph, width: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What each target is without its power of n; 0 where it is 0.

    Args:
        graph: The graph.
        width: n.
        inputs: What ``numpy_run.draw`` gives for the program.
    """
    values: list[Any] = []
    for node in graph.nodes:
        values.append(_ROWS[type(node)](node, values, World(width, inputs)))
    return {
        name: 0.0 if target.node is None else values[target.node] for name, target in graph.targets
    }


def _start(node: Start, values: Any, world: World) -> Any:
    return world.inputs[f"{node.group}[{node.index}]"]


def _hat(matrix: str, transpose: bool, x: Any, world: World) -> Any:
    form = world.inputs[matrix].T if transpose else world.inputs[matrix]
    return form @ x / world.width**0.5


def _fluctuation(node: Fluctuation, values: Any, world: World) -> Any:
    root, vectors, width = node.root, [values[ref] for ref in node.vectors], world.width
    if isinstance(root, Start):
        return width**0.5 * np.mean(_start(root, values, world) * vectors[0])
    if isinstance(root, Rows):
        return width**0.5 * np.mean(vectors[0])
    if isinstance(root, Twice):  # half of it for each order of the two vectors
        x, y = vectors
        hats = [_hat(root.matrix, root.transpose, one, world) for one in (x, y)]
        given = np.mean(x * y) * len(x) / width
        return width**0.5 * (np.mean(hats[0] * hats[1]) - given) / 2
    g, x = vectors
    return width**0.5 * np.mean(g * _hat(root, False, x, world))


_ROWS: dict[type, Rule] = {
    **RULES,
    Start: _start,
    Product: lambda node, values, world: _hat(
        node.matrix, node.transpose, values[node.vector], world
    ),
    Expect: mean,
    Noise: lambda node, values, world: world.width**0.5 * mean(node, values, world),
    OuterExpect: outer,
    Fluctuation: _fluctuation,
    Number: lambda node, values, world: float(node.value),
}
