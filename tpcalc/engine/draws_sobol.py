"""Scrambled direction numbers of the Sobol sequence: those of ``scipy.stats.qmc.Sobol``.

They are made here from the table that scipy carries: its class is in a package that takes longer to
import than most runs take, and gives no public access to its digits.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Index

LAST_DIMENSION = 21201  # of the table of direction numbers
BITS = 30
POWERS = 2 ** np.arange(BITS)

Integers = Index


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
