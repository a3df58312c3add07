"""Rows of samples as tensors, and the two passes over them: inner products and combinations.

Rows lie as in ``directions_store``: ``data[replicates * blocks, capacity, block]``, so that a pass
is one batched matrix product. It sums over one block in the precision of the storage; the sums of
blocks are added in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine.directions_basis import Push
from tpcalc.engine.directions_store import SampleSpace, full_store
from tpcalc.engine.draws import Draws
from tpcalc.engine.vectors import Host, Places, Table

BLOCKS = (4096, 2048, 1024, 512, 256, 128, 64, 32, 16)
PADDING = 1 / 16  # of the samples: what may be added to fill the last block
PARTIAL = 2**26  # sums over blocks that are held at once


@dataclass(frozen=True)
class Place(Host):
    """Where tensors are, and the number format of what has samples."""

    torch: Any  # the torch module
    device: Any  # a torch device
    dtype: Any  # of samples; coefficients and scalars are float64

    def zeros(self, *shape: int, double: bool = False) -> Any:
        """A tensor of zeros, of samples or of coefficients."""
        dtype = self.torch.float64 if double else self.dtype
        return self.torch.zeros(shape, dtype=dtype, device=self.device)

    def numbers(self, values: Any) -> Any:
        """Numbers of the host as coefficients."""
        return self._moved(self.torch.tensor(np.asarray(values, dtype=np.float64)))

    def index(self, rows: Any) -> Any:
        """Numbers of rows, to select by."""
        return self._moved(self.torch.tensor(np.asarray(rows, dtype=np.int64)))

    def host(self, tensor: Any) -> Array:
        """Numbers of the device on the host, in float64; the one thing that the host waits for."""
        found: Array = tensor.double().cpu().numpy()
        return found

    def take(self, numbers: Any, rows: Any, axis: int) -> Any:
        """A copy of some rows."""
        return numbers.index_select(axis, self.index(rows))

    def products(self, left: Any, right: Any) -> Any:
        """Matrix products, one for each replicate."""
        return left.bmm(right)

    def add_factors(self, own: Places, scalars: Any, out: Any) -> None:
        """Add to ``out[r, row]`` the factors of some rows."""
        out.index_add_(1, self.index(own.rows), own.values(scalars, self).T)

    def sum_rows(self, table: Table, own: Places, scalars: Any, out: Any) -> None:
        """Add to ``out[r]`` some rows of a table times their factors."""
        rows = self.take(table.data[:, :, : out.shape[1]], own.rows, 1)
        out += own.values(scalars, self).T[:, None].bmm(rows)[:, 0]

    def inner_rows(self, table: Table, row: int, own: Places, scalars: Any, outs: Any) -> None:
        """Write inner products of a row with some rows times their factors as scalars ``outs``."""
        found = self.take(table.data, own.rows, 1).bmm(table.data[:, row, :, None])[:, :, 0].T
        scalars.index_copy_(0, self.index(outs), found * own.values(scalars, self))

    def filled(self, shape: Sequence[int], fill: Callable[[NDArray[Any]], None]) -> Any:
        """Samples that the host writes into an array of zeros."""
        host = self.torch.zeros(shape, dtype=self.dtype, pin_memory=self._pinned)
        fill(host.numpy())
        return host.to(self.device, non_blocking=True)

    @property
    def _pinned(self) -> bool:
        return bool(self.device.type == "cuda")

    def _moved(self, host: Any) -> Any:
        """A tensor of the host; from pinned memory, so that the host does not wait for the copy."""
        host = host.pin_memory() if self._pinned else host
        return host.to(self.device, non_blocking=True)

    @property
    def entry(self) -> int:
        """Bytes of a sample."""
        return int(self.dtype.itemsize)

    def dots(self, rows: Any, vectors: Any, replicates: int) -> Any:
        """Sums over samples of row i (blocks, k, block) times vector j (blocks, B, block)."""
        blocks, batch, _ = vectors.shape
        step = max(1, PARTIAL // max(blocks * batch, 1))
        found = []
        for start in range(0, rows.shape[1], step):
            part = self.torch.bmm(vectors, rows[:, start : start + step].transpose(1, 2))
            own = part.reshape(replicates, blocks // replicates, batch, -1)
            found.append(own.sum(1, dtype=self.torch.float64))
        return self.torch.cat(found, 2) if found else self.zeros(replicates, batch, 0, double=True)


def block_of(size: int) -> int:
    """Samples in a block: many, where the last block is nearly full.

    Example:
        >>> block_of(2**17), block_of(5000), block_of(10)
        (4096, 1024, 16)
    """
    fits = (b for b in BLOCKS if -(-size // b) * b - size <= PADDING * size)
    return next(fits, BLOCKS[-1])


class Store:
    """Growing lists of rows over one space, one list for each replicate."""

    def __init__(self, space: SampleSpace, capacity: int, place: Place) -> None:
        self.space = space
        self.capacity = capacity
        self.place = place
        self.counts = np.zeros(space.replicates, np.int64)
        blocks = space.replicates * space.padded // space.block
        self.data = place.zeros(blocks, capacity, space.block)

    @property
    def rows(self) -> int:
        """Number of rows in use (the largest, where replicates differ)."""
        return int(self.counts.max())

    def clear(self) -> None:
        """Forget all rows, keep the memory."""
        self.counts[:] = 0

    def append(self, vector: Any) -> int:
        """Add a vector; returns its number."""
        return self.append_rows(vector[:, None])

    def append_rows(self, rows: Any) -> int:
        """Add rows (blocks, m, block) of all replicates; returns the number of the first."""
        first, count = self.rows, rows.shape[1]
        self._grow(np.full_like(self.counts, count))
        self.data[:, first : first + count] = rows
        return first

    def extend(self, rows: Any, new: Index) -> None:
        """Add the first ``new[r]`` of the rows to the list of replicate r."""
        if (new == new[0]).all() and (self.counts == self.counts[0]).all():
            self.append_rows(rows[:, : int(new[0])])
            return
        before = self.counts.copy()
        self._grow(new)
        blocks = len(self.data) // len(new)
        for r, (first, count) in enumerate(zip(before.tolist(), new.tolist(), strict=True)):
            own = slice(r * blocks, (r + 1) * blocks)
            self.data[own, first : first + count] = rows[own, :count]

    def _grow(self, new: Index) -> None:
        if (self.counts + new).max() > self.capacity:
            raise full_store(self.capacity)
        self.counts += new

    def dots(self, vectors: Any) -> Any:
        """Sums over the samples of row i times vector j, float64 of (replicates, B, rows)."""
        return self.place.dots(self.data[:, : self.rows], vectors, self.space.replicates)


def combine(terms: Sequence[tuple[Any, Any]]) -> Any:
    """Linear combinations of rows: sum over terms and i of coefficients[r, j, i] row_i."""
    out = None
    for rows, given in terms:
        count = given.shape[2]
        own = given.to(rows.dtype).repeat_interleave(len(rows) // len(given), 0)
        part = rows[:, :count]
        out = own.bmm(part) if out is None else out.baddbmm_(own, part)
    return out


def drawn(
    draws: Draws, space: SampleSpace, push: Push, spread: float, place: Place, count: int
) -> Any:
    """Fresh normals for new directions, (blocks, count, block), 0 where a replicate has fewer.

    They are drawn on the host, in the order in which the engine of the CPU draws them.
    """
    blocks = space.padded // space.block

    def fill(rows: NDArray[Any]) -> None:
        for m, replicate, _ in push.places():
            own = slice(None)
            if replicate is not None:
                own = slice(replicate * blocks, (replicate + 1) * blocks)
            draws.fill(rows[m, own], spread, replicate)

    shape = count, space.replicates * blocks, space.block
    return place.filled(shape, fill).transpose(0, 1)
