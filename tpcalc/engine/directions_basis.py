"""Orthonormal directions on samples, built one vector after another.

Gram-Schmidt in coordinates: a vector is known by its inner products with the directions, its
residual by Pythagoras; the new direction is stored raw and finalised by the next pass that reads
the basis, which costs no pass of its own. Where a vector nearly lies in the span, that would lose
orthogonality; there the residual is formed and projected once more (one pass).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tpcalc.engine import kernels
from tpcalc.engine.directions_store import Store, Vector
from tpcalc.errors import Exploded

__all__ = ["Added", "Basis", "Push"]

NEAR = 0.01  # residual^2 / |x|^2 below which the residual is formed and projected again
# Rounding of one inner product, and what deviation from orthogonality is allowed, for each storage.
ROUNDING = {8: 2e-16, 4: 2e-9}
DEVIATION = {8: 1e-11, 4: 1e-5}
FLOOR = {8: 1e-13, 4: 2e-6}  # of the tolerance: a repeated vector leaves this much by rounding
AMPLIFICATION = 1e4  # of rounding errors in combinations of raw rows
SMALL, LARGE = 1e-280, 1e280  # squares outside are formed after scaling


@dataclass(frozen=True, slots=True)
class Added:
    """How a direction came about: ``q = (source - sum_i factor_i q_i) * inverse``.

    Args:
        row: Its number.
        column: Which of the pushed vectors brought it.
        source: The vector, or its residual where that was formed.
        factor: Coefficients on the earlier directions, shape (row,).
        inverse: One over the length of the residual.
    """

    row: int
    column: int
    source: Vector
    factor: NDArray[np.float64]
    inverse: float


@dataclass(frozen=True, slots=True)
class Push:
    """Coordinates of the pushed vectors, shape (B, rows after the push), and what was added."""

    coords: NDArray[np.float64]
    added: tuple[Added, ...]


@dataclass(frozen=True, slots=True)
class _Batch:
    """The vectors of one push, their coordinates so far, their inner products (averages)."""

    vectors: Sequence[Vector]
    coords: NDArray[np.float64]
    gram: NDArray[np.float64]


class Basis:
    """Orthonormal rows q_i, (1/N) q_i·q_j = δ_ij, that span the vectors pushed so far.

    Args:
        size: Number of samples N.
        capacity: Largest number of directions.
        dtype: Storage type, float64 or float32.
        block: Samples in a block.
        tolerance: Residuals below this part of their vector add no direction (at least the
            rounding of the storage counts: 1e-13, or 2e-6 in single precision).

    Attributes:
        store: The rows; the newest ones may be raw (see ``finalise``).
        min_ratio: Smallest accepted residual as a part of its vector (1.0 at the start).

    Source: Smoktunowicz, Barlow and Langou, A note on the error analysis of classical Gram-Schmidt
    (2006): with the Pythagorean residual the loss of orthogonality is bounded by the squared
    condition number, which is what decides here when to project again.

    Example:
        >>> basis = Basis(size=4, capacity=2)
        >>> x = np.zeros(512)
        >>> x[:4] = [1.0, 1.0, 1.0, 1.0]
        >>> basis.push([x, 2 * x]).coords.tolist()
        [[1.0], [2.0]]
    """

    def __init__(
        self,
        size: int,
        capacity: int,
        dtype: DTypeLike = np.float64,
        block: int = 512,
        tolerance: float = 1e-5,
    ) -> None:
        self.store = Store(size, capacity, dtype, block)
        entry = self.store.data.itemsize
        self.tolerance = max(tolerance, FLOOR[entry])
        self._rounding = ROUNDING[entry]
        self._deviation = DEVIATION[entry]
        self._work = np.zeros(0)
        self.clear()

    def clear(self) -> None:
        """Forget all directions, keep the memory."""
        self.store.clear()
        self.min_ratio = 1.0
        self._raw: list[tuple[NDArray[np.float64], float]] = []  # (factor, inverse) of raw rows
        self._blown: list[float] = []  # how much a raw row enlarges rounding errors
        # Inverse of the triangular factor of the (normalised) vectors, and its largest column^2.
        self._triangle = np.zeros((16, 16))
        self._growth = 1.0

    @property
    def rows(self) -> int:
        """Number of directions."""
        return self.store.rows

    @property
    def size(self) -> int:
        """Number of samples."""
        return self.store.size

    @property
    def data(self) -> NDArray[Any]:
        """The rows in block layout, the newest ones raw."""
        return self.store.data

    # -- reading ---------------------------------------------------------------------------------

    def raw_coefficients(self, coefficients: Vector) -> Vector:
        """Coefficients on the rows as they lie in memory, where the newest may be raw.

        A combination of finalised rows is one of raw rows and older ones, so nothing has to be
        finalised in order to be read.

        Args:
            coefficients: Shape (B, k), k at most the number of rows.
        """
        count = coefficients.shape[1]
        first = self.rows - len(self._raw)
        if count <= first:
            return coefficients
        out = coefficients.copy()
        for row in range(count - 1, first - 1, -1):
            factor, inverse = self._raw[row - first]
            out[:, row] *= inverse
            out[:, :row] -= np.multiply.outer(out[:, row], factor)
        return out

    def dots(self, vectors: Sequence[Vector]) -> NDArray[np.float64]:
        """Sums over the samples of direction i times vector j, shape (rows, B)."""
        return self._dots(vectors, gram=False)[0]

    def finalise(self) -> None:
        """Finalise raw rows now, in a pass of its own."""
        if self._raw:
            self._dots([], gram=False)

    def _pending(self) -> kernels.Pending | None:
        if not self._raw:
            return None
        rows = self.rows
        factors = np.zeros((len(self._raw), rows))
        for m, (factor, _) in enumerate(self._raw):
            factors[m, : len(factor)] = factor
        return kernels.Pending(
            rows - len(self._raw), factors, np.array([inverse for _, inverse in self._raw])
        )

    def _done(self) -> None:
        self._raw, self._blown = [], []

    def _dots(self, vectors: Sequence[Vector], gram: bool) -> tuple[Vector, Vector]:
        found = kernels.dots(self.data, self.rows, vectors, self._pending(), gram)
        self._done()
        return found

    # -- growing ---------------------------------------------------------------------------------

    def push(self, vectors: Sequence[Vector]) -> Push:
        """Coordinates of vectors in the basis, which grows where they leave its span.

        One pass over the basis for all of them. (1/N) x_j·x_k = coords[j]·coords[k], up to the
        tolerance. Zero vectors and repeated vectors are fine.

        Args:
            vectors: Flat float64 vectors of padded length.

        Raises:
            Exploded: A vector holds infinities or NaN.
            EvaluationError: The capacity is used up.
        """
        before, count = self.rows, len(vectors)
        overlaps, gram = self._dots(vectors, gram=True)
        scales = self._scales(vectors, np.diagonal(gram))
        if scales is not None:
            push = self.push([x / scale for x, scale in zip(vectors, scales, strict=True)])
            return Push(push.coords * scales[:, None], push.added)
        gram /= self.size
        coords = np.zeros((count, before + count))
        coords[:, :before] = overlaps.T / self.size
        batch = _Batch(vectors, coords, gram)
        added = tuple(new for j in range(count) if (new := self._grow(j, batch)) is not None)
        if self._blown and max(self._blown) > AMPLIFICATION:
            self.finalise()
        return Push(coords[:, : self.rows], added)

    def _scales(
        self, vectors: Sequence[Vector], squares: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Numbers to divide vectors by, where squares leave the floating-point range."""
        if all(SMALL < square < LARGE for square in squares.tolist()):
            return None
        scales = np.ones(len(vectors))
        for j, (x, square) in enumerate(zip(vectors, squares.tolist(), strict=True)):
            if not SMALL < square < LARGE:
                largest = max(float(x.max()), -float(x.min()))
                if not math.isfinite(largest):
                    raise Exploded(
                        f"vector {j} of a matrix product left the floating-point range: it holds "
                        "infinities or NaN.",
                        hint="Lower the learning rate or the number of steps.",
                    )
                scales[j] = largest if largest > 0 else 1.0
        return None if np.all(scales == 1.0) else scales

    def _grow(self, j: int, batch: _Batch) -> Added | None:
        """Add the direction of column j, if it has one, and the coordinates of later columns."""
        rows, coords = self.rows, batch.coords
        square = float(batch.gram[j, j])
        if square == 0.0:
            return None
        norm = math.sqrt(square)
        mine = coords[j, :rows].copy()
        left = (square - float(np.dot(mine, mine))) / square
        doubt = 4 * self._loss(self._growth) + 1e-14
        if left + doubt < self.tolerance**2:
            return None
        column = self._column(mine / norm, left) if left > NEAR else None
        if column is None:
            return self._grow_explicitly(j, batch, norm)
        length = math.sqrt(left) * norm
        self._extend(column)
        added = self._append(Added(rows, j, batch.vectors[j], mine, 1 / length), norm)
        self.min_ratio = min(self.min_ratio, math.sqrt(left))
        coords[j, rows] = length
        later = slice(j + 1, len(coords))
        coords[later, rows] = (batch.gram[later, j] - coords[later, :rows] @ mine) / length
        return added

    def _grow_explicitly(self, j: int, batch: _Batch, norm: float) -> Added | None:
        """The same for a vector that nearly lies in the span: form its residual, project again."""
        rows, coords = self.rows, batch.coords
        if not len(self._work):
            self._work = np.zeros(len(batch.vectors[j]))
        source, factor = batch.vectors[j], coords[j, :rows].copy()
        coords[j, :rows] = 0.0
        for _ in range(3):
            coords[j, :rows] += factor
            again, rest = kernels.residual(
                self.data, rows, source, factor, self._work, self._pending()
            )
            self._done()
            source, factor, rest = self._work, again / self.size, rest / self.size
            left = rest - float(np.dot(factor, factor))
            if left <= (self.tolerance * norm) ** 2:
                return None
            if left > NEAR * rest:
                break
        else:  # rounding errors are all that is left
            return None
        coords[j, :rows] += factor
        length = math.sqrt(left)
        self._extend(np.append(np.zeros(rows), 1.0))
        source = self._work.copy()
        added = self._append(Added(rows, j, source, factor, 1 / length), math.sqrt(rest))
        self.min_ratio = min(self.min_ratio, length / norm)
        coords[j, rows] = length
        for i in range(j + 1, len(coords)):
            overlap = kernels.dot(source, batch.vectors[i]) / self.size
            coords[i, rows] = (overlap - float(np.dot(factor, coords[i, :rows]))) / length
        return added

    def _append(self, added: Added, norm: float) -> Added:
        """Store a raw row, scaled so that single precision can hold it."""
        row = self.store.reserve()
        view = self.store.row_view(row)
        np.multiply(added.source.reshape(view.shape), 1 / norm, out=view, casting="same_kind")
        factor, inverse = added.factor / norm, norm * added.inverse
        first = row - len(self._raw)
        old, new = factor[:first], np.abs(factor[first:])
        blown = 1.0 + float(np.linalg.norm(old)) + float(np.dot(new, self._blown))
        self._raw.append((factor, inverse))
        self._blown.append(blown * inverse)
        return added

    # -- orthogonality ---------------------------------------------------------------------------

    def _loss(self, growth: float) -> float:
        """Estimated deviation of the directions from orthogonality."""
        return 4 * self._rounding * math.sqrt(self.rows + 1) * growth

    def _column(self, mine: NDArray[np.float64], left: float) -> NDArray[np.float64] | None:
        """The next column of the inverse triangle; None if it would cost too much orthogonality."""
        rows = len(mine)
        column = np.append(-(self._triangle[:rows, :rows] @ mine), 1.0) / math.sqrt(left)
        size = float(np.dot(column, column))
        return column if self._loss(size) <= self._deviation else None

    def _extend(self, column: NDArray[np.float64]) -> None:
        count = len(column)
        if count > len(self._triangle):
            larger = np.zeros((2 * count, 2 * count))
            larger[: count - 1, : count - 1] = self._triangle[: count - 1, : count - 1]
            self._triangle = larger
        self._triangle[:count, count - 1] = column
        self._growth = max(self._growth, float(np.dot(column, column)))
