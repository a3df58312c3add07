"""Gaussian sequences along the depth with a given autocovariance, drawn exactly."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import fft
from scipy.linalg import toeplitz

from tpcalc.arrays import Array
from tpcalc.engine.starts import factor
from tpcalc.program.along import ROUNDING, along_of

LONGEST = 64  # circulants, in depths
_PART = 2**15  # complex numbers that are transformed at once: they stay in cache


def draw_paths(
    law: str,
    depth: int,
    count: int,
    generator: np.random.Generator,
    out: Array | None = None,
) -> Array:
    """Independent sequences of a law along the depth, by circulant embedding.

    Source: Davies, Harte, Tests for Hurst effect; Dietrich, Newsam, Fast and exact simulation of
        stationary Gaussian processes through circulant embedding of the covariance matrix.

    Example:
        >>> found = draw_paths("fgn(4/5)", 1000, 50, np.random.default_rng(0))
        >>> found.shape, bool(abs((found[:, :-1] * found[:, 1:]).mean() - 0.5157) < 0.05)
        ((50, 1000), True)
    """
    along_of(law).check(depth)
    found = np.empty((count, depth)) if out is None else out
    if along_of(law).fresh:
        found[:] = generator.standard_normal((count, depth))
        return found
    roots = _roots(law, depth)
    if roots is None:
        sides = _factor(law, depth)
        found[:] = generator.standard_normal((count, sides.shape[1])) @ sides.T
        return found
    half = len(roots) - 1
    height = max(1, _PART // (half + 1))
    for first in range(0, count, height):
        rows = min(height, count - first)
        parts: Any = generator.standard_normal((rows, half + 1, 2)).view(np.complex128)[..., 0]
        parts[:, [0, half]] = np.sqrt(2.0) * parts[:, [0, half]].real
        parts *= roots
        found[first : first + rows] = fft.irfft(parts, 2 * half, axis=1)[:, :depth]
    return found


@lru_cache(maxsize=8)
def _roots(law: str, depth: int) -> Array | None:
    """Roots of the eigenvalues of a circulant that begins as the covariance of a sequence."""
    half, own = max(depth, 1), along_of(law)
    while half <= LONGEST * depth + LONGEST:
        size = fft.next_fast_len(half, real=True)
        row = own.at(size + 1, depth)
        values = fft.rfft(np.concatenate([row, row[-2:0:-1]])).real
        if values.min() >= -ROUNDING * values.max():
            found: Array = np.sqrt(np.maximum(values, 0.0) * size)
            return found
        half *= 2
    return None


@lru_cache(maxsize=8)
def _factor(law: str, depth: int) -> Array:
    """A factor of the covariance of a sequence that no longer one begins with."""
    row = along_of(law).autocovariance(depth)
    return np.array(factor(toeplitz(row), law))
