"""Kernels of many inputs: entries evaluated tile by tile, so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np

from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.doors.machine import available_cores
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.numeric import Numeric
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries, Found, Inputs
from tpcalc.questions.kernel.network import Network
from tpcalc.results import Method
from tpcalc.tasks.alone import alone
from tpcalc.tasks.run import elsewhere, error_of, outcomes
from tpcalc.tasks.task import Task

Tile = tuple[slice, slice]
Shared = tuple[Entries, Inputs, Inputs | None, tuple[str, ...], Numeric]
Evaluated = tuple[dict[tuple[str, int, int], Array], set[Method]]

SIDE = 192  # inputs of a tile: its arrays fit the second-level cache
LONG = 512  # where quadrature prepares each input once for a tile


def tiled(task: Network, numeric: Numeric, threads: int | None, progress: Progress | None) -> Found:
    """All entries of a kernel, whose error is not known yet."""
    left, right, outputs = task.left, task.right or task.left, task.pair.tangent.outputs
    shape = (len(left.rows), outputs, len(right.rows), outputs)
    spend(
        f"a kernel of shape {shape[::2]}",
        memory=8 * len(task.kinds) * math.prod(shape),
        hint="Use fewer inputs, or ask for one kind at a time.",
    )
    found = {kind: np.empty(shape) for kind in task.kinds}
    own = diagonal(task, left, numeric)
    methods = {answer.method for answer in own.values()}

    side = LONG if Method.QUADRATURE in methods else SIDE
    tiles = list(_tiles(shape[0], shape[2], side, symmetric=task.right is None))
    shared = task.pair, left, task.right, task.kinds, numeric
    for (rows, columns), (blocks, more) in _computed(shared, tiles, threads, progress):
        methods |= more
        for (kind, k, m), block in blocks.items():
            found[kind][rows, k, columns, m] = block
            if task.right is None and rows != columns:
                found[kind][columns, m, rows, k] = block.T
    if task.right is None:
        every = np.arange(shape[0])
        for (kind, k, m), answer in own.items():
            found[kind][every, k, every, m] = answer.value
    return Found(found, max(methods, default=Method.EXACT), 0.0)


def _computed(
    shared: Shared, tiles: Sequence[Tile], threads: int | None, progress: Progress | None
) -> Iterator[tuple[Tile, Evaluated]]:
    """Tiles as they come: long ones as tasks, short ones from threads, whose inputs are here."""
    if elsewhere() and any(rows.stop - rows.start > SIDE for rows, _ in tiles):
        tasks = [Task(f"inputs from {i.start} on beside {j.start}", (i, j)) for i, j in tiles]
        for number, reply in outcomes(_evaluated, tasks, shared=shared, progress=progress):
            if reply.error is not None or reply.failed:
                raise error_of(tasks[number], reply)
            yield tiles[number], reply.value
        return
    with alone(), ThreadPoolExecutor(threads or available_cores()) as pool:
        every = pool.map(lambda tile: _evaluated(shared, *tile), tiles)
        for number, evaluated in enumerate(every):
            yield tiles[number], evaluated
            if progress is not None:
                progress((number + 1) / len(tiles), "kernel")


def _evaluated(
    shared: Shared, rows: slice, columns: slice, progress: Progress | None = None
) -> Evaluated:
    """The blocks of a tile by kind and outputs, and the methods of their entries."""
    pair, own, other, kinds, numeric = shared
    same = other is None and rows == columns
    left, right = own.at(rows), (other or own).at(columns)
    evaluated = pair.at(grams(left, right, same=same), numeric)
    outputs = range(pair.tangent.outputs)
    blocks, methods = {}, set()
    for kind, k, m in product(kinds, outputs, outputs):
        answer = evaluated.entry(kind, 0, k, 1, m)
        methods.add(answer.method)
        block = np.broadcast_to(answer.value, (len(left.rows), len(right.rows)))
        if same and k == m:  # rounding may differ between the two orders of a pair
            block = np.tril(block) + np.tril(block, -1).T
        blocks[kind, k, m] = block
    return blocks, methods


def diagonal(
    task: Network, inputs: Inputs, numeric: Numeric
) -> dict[tuple[str, int, int], Bounded]:
    """Entries of an input with itself, where a correlation rounded below 1 would lose digits."""
    evaluated = task.single.at(inputs.gram(), numeric)
    outputs = range(task.single.tangent.outputs)
    return {
        (kind, k, m): evaluated.entry(kind, 0, k, 0, m)
        for kind, k, m in product(task.kinds, outputs, outputs)
    }


def grams(left: Inputs, right: Inputs, *, same: bool = False) -> list[list[Bounded]]:
    """Inner products of the tokens of two copies, of shapes that broadcast to (N, M)."""
    tokens = range(left.rows.shape[1])
    own, other, cross = left.squares, right.squares, left.products(right)
    if same:
        every = np.arange(len(left.rows))
        cross[:, :, every, every] = 0.0
    top = [
        [Bounded(own[:, p, q][:, None]) for q in tokens] + [Bounded(cross[p, q]) for q in tokens]
        for p in tokens
    ]
    bottom = [
        [Bounded(cross[q, p]) for q in tokens] + [Bounded(other[:, p, q][None, :]) for q in tokens]
        for p in tokens
    ]
    return top + bottom


def aligned(left: Inputs, right: Inputs) -> list[list[Bounded]]:
    """Inner products of input i on the left with input i on the right alone, of shape (N,)."""
    both = np.concatenate([left.rows, right.rows], axis=1)
    found = Inputs(both, left.scale).squares
    every = range(both.shape[1])
    error = np.finfo(float).eps * np.sqrt(both.shape[2])
    sizes = np.sqrt(np.abs(np.diagonal(found, axis1=1, axis2=2)))
    return [
        [Bounded(found[:, p, q], error * sizes[:, p] * sizes[:, q]) for q in every] for p in every
    ]


def _tiles(rows: int, columns: int, side: int, *, symmetric: bool) -> Iterator[Tile]:
    for i in range(0, rows, side):
        for j in range(i if symmetric else 0, columns, side):
            yield slice(i, min(i + side, rows)), slice(j, min(j + side, columns))
