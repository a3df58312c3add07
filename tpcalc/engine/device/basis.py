"""Orthonormal directions as tensors: Gram-Schmidt of whole batches, twice against those there are.

A batch is projected off the directions, and what is left once more: this is stable in any
precision, however little is left, so that nothing has to be stored raw or finalised as on the CPU.
What the residuals of a batch are to each other is a small matrix of inner products; it is the one
thing that the host waits for, because which vectors bring a direction decides what is drawn there.
Coordinates are float64 in any storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.device.rows import Place, Store, combine
from tpcalc.engine.directions_basis import Push, left_the_range
from tpcalc.engine.directions_store import SampleSpace

# For entries of 8 and of 4 bytes: rounding of an inner product of unit vectors, the deviation from
# orthogonality that is allowed, and what rounding leaves of a vector that is in the span.
ROUNDING = {8: 2e-16, 4: 2e-8}
DEVIATION = {8: 1e-11, 4: 1e-5}
FLOOR = {8: 1e-13, 4: 2e-6}
NEAR = 0.01  # residual^2 / |x|^2 below which a vector of a batch is projected by itself


@dataclass(frozen=True)
class Batch:
    """Vectors side by side, divided by powers of two so that squares stay in the range."""

    samples: Any  # shape (blocks, B, block)
    scales: Any  # what they were divided by, float64 of (replicates, B)


def batch_of(place: Place, vectors: list[Any], replicates: int) -> Batch:
    """Vectors (blocks, block) as a batch."""
    torch = place.torch
    samples = torch.stack(vectors, 1)
    lines = samples.view(replicates, -1, len(vectors), samples.shape[2])
    largest = lines.abs().amax((1, 3)).double()
    # A number that is not finite has any exponent: it stays what it is.
    scales = torch.exp2(torch.frexp(largest).exponent.double() - 1)
    scales = torch.where(torch.isfinite(largest) & (largest > 0), scales, 1.0)
    lines /= scales[:, None, :, None].to(place.dtype)
    return Batch(samples, scales)


class Basis(Store):
    """Orthonormal rows q_i, (1/N) q_i·q_j = δ_ij, that span the vectors pushed so far.

    Source: Giraud, Langou, Rozloznik, van den Eshof, Rounding error analysis of the classical
    Gram-Schmidt orthogonalization process (2005): two projections keep the directions orthogonal
    to rounding.
    """

    def __init__(self, space: SampleSpace, capacity: int, tolerance: float, place: Place) -> None:
        super().__init__(space, capacity, place)
        self.tolerance = max(tolerance, FLOOR[place.entry])
        self.min_ratios = np.ones(space.replicates)

    def push(self, batch: Batch) -> Push:
        """Coordinates of vectors in the basis, which grows where they leave its span."""
        replicates, count = self.space.replicates, batch.samples.shape[1]
        before = self.counts.copy()
        coords = self.place.zeros(replicates, count, self.rows + count, double=True)
        columns = np.zeros((replicates, count), np.int64)
        begin, end = 0, count
        while begin < count:
            done = self._grow_by(batch.samples, begin, end, coords, columns, before)
            # A vector near to others of the batch comes by itself, then those after it.
            begin, end = done, done + 1 if done < end else count
        coords = coords[:, :, : self.rows] * batch.scales[:, :, None]
        return Push(coords, before, self.counts - before, columns)

    def _grow_by(
        self, batch: Any, begin: int, end: int, coords: Any, columns: Any, before: Any
    ) -> int:
        """Add the directions of some columns; returns the first column that was not done."""
        place, size, replicates = self.place, self.space.size, self.space.replicates
        rest, rows = batch[:, begin:end], self.rows
        lines = rest.reshape(replicates, -1, end - begin, rest.shape[2])
        squares = (lines * lines).sum((1, 3), dtype=place.torch.float64) / size
        if rows:
            known = place.zeros(replicates, end - begin, rows, double=True)
            for _ in range(2):
                part = self.dots(rest) / size
                rest = rest - combine([(self.data[:, :rows], part)])
                known += part
            coords[:, begin:end, :rows] = known
        gram = place.dots(rest, rest, replicates) / size
        found = place.host(place.torch.cat([gram, squares[..., None]], 2))
        bad = ~np.isfinite(found).all((0, 2))
        if bad.any():
            raise left_the_range(f"vector {begin + int(bad.argmax())}")
        factor = _Factor(found[:, :, :-1], found[:, :, -1], self.tolerance, place.entry)
        self._take(rest[:, : factor.done], factor, begin, coords, columns, before)
        return begin + factor.done

    def _take(
        self, rest: Any, factor: _Factor, begin: int, coords: Any, columns: Any, before: Any
    ) -> None:
        """Store the new directions of residuals, and their coordinates on them."""
        done, new, rows = factor.done, factor.taken.sum(1), self.counts.copy()
        most = int(new.max(initial=0))
        if not most:
            return
        inverse = np.zeros((len(new), most, done))
        lower = np.zeros((len(new), done, rows.max() + most - rows.min()))
        for r, taken in enumerate(factor.taken):
            held, first = np.flatnonzero(taken), rows[r] - rows.min()
            inverse[r, : len(held)] = factor.inverse[r, held]
            lower[r, :, first : first + len(held)] = factor.lower[r][:, held]
            start = rows[r] - before[r]
            columns[r, start : start + len(held)] = begin + held
        self.extend(combine([(rest, self.place.numbers(inverse))]), new)
        first = int(rows.min())
        coords[:, begin : begin + done, first : first + lower.shape[2]] += self.place.numbers(lower)
        self.min_ratios = np.minimum(self.min_ratios, factor.ratios)


class _Factor:
    """The triangular factor of the residuals of a batch, on the host."""

    def __init__(self, gram: Array, squares: Array, tolerance: float, entry: int) -> None:
        replicates, count = squares.shape
        own = np.einsum("rii->ri", gram)
        gone = own <= tolerance**2 * squares
        norms = np.sqrt(np.where(gone, 1.0, own))
        gram = gram / (norms[:, :, None] * norms[:, None, :])
        least = tolerance**2 * squares / norms**2  # of the residual, whose square is 1
        lower, inverse = np.zeros(gram.shape), np.zeros(gram.shape)
        taken, self.ratios = np.zeros((replicates, count), bool), np.ones(replicates)
        self.done: int = count
        for j in range(count):
            mine = lower[:, j, :j]
            left = 1.0 - np.einsum("ri,ri->r", mine, mine)
            column = -np.einsum("ri,rij->rj", mine, inverse[:, :j])
            column[:, j] = 1.0
            size = np.einsum("ri,ri->r", column, column) / np.maximum(left, NEAR)
            rounding = 16 * ROUNDING[entry] * np.sqrt(j + 1.0)
            blurred = rounding * size > 4 * DEVIATION[entry]
            new = ~gone[:, j] & ~(left + rounding + 1e-14 < least[:, j])
            if j and (new & (~(left > NEAR) | blurred)).any():
                self.done = j
                break
            length = np.sqrt(np.where(new, left, 1.0))
            taken[:, j] = new
            inverse[:, j] = np.where(new[:, None], column / length[:, None], 0.0)
            lower[:, j, j] = np.where(new, length, 0.0)
            after = gram[:, j + 1 :, j] - np.einsum("rki,ri->rk", lower[:, j + 1 :, :j], mine)
            lower[:, j + 1 :, j] = np.where(new[:, None], after / length[:, None], 0.0)
            part = length * norms[:, j] / np.sqrt(np.where(new, squares[:, j], 1.0))
            self.ratios = np.minimum(self.ratios, np.where(new, part, 1.0))
        done = self.done
        self.taken = taken[:, :done]
        self.lower = lower[:, :done, :done] * norms[:, :done, None]
        self.inverse = inverse[:, :done, :done] / norms[:, None, :done]
