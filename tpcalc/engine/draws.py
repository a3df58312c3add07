"""Standard normal draws in block layout: scrambled Sobol, or plain pseudorandom.

Both fill one row of N samples at a time. Rows of the Sobol sequence are its dimensions in order of
use: the directions that come first, on which most depends, get the best dimensions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.draws_normal import sobol_normals
from tpcalc.errors import EvaluationError

__all__ = ["Draws", "PlainDraws", "SobolDraws"]

Seed = int | Sequence[int] | np.random.SeedSequence

LAST_DIMENSION = 21201  # of the table of direction numbers
BITS = 30


class Draws(Protocol):
    """A source of rows of N(0, 1) draws, and of single ones."""

    def fill(self, row: NDArray[Any], scale: float = 1.0) -> None:
        """Write the next row of normals times ``scale``.

        Args:
            row: A (blocks, block) view, float64 or float32; only its first N entries are written.
            scale: The standard deviation.
        """

    def scalar(self) -> float:
        """One N(0, 1) draw, from a stream of its own."""


class PlainDraws:
    """Pseudorandom normals (PCG64).

    Args:
        size: Entries N of a row.
        seed: Integers or a numpy SeedSequence (which is not changed).

    Raises:
        EvaluationError: For a size below 1.

    Example:
        >>> row = np.zeros((1, 8))
        >>> PlainDraws(5, seed=0).fill(row, scale=2.0)
        >>> int(np.count_nonzero(row))
        5
    """

    def __init__(self, size: int, seed: Seed) -> None:
        if size < 1:
            raise EvaluationError(f"rows of {size} draws were asked for; it must be at least one.")
        self.size = size
        self._rows, self._scalars = _streams(seed)
        self._work = np.empty(0)

    def fill(self, row: NDArray[Any], scale: float = 1.0) -> None:
        blocks, block = _check(row, self.size)
        if not len(self._work):
            self._work = np.zeros(blocks * block)
        self._rows.standard_normal(out=self._work[: self.size])
        whole = self.size // block
        table = self._work.reshape(blocks, block)
        np.multiply(table[:whole], scale, out=row[:whole], casting="same_kind")
        rest = self.size - whole * block
        if rest:
            row[whole, :rest] = table[whole, :rest] * scale

    def scalar(self) -> float:
        return float(self._scalars.standard_normal())


class SobolDraws:
    """Normals from a scrambled Sobol sequence: one dimension for each row, in order of use.

    The points are those of ``scipy.stats.qmc.Sobol(scramble=True)`` at the centre of their cells
    of side 2^-30, in the natural order of the digits instead of Gray order (the same set).
    Rows beyond the last dimension (asked for, or of the sequence: 21201) are plain draws.

    Args:
        dimensions: Rows to take from the sequence.
        log2_samples: Rows have N = 2^log2_samples entries (at most 2^30).
        seed: Of the scramble; another seed gives an independent replicate.

    Raises:
        EvaluationError: If the number of samples is not 2^0 .. 2^30.

    Source: Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections
    (2008): direction numbers; Matousek, On the L2-discrepancy for anchored boxes (1998): scramble.

    Example:
        >>> row = np.zeros((2, 512))
        >>> SobolDraws(dimensions=1, log2_samples=10, seed=0).fill(row)
        >>> bool(abs(row.mean()) < 1e-3)
        True
    """

    def __init__(self, dimensions: int, log2_samples: int, seed: Seed) -> None:
        if not 0 <= log2_samples <= BITS:
            raise EvaluationError(
                f"2^{log2_samples} Sobol samples were asked for; 2^0 to 2^{BITS} are possible."
            )
        self.size = 1 << log2_samples
        self._used = 0
        count = max(0, min(dimensions, LAST_DIMENSION))
        self._directions, self._shift = _direction_numbers(count, _child(seed, 0))
        self._plain = PlainDraws(self.size, seed)

    def fill(self, row: NDArray[Any], scale: float = 1.0) -> None:
        _, block = _check(row, self.size)
        if block & (block - 1):
            raise EvaluationError(f"Sobol draws need blocks of 2^k samples, not of {block}.")
        dimension = self._used
        if dimension >= len(self._directions):
            self._plain.fill(row, scale)
            return
        self._used += 1
        sobol_normals(
            self._directions[dimension], self._shift[dimension], self.size, float(scale), row
        )

    def scalar(self) -> float:
        return self._plain.scalar()


def _direction_numbers(
    dimensions: int, seed: np.random.SeedSequence
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Scrambled direction numbers (dimensions, 30) and digital shifts, as integers of 30 bits."""
    if dimensions == 0:
        return np.zeros((0, BITS), np.uint32), np.zeros(0, np.uint32)
    points = _sequence(dimensions, seed)
    # The sequence gives no public access to its digits; a test compares them with its points.
    return points._sv.astype(np.uint32), points._shift.astype(np.uint32)


def _sequence(dimensions: int, seed: np.random.SeedSequence) -> Any:
    """A scrambled sequence of scipy."""
    from scipy.stats import qmc

    rng = np.random.Generator(np.random.PCG64(seed))
    keyword = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
    return qmc.Sobol(dimensions, scramble=True, bits=BITS, **{keyword: rng})


def _streams(seed: Seed) -> tuple[np.random.Generator, np.random.Generator]:
    """The generators of rows and of scalars."""
    rows, scalars = (np.random.Generator(np.random.PCG64(_child(seed, k))) for k in (1, 2))
    return rows, scalars


def _child(seed: Seed, index: int) -> np.random.SeedSequence:
    """An independent seed; unlike ``spawn``, this does not change the one it comes from."""
    parent = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.SeedSequence(
        parent.entropy, spawn_key=(*parent.spawn_key, index), pool_size=parent.pool_size
    )


def _check(row: NDArray[Any], size: int) -> tuple[int, int]:
    if row.ndim != 2 or row.size < size or (row.shape[0] - 1) * row.shape[1] >= size:
        raise EvaluationError(f"a row of shape {row.shape} does not hold {size} samples in blocks.")
    blocks, block = row.shape
    return blocks, block
