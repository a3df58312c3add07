"""A limit graph read as a finite network: averages for expectations, matrices for products.

At width n every output of a program is n**power times this, up to what vanishes: coordinate by
coordinate, with the same draws. So it is an oracle of each derivation, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.numpy_run import evaluate
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
from tpcalc.program.nodes import Input, LinComb, Nonlin

__all__ = ["run"]


def run(graph: LimitGraph, width: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What each target is without its power of n; 0 where it is 0.

    Args:
        graph: The graph.
        width: n.
        inputs: What ``numpy_run.draw`` gives for the program.
    """
    values: list[Any] = []
    for node in graph.nodes:
        values.append(_ROWS[type(node)](node, values, width, inputs))
    return {
        name: 0.0 if target.node is None else values[target.node] for name, target in graph.targets
    }


Row = Callable[[Any, list[Any], int, Mapping[str, Any]], Any]


def _start(node: Start, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    return inputs[f"{node.group}[{node.index}]"]


def _hat(matrix: str, transpose: bool, x: Any, width: int, inputs: Mapping[str, Any]) -> Any:
    form = inputs[matrix].T if transpose else inputs[matrix]
    return form @ x / width**0.5


def _product(node: Product, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    return _hat(node.matrix, node.transpose, values[node.vector], width, inputs)


def _apply(node: Nonlin, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    vectors = [values[ref] for ref in node.vectors]
    found = evaluate(node.fn, vectors, [values[ref] for ref in node.scalars])
    return np.broadcast_to(found, vectors[0].shape) if vectors else float(found)


def _combine(node: LinComb, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    terms = zip(node.numbers, node.scalars, node.vectors, strict=True)
    return sum(float(c) * (1.0 if s is None else values[s]) * values[v] for c, s, v in terms)


def _expect(node: Expect, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    return float(np.mean(_apply(node, values, width, inputs)))  # type: ignore[arg-type]


def _noise(node: Noise, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    return width**0.5 * _expect(node, values, width, inputs)  # type: ignore[arg-type]


def _outer(node: OuterExpect, values: list[Any], width: int, inputs: Mapping[str, Any]) -> Any:
    rows = [values[ref][:, None] for ref in node.rows]
    cols = [values[ref][None, :] for ref in node.cols]
    block = evaluate(node.fn, [*rows, *cols], [values[ref] for ref in node.scalars])
    x = values[node.vector]
    return np.broadcast_to(block, (len(rows[0]), len(x))) @ x / len(x)


def _fluctuation(
    node: Fluctuation, values: list[Any], width: int, inputs: Mapping[str, Any]
) -> Any:
    root, vectors = node.root, [values[ref] for ref in node.vectors]
    if isinstance(root, Start):
        return width**0.5 * np.mean(inputs[f"{root.group}[{root.index}]"] * vectors[0])
    if isinstance(root, Rows):
        return width**0.5 * np.mean(vectors[0])
    if isinstance(root, Twice):  # half of it for each order of the two vectors
        x, y = vectors
        hats = [_hat(root.matrix, root.transpose, one, width, inputs) for one in (x, y)]
        given = np.mean(x * y) * len(x) / width
        return width**0.5 * (np.mean(hats[0] * hats[1]) - given) / 2
    g, x = vectors
    return width**0.5 * np.mean(g * _hat(root, False, x, width, inputs))


_ROWS: dict[type, Row] = {
    Start: _start,
    Product: _product,
    Nonlin: _apply,
    LinComb: _combine,
    Expect: _expect,
    Noise: _noise,
    OuterExpect: _outer,
    Fluctuation: _fluctuation,
    Number: lambda node, values, width, inputs: float(node.value),
    Input: lambda node, values, width, inputs: inputs[node.name],
}
