"""A plain interpreter of blocks as arrays with named axes: the reference of what splits them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.numpy_run import evaluate, key
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import (
    Data,
    Family,
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

__all__ = ["named", "run"]


def named(family: Family, cell: int | None) -> str:
    """The name of the draws of a cell."""
    return key(Input(family, cell)) if len(family.width) == 1 else family.cell_name(cell)


@dataclass
class Block:
    """Numbers with named axes, then the width axes."""

    names: tuple[str, ...]
    values: NDArray[np.float64]

    def along(self, names: Sequence[str], width: int) -> NDArray[np.float64]:
        """The numbers with these axes, in this order, and so many width axes."""
        own = self.values.ndim - len(self.names)
        order = [self.names.index(name) for name in names if name in self.names]
        moved = self.values.transpose(*order, *range(len(self.names), self.values.ndim))
        missing = tuple(place for place, name in enumerate(names) if name not in self.names)
        moved = np.expand_dims(moved, missing)
        return moved.reshape(moved.shape + (1,) * (width - own))


def run(program: Program, width: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All outputs, cell by cell, under the names that ``split`` gives them.

    Args:
        program: The program.
        width: n.
        inputs: What ``numpy_run.draw`` gives for the split program.
    """
    blocks: list[Block] = []
    for ref, node in enumerate(program.nodes):
        names = tuple(name for name, _ in program.types[ref].axes)
        blocks.append(_block(program, ref, node, blocks, names, width, inputs))
    found = {}
    for name, ref in program.outputs:
        sizes = [size for _, size in program.types[ref].axes]
        for cell in np.ndindex(*sizes):
            label = f"{name}[{','.join(map(str, cell))}]" if cell else name
            found[label] = blocks[ref].values[cell]
    return found


def _drawn(node: Input, sizes: tuple[int, ...], inputs: Mapping[str, Any]) -> Any:
    cells = [None] if not node.family.axes else range(node.family.size)
    if node.cell is not None:
        cells = [node.cell]
    drawn = np.array([inputs[named(node.family, cell)] for cell in cells])
    return drawn.reshape((*sizes, *drawn.shape[1:]))


def _block(
    program: Program,
    ref: Ref,
    node: Any,
    blocks: list[Block],
    names: tuple[str, ...],
    width: int,
    inputs: Mapping[str, Any],
) -> Block:
    sizes = tuple(size for _, size in program.types[ref].axes)

    def get(refs: Iterable[Ref], dims: int) -> list[Any]:
        return [blocks[one].along(names, dims) for one in refs]

    if isinstance(node, Data):
        return Block(names, np.array(node.values, dtype=float).reshape(sizes))
    if isinstance(node, Input):
        return Block(names, _drawn(node, sizes, inputs))
    if isinstance(node, Rename):
        return Block(names, blocks[node.of].values)
    if isinstance(node, MatMul):
        (matrix,), (vector,) = get([node.matrix], 2), get([node.vector], 1)
        matrix = np.swapaxes(matrix, -1, -2) if node.transpose else matrix
        return Block(names, np.einsum("...ij,...j->...i", matrix, vector))
    if isinstance(node, Stack):
        place, below = names.index(node.axis), tuple(own for own in names if own != node.axis)
        dims = program.types[ref].kind is Kind.VECTOR
        cells = [blocks[one].along(below, int(dims)) for one in node.of]
        shape = (*(size for name, size in program.types[ref].axes if name != node.axis),)
        shape += cells[0].shape[-1:] if dims else ()
        return Block(names, np.stack([np.broadcast_to(cell, shape) for cell in cells], place))
    if isinstance(node, RowNonlin):
        place = names.index(node.along)
        row = list(np.moveaxis(blocks[node.of].values, place, 0))
        slots = [Var(i) for i in range(len(row))]
        cells = [evaluate(Fn(expr, len(row)), row, []) for expr in node.row.cells(slots)]
        # The softmax of a row of one cell is a number, whatever is in it.
        return Block(
            names, np.stack([np.broadcast_to(cell, row[0].shape) for cell in cells], place)
        )
    if isinstance(node, Nonlin | Moment):
        dims = 1 if node.vectors else 0
        size = blocks[node.vectors[0]].values.shape[-1:] if node.vectors else ()
        found = evaluate(node.fn, get(node.vectors, dims), get(node.scalars, dims))
        found = np.broadcast_to(found, (*sizes, *size))
        return Block(names, found.mean(-1) if isinstance(node, Moment) else found)
    if isinstance(node, OuterNonlin):
        rows = [one[..., :, None] for one in get(node.rows, 1)]
        cols = [one[..., None, :] for one in get(node.cols, 1)]
        (x,) = get([node.vector], 1)
        found = evaluate(node.fn, [*rows, *cols], get(node.scalars, 2))
        size = blocks[node.rows[0]].values.shape[-1]
        return Block(names, np.broadcast_to((found * x[..., None, :]).mean(-1), (*sizes, size)))
    if isinstance(node, LinComb):
        return Block(names, _sum(program, node, blocks, names, sizes))
    assert isinstance(node, Scale)
    return Block(names, blocks[node.of].values * float(width) ** float(node.n_power.constant or 0))


def _sum(
    program: Program, node: LinComb, blocks: list[Block], names: tuple[str, ...], sizes: Any
) -> Any:
    dims = len(program.types[node.vectors[0]].width)
    total: Any = 0.0
    over = node.over or ((),) * len(node.numbers)
    for number, scalar, vector, summed in zip(
        node.numbers, node.scalars, node.vectors, over, strict=True
    ):
        factors = [blocks[one] for one in (scalar, vector) if one is not None]
        union = tuple(dict.fromkeys(name for one in factors for name in one.names))
        product = float(number)
        for one in factors:
            product = product * one.along(union, dims)
        kept = tuple(name for name in union if name not in summed)
        places = tuple(place for place, name in enumerate(union) if name in summed)
        total = total + Block(kept, product.sum(places)).along(names, dims)
    size = blocks[node.vectors[0]].values.shape[-1:] if dims else ()
    return np.broadcast_to(total, (*sizes, *size))
