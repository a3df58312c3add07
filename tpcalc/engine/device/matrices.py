"""Random matrices that are never formed, on tensors: the laws of ``directions``.

Draws are made on the host from the same streams as on the CPU, in the same order, and copied: for a
seed the numbers are those of the other engine up to rounding, on every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.device.basis import Basis, Batch, batch_of
from tpcalc.engine.device.rows import Place, Store, combine, drawn
from tpcalc.engine.directions import Normals, Product, Spaces, TwoSided
from tpcalc.engine.directions_basis import Push
from tpcalc.engine.directions_haar import HaarMatrix, Law
from tpcalc.engine.directions_store import SampleSpace

Counts = Index
TOLERANCE = {"limit": 1e-5, "finite": 1e-10}


class Side:
    """One side of a random matrix: directions ``q`` and their images ``e``."""

    def __init__(
        self, space: SampleSpace, output: SampleSpace, capacity: int, tolerance: float, place: Place
    ) -> None:
        self.space = space
        self.output = output
        self.q = Basis(space, capacity, tolerance, place)
        self.e = Store(output, capacity, place)


class _Gaussian(TwoSided):
    """What the limit of a Gaussian matrix and a finite one have in common."""

    def __init__(
        self, spaces: Spaces, capacities: tuple[int, int], draws: Normals, tolerance: float,
        place: Place,
    ) -> None:  # fmt: skip
        rows, cols = spaces
        forward = Side(cols, rows, capacities[0], tolerance, place)
        super().__init__(forward, Side(rows, cols, capacities[1], tolerance, place), draws)
        self._place = place

    def multiply(self, vectors: Sequence[Any], transpose: bool) -> Product:
        """Products with several vectors, as coefficients: see ``directions.Product``."""
        side = self.side(transpose)
        batch = batch_of(self._place, list(vectors), side.space.replicates)
        push = side.q.push(batch)
        count = int(push.new.max())
        if count:
            spread = math.sqrt(side.space.ratio)
            draws = self._draws[transpose]
            fresh = drawn(draws, side.output, push, spread, self._place, count)
            side.e.extend(self._images(fresh, push, transpose), push.new)
        return Product(push.coords, self._echo(batch, transpose))

    def _images(self, fresh: Any, push: Push, transpose: bool) -> Any:
        """Images of new directions, from fresh draws."""
        raise NotImplementedError

    def _echo(self, batch: Batch, transpose: bool) -> Any:
        """Coefficients of the products on the other side's directions."""
        raise NotImplementedError


class Limit(_Gaussian):
    """The limit of a Gaussian matrix: the law of ``directions.LimitMatrix``.

    Args:
        given: As of every Gaussian matrix.
        adjoint: Whether draws are projected off the directions of the other side.
    """

    def __init__(self, *given: Any, adjoint: bool = False) -> None:
        super().__init__(*given)
        self._adjoint = adjoint

    def _images(self, fresh: Any, push: Push, transpose: bool) -> Any:
        other = self.side(not transpose).q
        if not self._adjoint or not other.rows:
            return fresh
        overlaps = other.dots(fresh) / -self.side(transpose).output.size
        return fresh + combine([(other.data, overlaps)])

    def _echo(self, batch: Batch, transpose: bool) -> Any:
        side = self.side(transpose)
        factor = side.space.ratio / (side.output.ratio * side.space.size)
        return self.side(not transpose).e.dots(batch.samples) * batch.scales[:, :, None] * factor


class Finite(_Gaussian):
    """A Gaussian matrix of finite size: the law of ``directions.FiniteMatrix``."""

    def _images(self, fresh: Any, push: Push, transpose: bool) -> Any:
        side, other = self.side(transpose), self.side(not transpose)
        if not other.q.rows:
            return fresh
        held = _newest(side.q, push, fresh.shape[1])
        given = (other.e.dots(held) - other.q.dots(fresh)) / side.output.size
        given *= self._present(push, fresh.shape[1])
        return fresh + combine([(other.q.data, given)])

    def _present(self, push: Push, count: int) -> Any:
        """1 for the new directions that a replicate has."""
        return self._place.numbers(np.arange(count) < push.new[:, None])[:, :, None]

    def _echo(self, batch: Batch, transpose: bool) -> Any:
        count = batch.samples.shape[1]
        return self._place.zeros(len(batch.scales), count, 0, double=True)


def _newest(basis: Basis, push: Push, count: int) -> Any:
    """The directions of a push, (blocks, count, block)."""
    before = push.before.tolist()
    if len(set(before)) == 1:
        return basis.data[:, before[0] : before[0] + count]
    data = basis.data.unflatten(0, (len(before), -1))
    last = basis.capacity - 1  # those that a replicate does not have are not used
    parts = [data[r][:, [min(row + m, last) for m in range(count)]] for r, row in enumerate(before)]
    return basis.place.torch.cat(parts)


class _HostBasis(Basis):
    """A basis that tells the host the coordinates, and takes draws from there."""

    def push(self, vectors: Any, used: Counts | None = None) -> Push:
        replicates, block = self.space.replicates, self.space.block
        torch = self.place.torch
        found = []
        for m, vector in enumerate(vectors):
            if isinstance(vector, np.ndarray):
                rows = vector.reshape(replicates, -1, block)
                if used is not None:
                    rows = rows * (used > m)[:, None, None]
                vector = torch.tensor(rows.reshape(-1, block)).to(
                    self.place.device, self.place.dtype
                )
            found.append(vector)
        push = super().push(batch_of(self.place, found, replicates))
        return Push(self.place.host(push.coords), push.before, push.new, push.columns)


class Haar:
    """A Haar matrix: the law and the small tables of ``directions_haar.HaarMatrix``."""

    def __init__(
        self, law: Law, spaces: Spaces, capacity: int, draws: Normals, tolerance: float | None,
        place: Place,
    ) -> None:  # fmt: skip
        self._place = place

        def sides(
            space: SampleSpace, output: SampleSpace, capacity: int, _: Any, tolerance: float
        ) -> Side:
            """A side whose small tables are on the host; it has no images."""
            side = Side(space, output, 0, tolerance, place)
            side.q = _HostBasis(space, capacity, tolerance, place)
            return side

        self._tables = HaarMatrix(law, spaces, capacity, draws, tolerance=tolerance, sides=sides)

    def side(self, transpose: bool) -> Any:
        """The side that products with W, or with W^T, use."""
        return self._tables.side(transpose)

    @property
    def min_ratios(self) -> Array:
        """The smallest accepted residual of each replicate, as a part of its vector, or 1."""
        return self._tables.min_ratios

    def multiply(self, vectors: Sequence[Any], transpose: bool) -> Product:
        """Products with several vectors: coefficients on the other side's directions."""
        product = self._tables.multiply(vectors, transpose)
        return Product(self._place.numbers(product.coords), self._place.numbers(product.echo))
