"""Haar matrices that are never formed: two matching orthonormal frames.

C has orthonormal columns and a Haar law; it maps the smaller space S into the larger space L. With
averages for inner products T = C / sqrt(dim S / dim L) keeps lengths, T*T = 1. Rows of zeros make
it square: O acts on the coordinates of S and of a space S' that nobody reads. What is known of O is
the image of some orthonormal directions p_i of L, a row of coordinates in S and S' each:

* ``T* y``: the part of y in the span of the p_i goes where they go. The rest is a new direction;
  its image is uniform on the complement of the known images. In the limit that is a fresh Gaussian
  of variance dim S / dim L in S, and the rest of its length in S'.
* ``T h``: h is a vector of S with nothing in S'. Its part in the span of the known images goes back
  to their p_i; the rest comes from a fresh direction of L, uniform on the complement of the p_i.

What lies in a span has no fresh part: C^T C h = h holds to rounding, and so does C C^T v = v where
the spaces have one size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from tpcalc.arrays import Array, Index
from tpcalc.engine.directions import (
    MatrixSide,
    Normals,
    Product,
    Spaces,
    TwoSided,
    check_spaces,
)
from tpcalc.engine.directions_basis import Push
from tpcalc.engine.directions_store import SampleSpace, Vector
from tpcalc.engine.draws import Draws

Law = Literal["limit", "finite"]
SINGULAR = 1e-6  # of a draw: what is left of it in a space that is used up


def haar_side(
    space: SampleSpace, output: SampleSpace, capacity: int, dtype: DTypeLike, tolerance: float
) -> MatrixSide:
    """What one side of a Haar matrix reads from.

    A product is a combination of the directions of the other side, so that ``e`` has no rows.
    """
    return MatrixSide(space, output, capacity, dtype, dtype, tolerance, kept=0)


class HaarMatrix(TwoSided):
    """A Haar matrix scaled to entries of mean square 1/n: its limit, or exact in law at finite n.

    Source: Pennington, Schoenholz and Ganguli, Resurrecting the sigmoid in deep learning through
        dynamical isometry (arXiv:1711.04735), for the use of Haar matrices; the law of a Haar
        matrix given what it did to some vectors is that of a Haar matrix on the complements.

    Example:
        >>> from tpcalc.engine.directions import materialise
        >>> from tpcalc.engine.draws import SobolDraws
        >>> large, small = SampleSpace(1024, 1.0), SampleSpace(1024, 0.25)
        >>> draws = SobolDraws(2, 10, 0), SobolDraws(2, 10, 1)
        >>> matrix = HaarMatrix("limit", (large, small), 2, draws)
        >>> z, x, back = small.zeros(), large.zeros(), small.zeros()
        >>> z[:] = 1.0
        >>> materialise(x, [(matrix.side(True).q, matrix.multiply([z]).echo[:, 0])])
        >>> materialise(back, [(matrix.side(False).q, matrix.multiply([x], True).echo[:, 0])])
        >>> bool(np.allclose(back, z))  # W^T W = (rows / n) 1
        True
    """

    def __init__(
        self, law: Law, spaces: Spaces, capacity: int, draws: Normals, storage: str = "float64",
        tolerance: float | None = None, sides: Callable[..., Any] = haar_side,
    ) -> None:  # fmt: skip
        check_spaces(spaces, storage)
        if tolerance is None:
            tolerance = 1e-5 if law == "limit" else 1e-10
        rows, cols = spaces
        options = capacity, np.dtype(storage), tolerance
        super().__init__(sides(cols, rows, *options), sides(rows, cols, *options), draws)
        self.law = law
        self._tall = rows.ratio >= cols.ratio  # whether W itself maps S into L
        # Row i: coordinates of the image of p_i in S, on its directions, and in S'.
        replicates = rows.replicates
        self._inside = np.zeros((replicates, capacity, capacity))
        self._outside = np.zeros((replicates, capacity, capacity))
        self._hidden = [0] * replicates  # directions of S' met so far
        self._least = np.ones(replicates)

    @property
    def _small(self) -> Any:
        """The side that reads vectors of S."""
        return self.forward if self._tall else self.transposed

    @property
    def _large(self) -> Any:
        """The side that reads vectors of L."""
        return self.transposed if self._tall else self.forward

    @property
    def min_ratios(self) -> Array:
        """The smallest accepted residual of each replicate, as a part of its vector, or 1."""
        return np.minimum(self._least, super().min_ratios)

    def reset(self, *draws: Draws) -> None:
        """Forget all directions and keep the memory, for the next replicate."""
        super().reset(*draws)
        self._inside[:] = 0.0
        self._outside[:] = 0.0
        self._hidden[:], self._least[:] = [0] * len(self._hidden), 1.0

    def multiply(self, vectors: Sequence[Vector], transpose: bool = False) -> Product:
        """Products of W (or of its transpose) with several vectors."""
        return self._into(vectors) if transpose != self._tall else self._onto(vectors)

    # -- S to L ------------------------------------------------------------------------------

    def _into(self, vectors: Sequence[Vector]) -> Product:
        """W where it is isometric, up to a number."""
        small, large = self._small, self._large
        coords = small.q.push(vectors).coords
        before = large.q.counts.copy()
        found = [self._back(r, points) for r, points in enumerate(coords)]
        fresh = self._fresh(large, np.array([len(rests) for _, rests in found]))
        for m, replicate, row in fresh.places():
            for r in range(len(coords)) if replicate is None else (replicate,):
                count, rest = int(small.q.counts[r]), found[r][1][int(fresh.columns[r, m])]
                self._inside[r, row, :count] = rest[:count]
                self._outside[r, row, : self._hidden[r]] = rest[count:]
        echo = np.zeros((len(coords), len(vectors), large.q.rows))
        for r, (on, _) in enumerate(found):
            own, new = int(before[r]), int(fresh.new[r])
            kept = [*range(own), *(own + int(column) for column in fresh.columns[r, :new])]
            echo[r, :, : len(kept)] = on[:, kept]
        return Product(coords, echo * math.sqrt(small.space.ratio))

    def _back(self, r: int, points: Array) -> tuple[Array, list[Array]]:
        """Coordinates of images on what is known and on what is not: those need new directions."""
        small, before, count = (
            self._small,
            int(self._large.q.counts[r]),
            int(self._small.q.counts[r]),
        )
        hidden = self._hidden[r]
        found = np.zeros((len(points), before + len(points)))
        rests: list[Array] = []
        known = np.hstack([self._inside[r, :before, :count], self._outside[r, :before, :hidden]])
        for point, on in zip(points[:, :count], found, strict=True):
            rest = np.append(point, np.zeros(hidden))
            for _ in range(2):  # once more: what is left must be orthogonal to rounding
                part = _times(known, rest)
                on[:before] += part
                rest -= _times(known.T, part)
                for place, own in enumerate(rests):
                    overlap = _inner(own, rest)
                    on[before + place] += overlap
                    rest -= overlap * own
            length, whole = math.sqrt(_inner(rest, rest)), math.sqrt(_inner(point, point))
            if length > small.q.tolerance * whole:
                on[before + len(rests)] = length
                rests.append(rest / length)
                self._least[r] = min(self._least[r], length / whole)
        return found, rests

    # -- L to S ------------------------------------------------------------------------------

    def _onto(self, vectors: Sequence[Vector]) -> Product:
        """The transpose of that."""
        small, large = self._small, self._large
        push = large.q.push(vectors)
        draws = self._fresh(small, push.new)
        images = np.zeros((len(push.coords), len(vectors), small.q.rows))
        for r, points in enumerate(push.coords):
            self._meet(r, push, draws)
            rows, count = int(large.q.counts[r]), int(small.q.counts[r])
            own = self._inside[r, :rows, :count]
            images[r, :, :count] = np.einsum("bi,ij->bj", points[:, :rows], own)
        return Product(push.coords, images * (large.space.ratio / math.sqrt(small.space.ratio)))

    def _meet(self, r: int, push: Push, draws: Push) -> None:
        """Images of the new directions of one replicate, from fresh draws."""
        rows = {
            int(draws.columns[r, m]): int(draws.before[r]) + m for m in range(int(draws.new[r]))
        }
        count = int(self._small.q.counts[r])
        for index in range(int(push.new[r])):
            row = int(push.before[r]) + index
            inside, outside = self._draw(r, draws.coords[r, index, :count], rows.get(index))
            hidden = len(outside)
            inner, outer = self._inside[r, :row, :count], self._outside[r, :row, :hidden]
            for _ in range(2):
                overlaps = _times(inner, inside) + _times(outer, outside)
                inside -= _times(inner.T, overlaps)
                outside -= _times(outer.T, overlaps)
            length = math.sqrt(_inner(inside, inside) + _inner(outside, outside))
            if length > SINGULAR:  # else there are fewer samples than directions
                self._inside[r, row, :count] = inside / length
                self._outside[r, row, :hidden] = outside / length
            self._hidden[r] = hidden

    def _draw(self, r: int, coords: Array, row: int | None) -> tuple[Array, Array]:
        """A Gaussian vector of S and S', which is projected and normalised afterwards."""
        small, large = self._small.space, self._large.space
        share, hidden = small.ratio / large.ratio, self._hidden[r]
        if self.law == "limit":
            inside = np.zeros(len(coords)) if row is not None else coords.copy()
            if row is not None:
                inside[row] = math.sqrt(share)
            outside = np.zeros(hidden + (share < 1))
            outside[hidden:] = math.sqrt(1.0 - share)
            return inside, outside
        draws = self._draws[self._tall]
        outside = np.array([draws.scalar(r) for _ in range(hidden)])
        left = large.size - small.size - hidden
        if left > 0:
            outside = np.append(outside, _chi(draws.scalar(r), left))
        return coords * math.sqrt(small.size), outside

    def _fresh(self, side: MatrixSide, counts: Index) -> Push:
        """Add fresh normal draws to the directions that a side reads, orthogonal to them."""
        key, most = self._tall == (side is self._small), int(counts.max())
        if not most:
            none = np.zeros_like(counts)
            shape = (len(counts), 0, side.q.rows)
            return Push(np.zeros(shape), none, none, np.zeros(shape[:2], np.int64))
        buffers = self._work[key]
        while len(buffers) < most:
            buffers.append(side.space.zeros())
        alike = bool((counts == most).all())
        for m, buffer in enumerate(buffers[:most]):
            rows = buffer.reshape(len(counts), -1, side.space.block)
            if alike:
                self._draws[key].fill(rows.reshape(-1, side.space.block))
                continue
            for r in np.flatnonzero(counts > m).tolist():
                self._draws[key].fill(rows[r], 1.0, r)
        return side.q.push(buffers[:most], None if alike else counts)


def _times(table: Array, vector: Array) -> Array:
    """A matrix times a vector, not by BLAS: its threads move bits."""
    found: Array = np.einsum("ij,j->i", table, vector)
    return found


def _inner(left: Array, right: Array) -> float:
    return float(np.einsum("i,i->", left, right))


def _chi(normal: float, freedom: int) -> float:
    """The length of a standard normal vector, from one N(0, 1) draw by its distribution."""
    from scipy.special import gammainccinv, gammaincinv, ndtr

    if normal > 0:
        return math.sqrt(2 * float(gammainccinv(freedom / 2, ndtr(-normal))))
    return math.sqrt(2 * float(gammaincinv(freedom / 2, ndtr(normal))))
