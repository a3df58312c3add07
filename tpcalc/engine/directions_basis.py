"""Orthonormal directions on samples, built one vector after another.

Gram-Schmidt in coordinates: a vector is known by its inner products with the directions, its
residual by Pythagoras. In memory lie the vectors themselves, each divided by its length; a small
triangle says how directions combine them, so that no direction is ever formed. Where a vector
nearly lies in the span, that would lose orthogonality; there the residual is formed, projected once
more (one pass) and stored instead. Replicates grow side by side; where one of them needs such a
residual it is done for that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine import kernels, kernels_growth
from tpcalc.engine.crew import share
from tpcalc.engine.directions_store import NO_MEMORY, Memory, Store, Vector, full_store
from tpcalc.errors import Exploded

# Rounding of one inner product, and what deviation from orthogonality is allowed, for each storage.
ROUNDING = {8: 2e-16, 4: 2e-9}
DEVIATION = {8: 1e-11, 4: 1e-5}
FLOOR = {8: 1e-13, 4: 2e-6}  # of the tolerance: a repeated vector leaves this much by rounding
CLEAN = 0.99  # part of a residual^2 off the span above which it is not projected again
SMALL, LARGE = 1e-280, 1e280  # squares outside are formed after scaling

Counts = Index


@dataclass(frozen=True, slots=True)
class Push:
    """What a push found."""

    coords: Array  # coordinates of the pushed vectors, shape (replicates, B, rows after the push)
    before: Counts  # number of directions before, of each replicate
    new: Counts  # how many were added
    columns: Counts  # which of the pushed vectors brought new direction m, shape (replicates, B)
    # sums over the samples of row i of the other store times vector j, shape (replicates, rows, B),
    # if it was asked for
    beside: Array | None = None

    def places(self) -> Iterator[tuple[int, int | None, int]]:
        """New directions in order: number, replicate (None: all of them alike), row."""
        first = int(self.before[0])
        if (self.before == first).all() and (self.new == self.new[0]).all():
            for m in range(int(self.new[0])):
                yield m, None, first + m
        else:
            for r, (row, count) in enumerate(zip(self.before, self.new, strict=True)):
                for m in range(int(count)):
                    yield m, r, int(row) + m


def left_the_range(what: str) -> Exploded:
    """The error of numbers of a matrix product that are none."""
    return Exploded(
        f"{what} of a matrix product left the floating-point range: it holds infinities or NaN.",
        hint="Lower the learning rate or the number of steps.",
    )


class Basis(Store):
    """Orthonormal rows q_i, (1/N) q_i·q_j = δ_ij, that span the vectors pushed so far.

    Source: Smoktunowicz, Barlow and Langou, A note on the error analysis of classical Gram-Schmidt
    (2006): with the Pythagorean residual the loss of orthogonality is bounded by the squared
    condition number, which is what decides here when to project again.

    Example:
        >>> basis = Basis(size=4, capacity=2)
        >>> x = np.zeros(512)
        >>> x[:4] = [1.0, 1.0, 1.0, 1.0]
        >>> basis.push([x, 2 * x]).coords.tolist()
        [[[1.0], [2.0]]]
    """

    def __init__(
        self,
        size: int,
        capacity: int,
        dtype: DTypeLike = np.float64,
        block: int = 512,
        tolerance: float = 1e-5,
        replicates: int = 1,
        memory: Memory = NO_MEMORY,
    ) -> None:
        super().__init__(size, capacity, dtype, block, replicates, memory)
        entry = self.data.itemsize
        self.tolerance = max(tolerance, FLOOR[entry])
        self._limits = (self.tolerance, ROUNDING[entry], DEVIATION[entry])
        self._work = np.zeros(0)
        # Row m: direction m on the rows in memory; that row in directions. Both are triangular.
        self._triangle = np.zeros((replicates, capacity, capacity))
        self._made = np.zeros((replicates, capacity, capacity))
        self._growth = np.ones(replicates)  # the largest square of a row of the first
        self.min_ratios = np.ones(replicates)

    def clear(self) -> None:
        """Forget all directions, keep the memory."""
        super().clear()
        self.min_ratios[:] = 1.0
        self._growth[:] = 1.0

    # -- reading ---------------------------------------------------------------------------------

    def raw_coefficients(self, coefficients: Vector) -> Vector:
        """Coefficients on the rows as they lie in memory."""
        out = coefficients.copy()
        self._each(out, kernels_growth.on_rows)
        return out

    def dots(self, vectors: Sequence[Vector], used: Counts | None = None) -> Array:
        """Sums over the samples of direction i times vector j, shape (replicates, rows, B)."""
        return self._of_directions(super().dots(vectors, used))

    def dots_with(self, other: Store, first: Counts, used: Counts) -> Array:
        """The same with rows ``first``, ... of a store, ``used`` of each replicate."""
        return self._of_directions(super().dots_with(other, first, used))

    def _of_directions(self, sums: Array) -> Array:
        """Sums (replicates, rows, B) over rows in memory as those over directions."""
        found = sums.transpose(0, 2, 1).copy()
        self._each(found, kernels_growth.on_directions)
        return found.transpose(0, 2, 1)

    def _each(self, numbers: Array, turn: Callable[[NDArray[Any], Counts, Vector], None]) -> None:
        """Turn numbers of rows in memory into numbers of directions, or back, in place."""

        def work(own: slice) -> None:
            turn(numbers[own], self.counts[own], self._triangle[own])

        share(len(numbers), numbers.size * numbers.shape[2], work)

    def reveal(
        self,
        known: Array,
        transpose: bool,
        overlaps: Array,
        push: Push,
        others: Counts,
        target: Array,
        size: int,
    ) -> None:
        """``kernels_growth.reveal`` for the rows of a push."""
        kernels_growth.reveal(
            known, transpose, overlaps, push.before, push.new, others, self._made, target, size
        )

    # -- growing ---------------------------------------------------------------------------------

    def push(
        self,
        vectors: Sequence[Vector],
        used: Counts | None = None,
        beside: Store | None = None,
    ) -> Push:
        """Coordinates of vectors in the basis, which grows where they leave its span.

        One pass over the basis for all of them. (1/N) x_j·x_k = coords[j]·coords[k], up to the
        tolerance. Zero vectors and repeated vectors are fine.
        """
        count, before = len(vectors), self.counts.copy()
        stores = [(one.data, one.counts) for one in (self, beside) if one is not None]
        (overlaps, *others), gram = kernels.dots(stores, vectors, True, used)
        scales = self._scales(vectors, gram, used)
        if scales is not None:
            lines = (self.replicates, -1)
            vectors = [
                (x.reshape(lines) / scale[:, None]).reshape(-1)
                for x, scale in zip(vectors, scales.T, strict=True)
            ]
            scaled = (scales != 1).any(axis=1)  # others keep their bits
            (again,), square = kernels.dots(stores[:1], vectors, True, used)
            overlaps[scaled], gram[scaled] = again[scaled], square[scaled]
        width = overlaps.shape[1]
        coords = np.zeros((self.replicates, count, min(width + count, self.capacity)))
        gram /= self.size
        np.divide(overlaps.transpose(0, 2, 1), self.size, out=coords[:, :, :width])
        self._each(coords, kernels_growth.on_directions)
        new, columns = np.zeros_like(before), np.zeros((self.replicates, count), np.int64)
        self._grow(vectors, gram, coords, new, columns)
        coords = coords[:, :, : self.rows]
        if scales is not None:
            coords = coords * scales[:, :, None]
        return Push(coords, before, new, columns, *others)

    def _grow(
        self, vectors: Sequence[Vector], gram: Vector, coords: Vector, new: Counts, columns: Counts
    ) -> None:
        """Add the directions of all columns, and the coordinates of columns on them."""
        stopped = np.zeros_like(new)
        scale, places = np.zeros(columns.shape), kernels.addresses(self.data, vectors)

        def work(own: slice) -> None:
            kernels_growth.grow(
                gram[own], coords[own], self.counts[own], self._triangle[own], self._made[own],
                self._growth[own], self.min_ratios[own], self._limits, new[own], columns[own],
                scale[own], stopped[own],
            )  # fmt: skip

        while True:
            added = new.copy()
            share(len(new), coords.size * coords.shape[2], work)
            self._append(added, new, columns, scale, places)
            left = stopped.tolist()
            if max(left) < 0:
                if min(left) == kernels_growth.FULL:
                    raise full_store(self.capacity)
                return
            for r in np.flatnonzero(stopped >= 0).tolist():
                column = int(stopped[r])
                if self._grow_explicitly(r, column, vectors, gram[r], coords[r]):
                    columns[r, new[r]] = column
                    new[r] += 1
                stopped[r] += 1

    def _append(
        self, first: Counts, new: Counts, columns: Counts, scale: Vector, places: Counts
    ) -> None:
        """Store multiples of the vectors at ``places`` as the rows ``first`` .. ``new``."""
        blocks = len(self.data) // len(new)

        def work(own: slice) -> None:
            start = own.start * blocks
            kernels_growth.append(
                self.data[start : own.stop * blocks], self.counts[own], first[own], new[own],
                columns[own], scale[own], places + 8 * self.block * start,
            )  # fmt: skip

        share(len(new), int((new - first).sum()) * blocks * self.block, work)

    def _scales(self, vectors: Sequence[Vector], gram: Array, used: Counts | None) -> Array | None:
        """Numbers to divide vectors by, where squares leave the floating-point range."""
        squares = gram.diagonal(axis1=1, axis2=2)
        if squares.min() > SMALL and squares.max() < LARGE:
            return None
        scales = np.ones(squares.shape)
        for r, j in np.argwhere(~((squares > SMALL) & (squares < LARGE))).tolist():
            if used is not None and j >= used[r]:
                continue
            x = vectors[j].reshape(len(squares), -1)[r]
            largest = max(float(x.max()), -float(x.min()))
            if not math.isfinite(largest):
                raise left_the_range(f"vector {j}")
            scales[r, j] = largest if largest > 0 else 1.0
        return None if np.all(scales == 1.0) else scales

    def _grow_explicitly(
        self, r: int, j: int, vectors: Sequence[Vector], gram: Vector, coords: Vector
    ) -> bool:
        """For a vector that nearly lies in the span: form its residual, project again."""
        blocks, rows = len(self.data) // self.replicates, int(self.counts[r])
        data, own = self.data[r * blocks : (r + 1) * blocks], slice(r, r + 1)
        triangle, counts = self._triangle[own], self.counts[own]
        samples = len(vectors[j]) // self.replicates
        part = slice(r * samples, (r + 1) * samples)
        if not len(self._work):
            self._work = np.zeros(samples)
        norm = math.sqrt(gram[j, j])
        source, factor = vectors[j][part], coords[j, :rows].copy()
        coords[j, :rows] = 0.0
        for _ in range(3):
            coords[j, :rows] += factor
            kernels_growth.on_rows(factor[None, None], counts, triangle)
            factor, rest = kernels.residual(data, rows, source, factor, self._work)
            kernels_growth.on_directions(factor[None, None], counts, triangle)
            source, factor, rest = self._work, factor / self.size, rest / self.size
            left = rest - float(np.dot(factor, factor))
            if left <= (self.tolerance * norm) ** 2:
                return False
            if left > CLEAN * rest:
                break
        else:  # rounding errors are all that is left
            return False
        if rows == self.capacity:
            raise full_store(rows)
        coords[j, :rows] += factor
        length, rest = math.sqrt(left), math.sqrt(rest)
        np.multiply(
            source.reshape(-1, self.block), 1 / rest,
            out=data[:, rows], casting="same_kind",
        )  # fmt: skip
        self._made[r, rows, :rows], self._made[r, rows, rows] = factor / rest, length / rest
        mine = self._triangle[r, rows]
        mine[:rows], mine[rows] = -factor / length, 0.0
        kernels_growth.on_rows(mine[None, None], counts, triangle)
        mine[rows] = rest / length
        self._growth[r] = max(self._growth[r], float(np.dot(mine[: rows + 1], mine[: rows + 1])))
        self.min_ratios[r] = min(self.min_ratios[r], length / norm)
        self.counts[r] += 1
        coords[j, rows] = length
        for i in range(j + 1, len(coords)):
            overlap = float(kernels.dot(source, vectors[i][part])[0]) / self.size
            coords[i, rows] = (overlap - float(np.dot(factor, coords[i, :rows]))) / length
        return True
