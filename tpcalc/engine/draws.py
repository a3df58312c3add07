"""Standard normal draws in block layout: scrambled Sobol, or plain pseudorandom.

Both fill one row of N samples at a time. Rows of the Sobol sequence are its dimensions in order of
use: the directions that come first, on which most depends, get the best dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.engine.crew import share, stretches
from tpcalc.engine.kernels_compile import bits, exact, inlined, number, polynomial
from tpcalc.errors import EvaluationError

STEP = 2.0**-31
LN2 = math.log(2.0)
SQRT2 = math.sqrt(2.0)
_artanh = polynomial(*(1.0 / k for k in range(19, 0, -2)))  # of s^2, at most 0.0295: artanh(s) / s
_top = polynomial(
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_under = polynomial(
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip
_above = polynomial(
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
    4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_below = polynomial(
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
    2.05319162663775882187e0, 1.0,
)  # fmt: skip


@inlined
def _log(p: float) -> Any:
    """Logarithm of a normal positive number, from the series of artanh; error about 1e-15."""
    digits = bits(p)
    power = (digits >> 52) - 1023
    mantissa = number((digits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    large = mantissa > SQRT2
    mantissa = mantissa * 0.5 if large else mantissa
    exponent = np.float64(np.int32(power)) + (1.0 if large else 0.0)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent * LN2 + 2.0 * s * _artanh(s * s)


@inlined
def _smaller_tail(odd: float) -> Any:
    """The distance of the point odd * 2^-31 from the nearer end of (0, 1), exact."""
    return (odd if odd < 2.0**30 else 2.0**31 - odd) * STEP


@inlined
def _central(odd: float) -> Any:
    """The normal quantile at odd * 2^-31, odd in 1, 3, ..., 2^31 - 1, not in the tails."""
    q = 0.5 - _smaller_tail(odd)
    r = 0.180625 - q * q
    return (-1.0 if odd < 2.0**30 else 1.0) * (q * _top(r)) / _under(r)


@inlined
def _outer(odd: float) -> Any:
    """The normal quantile there, in the tails."""
    s = math.sqrt(-_log(_smaller_tail(odd))) - 1.6
    return (-1.0 if odd < 2.0**30 else 1.0) * _above(s) / _below(s)


@exact
def normal_quantiles(odds: Array, places: Index, out: Array) -> None:
    """Normal quantiles at odd * 2^-31; ``places`` is room for as many, ``odds`` is overwritten.

    Source: Wichura, Algorithm AS 241 (1988), PPND16.
    """
    for t in range(odds.size):
        out[t] = _central(odds[t])
    count = 0
    for t in range(odds.size):
        odd = odds[t]
        odds[count], places[count] = odd, t
        count += 0.5 - _smaller_tail(odd) > 0.425
    for m in range(count):
        odds[m] = _outer(odds[m])
    for m in range(count):
        out[places[m]] = odds[m]


@exact
def sobol_normals(
    directions: NDArray[np.uint32], shift: int, size: int, scale: float, row: NDArray[Any],
    first: int,
) -> None:  # fmt: skip
    """Write normals of one Sobol dimension, which has ``size``, into blocks of a row, as float32.

    The row begins with block ``first`` of the dimension.

    Point number i is the shift, xor the direction numbers of the binary digits of i: the digits
    within a block are done once, those of the block's number once for each block.
    """
    block = min(row.shape[1], size)
    inner = np.empty(block, np.int32)
    inner[0] = np.int32(shift)
    part = np.empty(block)  # a row of a store has strides that the compiler does not know
    odds, places = np.empty(block), np.empty(block, np.int64)
    digit, filled = 0, 1
    while filled < block:
        number = np.int32(directions[digit])
        for t in range(filled):
            inner[filled + t] = inner[t] ^ number
        filled *= 2
        digit += 1
    for k in range(min(row.shape[0], size // block)):
        outer = np.int32(0)
        rest, place = first + k, digit
        while rest:
            if rest & 1:
                outer ^= np.int32(directions[place])
            rest >>= 1
            place += 1
        for t in range(block):
            odds[t] = np.float64(np.int32(inner[t] ^ outer)) * 2.0 + 1.0
        normal_quantiles(odds, places, part)
        for t in range(block):
            row[k, t] = np.float32(part[t] * scale)


LAST_DIMENSION = 21201  # of the table of direction numbers
BITS = 30
POWERS = 2 ** np.arange(BITS)
Integers = Index

Seed = int | Sequence[int] | np.random.SeedSequence

STOCK = 2048  # plain normals drawn at once
COST = 8  # of a normal, in numbers that are read from memory


class Draws(Protocol):
    """A source of rows of N(0, 1) draws, and of single ones, for independent replicates."""

    def fill(self, row: NDArray[Any], scale: float = 1.0, replicate: int | None = None) -> None:
        """Write the next row of normals times ``scale``."""

    def scalar(self, replicate: int = 0) -> float:
        """One N(0, 1) draw, from a stream of its own."""


class PlainDraws:
    """Pseudorandom normals (PCG64).

    Example:
        >>> row = np.zeros((1, 8))
        >>> PlainDraws(5, 0).fill(row, scale=2.0)
        >>> int(np.count_nonzero(row))
        5
    """

    def __init__(self, size: int, *seeds: Seed) -> None:
        checks.whole(size, "the number of draws", least=1, each=0.0)
        self.size = size
        self._seeds = seeds
        self._rows = [_stream(seed, 1) for seed in seeds]
        self._scalars: dict[int, np.random.Generator] = {}
        # Narrow rows are drawn several at once: the same numbers for fewer calls.
        self._stock = np.empty((len(seeds), max(1, STOCK // size), size))
        self._next = np.full(len(seeds), self._stock.shape[1])

    def fill(self, row: NDArray[Any], scale: float = 1.0, replicate: int | None = None) -> None:
        own = slice(None) if replicate is None else slice(replicate, replicate + 1)
        places = self._next[own]
        blocks, block = _check(row, self.size, len(places))
        if replicate is None and (places != places[0]).any():
            for r in range(len(places)):
                self.fill(row[r * blocks : (r + 1) * blocks], scale, r)
            return
        place, stock = int(places[0]), self._stock[own]
        if scale == 1 and stock.shape[1] == 1 and row.flags.c_contiguous and row.size == stock.size:
            for rows, part in zip(self._rows[own], row.reshape(stock.shape), strict=True):
                rows.standard_normal(out=part)  # without a copy
            return
        if place == stock.shape[1]:
            place = 0
            for rows, values in zip(self._rows[own], stock, strict=True):
                rows.standard_normal(out=values)
        places[:] = place + 1
        values, out = stock[:, place], row.reshape(len(places), blocks, block)
        whole = self.size // block
        table = values[:, : whole * block].reshape(len(places), whole, block)
        np.multiply(table, scale, out=out[:, :whole], casting="same_kind")
        rest = self.size - whole * block
        if rest:
            out[:, whole, :rest] = values[:, whole * block :] * scale

    def scalar(self, replicate: int = 0) -> float:
        found = self._scalars.get(replicate)
        if found is None:
            found = self._scalars[replicate] = _stream(self._seeds[replicate], 2)
        return float(found.standard_normal())


class SobolDraws:
    """Normals from a scrambled Sobol sequence: one dimension for each row, in order of use.

    The points are those of ``scipy.stats.qmc.Sobol(scramble=True)`` at the centre of their cells
    of side 2^-30, in the natural order of the digits instead of Gray order (the same set).
    Rows beyond the last dimension (asked for, or of the sequence: 21201) are plain draws.
    Normals times their scale are rounded to single precision, so that rows of float32 hold them as
    they are: half of the memory, and the same numbers in whatever is computed from them.

    Source: Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections
    (2008): direction numbers; Matousek, On the L2-discrepancy for anchored boxes (1998): scramble.

    Example:
        >>> row = np.zeros((2, 512))
        >>> SobolDraws(1, 10, 0).fill(row)
        >>> bool(abs(row.mean()) < 1e-3)
        True
    """

    def __init__(self, dimensions: int, log2_samples: int, *seeds: Seed) -> None:
        checks.whole(log2_samples, "the power of 2 of Sobol samples", least=0, most=BITS)
        self.size = 1 << log2_samples
        self._used = [0] * len(seeds)
        count = max(0, min(dimensions, LAST_DIMENSION))
        self._numbers = [scrambled(count, _child(seed, 0)) for seed in seeds]
        self._plain = PlainDraws(self.size, *seeds)

    def fill(self, row: NDArray[Any], scale: float = 1.0, replicate: int | None = None) -> None:
        replicates = range(len(self._used)) if replicate is None else (replicate,)
        blocks, block = _check(row, self.size, len(replicates))
        if block & (block - 1):
            raise EvaluationError(f"Sobol draws need blocks of 2^k samples, not of {block}.")
        quick: list[tuple[NDArray[Any], tuple[Any, ...], int]] = []
        parts = stretches(blocks)
        for place, r in enumerate(replicates):
            part = row[place * blocks : (place + 1) * blocks]
            dimension, (directions, shift) = self._used[r], self._numbers[r]
            if dimension >= len(directions):
                self._plain.fill(part, scale, r)
                part[:] = part.astype(np.float32)
                continue
            self._used[r] += 1
            of = directions[dimension], shift[dimension], self.size, float(scale)
            quick += [
                (part[first : first + blocks // parts], of, first)
                for first in range(0, blocks, blocks // parts)
            ]

        def work(own: slice) -> None:
            for part, of, first in quick[own]:
                sobol_normals(*of, part, first)

        share(len(quick), COST * len(quick) * (blocks // parts) * block, work)

    def scalar(self, replicate: int = 0) -> float:
        return self._plain.scalar(replicate)


def _stream(seed: Seed, index: int) -> np.random.Generator:
    """The generator of rows (1) or of scalars (2)."""
    return np.random.Generator(np.random.PCG64(_child(seed, index)))


def _child(seed: Seed, index: int) -> np.random.SeedSequence:
    """An independent seed; unlike ``spawn``, this does not change the one it comes from."""
    if not isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed, spawn_key=(index,))
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, index), pool_size=seed.pool_size
    )


def _check(row: NDArray[Any], size: int, replicates: int) -> tuple[int, int]:
    """Blocks of one replicate, and samples in a block."""
    blocks = row.shape[0] // replicates
    if row.ndim != 2 or row.size < size * replicates or (blocks - 1) * row.shape[1] >= size:
        raise EvaluationError(f"a row of shape {row.shape} does not hold {size} samples in blocks.")
    return blocks, row.shape[1]


def scrambled(
    dimensions: int, seed: np.random.SeedSequence
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Direction numbers (dimensions, 30) and digital shifts, as integers of 30 bits.

    Source: Matousek, On the L2-discrepancy for anchored boxes (1998): a random lower triangular
    matrix of digits for each dimension, and a shift.
    """
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0))
    rng = np.random.Generator(np.random.PCG64(own))
    shift = rng.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ POWERS
    digits = rng.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32)
    masks = (np.tril(digits, -1) + np.eye(BITS, dtype=np.uint32)) @ POWERS[::-1]
    plain = _plain(dimensions)
    odd = np.bitwise_count(masks[:, None, :] & plain[:, :, None]) & 1
    return (odd @ POWERS[::-1]).astype(np.uint32), shift.astype(np.uint32)


@lru_cache(maxsize=8)
def _plain(dimensions: int) -> Integers:
    """Direction numbers without a scramble.

    Source: Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections
    (2008), equations 2 and 3.
    """
    polynomials, starts = _table()
    rows = np.ones((dimensions, BITS), np.int64)
    for dimension in range(1, dimensions):
        polynomial = int(polynomials[dimension])
        degree = polynomial.bit_length() - 1
        found = starts[dimension, :degree].tolist()
        for place in range(degree, BITS):
            number = found[place - degree]
            for back in range(1, degree + 1):
                if polynomial >> (degree - back) & 1:
                    number ^= found[place - back] << back
            found.append(number)
        rows[dimension] = found
    plain: Integers = rows << np.arange(BITS - 1, -1, -1)
    return plain


@lru_cache(maxsize=1)
def _table() -> tuple[Integers, Integers]:
    """Primitive polynomials, and the direction numbers that recurrences start from."""
    spec = find_spec("scipy")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "stats" / "_sobol_direction_numbers.npz"
    with np.load(path) as table:
        return table["poly"], table["vinit"]
