"""Kernels of many inputs: entries evaluated tile by tile, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.doors.machine import available_cores
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.numeric import Numeric
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries
from tpcalc.results import Method
from tpcalc.tasks.alone import alone
from tpcalc.tasks.run import elsewhere, error_of, outcomes
from tpcalc.tasks.task import Task

Tile = tuple[slice, slice]
Shared = tuple[Entries, "Inputs", "Inputs | None", tuple[str, ...], Numeric]
Evaluated = tuple[dict[tuple[str, int, int], Array], set[Method]]

SIDE = 192  # inputs of a tile: its arrays fit the second-level cache
LONG = 512  # where quadrature prepares each input once for a tile


@dataclass(frozen=True)
class Inputs:
    """Inputs of a network, token by token.

    Example:
        >>> Inputs(np.ones((2, 1, 3)), 1 / 3).squares.tolist()
        [[[1.0]], [[1.0]]]
    """

    rows: Array  # of shape (N, T, d)
    scale: float  # the factor of inner products at the first layer

    @property
    def squares(self) -> Array:
        """Inner products of the tokens of one input, of shape (N, T, T)."""
        found: Array = self.scale * np.einsum("npd,nqd->npq", self.rows, self.rows)
        return found

    def products(self, other: Inputs) -> Array:
        """Inner products of tokens of two sets of inputs, of shape (T, T, N, M)."""
        count, tokens, size = self.rows.shape
        flat = self.rows.reshape(-1, size) @ other.rows.reshape(-1, size).T
        split = flat.reshape(count, tokens, len(other.rows), tokens)
        return self.scale * split.transpose(1, 3, 0, 2)

    def at(self, places: Any) -> Inputs:
        """Some of the inputs."""
        return Inputs(self.rows[places], self.scale)


@dataclass
class Tiled:
    """A kernel, with the least certain method of its entries."""

    matrices: dict[str, Array]  # for each kind the matrix, of shape (N, K, M, K)
    methods: set[Method] = field(default_factory=set)  # the methods of its entries


def tiled(
    pair: Entries,
    single: Entries,
    left: Inputs,
    right: Inputs | None,
    kinds: Sequence[str],
    numeric: Numeric,
    threads: int | None,
    progress: Progress | None,
) -> Tiled:
    """All entries of a kernel."""
    other = left if right is None else right
    outputs = pair.tangent.outputs
    shape = (len(left.rows), outputs, len(other.rows), outputs)
    found = Tiled({kind: np.empty(shape) for kind in kinds})
    own = _diagonal(single, left, kinds, numeric, found)

    side = LONG if Method.QUADRATURE in found.methods else SIDE
    tiles = list(_tiles(len(left.rows), len(other.rows), side, symmetric=right is None))
    shared = pair, left, right, tuple(kinds), numeric
    for (rows, columns), (blocks, methods) in _computed(shared, tiles, threads, progress):
        found.methods.update(methods)
        for (kind, k, m), block in blocks.items():
            found.matrices[kind][rows, k, columns, m] = block
            if right is None and rows != columns:
                found.matrices[kind][columns, m, rows, k] = block.T
    if right is None:
        every = np.arange(len(left.rows))
        for (kind, k, m), values in own.items():
            found.matrices[kind][every, k, every, m] = values
    return found


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


def _diagonal(
    single: Entries, inputs: Inputs, kinds: Sequence[str], numeric: Numeric, tiled: Tiled
) -> dict[tuple[str, int, int], Any]:
    """Entries of an input with itself, where a correlation rounded below 1 would lose digits."""
    squares = inputs.squares
    tokens = range(inputs.rows.shape[1])
    gram = [[_given(squares[:, p, q]) for q in tokens] for p in tokens]
    evaluated = single.at(gram, numeric)
    outputs = range(single.tangent.outputs)
    own = {}
    for kind, k, m in product(kinds, outputs, outputs):
        answer = evaluated.entry(kind, 0, k, 0, m)
        tiled.methods.add(answer.method)
        own[kind, k, m] = answer.value
    return own


def grams(left: Inputs, right: Inputs, *, same: bool = False) -> list[list[Bounded]]:
    """Inner products of the tokens of two copies, of shapes that broadcast to (N, M)."""
    tokens = range(left.rows.shape[1])
    own, other, cross = left.squares, right.squares, left.products(right)
    if same:
        every = np.arange(len(left.rows))
        cross[:, :, every, every] = 0.0
    top = [
        [_given(own[:, p, q][:, None]) for q in tokens] + [_given(cross[p, q]) for q in tokens]
        for p in tokens
    ]
    bottom = [
        [_given(cross[q, p]) for q in tokens] + [_given(other[:, p, q][None, :]) for q in tokens]
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


def _given(values: Array) -> Bounded:
    return Bounded(values, 0.0)


def _tiles(rows: int, columns: int, side: int, *, symmetric: bool) -> Iterator[Tile]:
    for i in range(0, rows, side):
        for j in range(i if symmetric else 0, columns, side):
            yield slice(i, min(i + side, rows)), slice(j, min(j + side, columns))
