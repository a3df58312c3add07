"""Covariances of the stream of a residual network of infinite width, layer by layer.

E[k, l], k >= l, is by how much the covariance of the stream after blocks k and l differs from that
at the start. What blocks i and j add has the covariance X[i, j], a dual of the activation; then
E[k, l] - E[k-1, l] - E[k, l-1] + E[k-1, l-1] = X[k, l]. Backward the same with slopes. A row needs
the row before it alone, but for the slopes, which the backward pass reads.
"""

from __future__ import annotations

from math import acos, pi, sqrt
from typing import Any

import numpy as np

from tpcalc.engine.kernels_compile import loose


@loose
def homogeneous_rows(
    depth: int,
    size: float,
    inner: Any,
    outer: Any,
    start: float,
    up: float,
    down: float,
    centred: bool,
    slopes: Any,
) -> Any:
    """All rows forward where the activation is ``up x`` above 0 and ``down x`` below."""
    row, gains, moved = np.zeros(depth + 1), np.empty(depth + 1), np.zeros(depth + 1)
    roots = np.empty(depth + 1)
    same, cross = up * up + down * down, 2.0 * up * down
    mean = (up - down) ** 2 / (2.0 * pi) if centred else 0.0
    for k in range(1, depth + 1):
        roots[k - 1] = sqrt(start + row[k - 1])
        place = k * (k - 1) // 2
        for j in range(1, k + 1):
            lengths = roots[k - 1] * roots[j - 1]
            c = inner[0]
            if j < k:
                c = inner[k - j] * (start + row[j - 1]) / lengths
                c = min(1.0, max(-1.0, c))
            angle = acos(c)
            side = sqrt(1.0 - c * c)
            one = (side + c * (pi - angle)) / (2.0 * pi)
            other = (side - c * angle) / (2.0 * pi)
            gains[j] = size * outer[k - j] * lengths * (same * one - cross * other - mean)
            slope = same * (pi - angle) + cross * angle
            slopes[place + j - 1] = size * outer[k - j] * inner[k - j] * slope / (2.0 * pi)
        _advance(row, gains, k)
        moved[k] = row[k]
    return moved


@loose
def _advance(row: Any, gains: Any, k: int) -> None:
    """The row of E after block k, in place of that before it."""
    total, before = 0.0, row[k - 1]
    for j in range(1, k):
        total += gains[j]
        row[j] += total
    row[k] = 2.0 * row[k - 1] - before + gains[k]


@loose
def forward_row(
    k: int,
    size: float,
    inner: Any,
    outer: Any,
    start: float,
    roots: Any,
    values: Any,
    derivatives: Any,
    row: Any,
    slopes: Any,
) -> None:
    """A row forward of an activation with known coefficients in Hermite polynomials."""
    gains, place = np.empty(k + 1), k * (k - 1) // 2
    for j in range(1, k + 1):
        c = inner[k - j] * (start + row[j - 1]) / (roots[k - 1] * roots[j - 1])
        c = min(1.0, max(-1.0, c))
        one, slope, power = 0.0, 0.0, 1.0
        for m in range(values.shape[1]):
            one += values[k - 1, m] * values[j - 1, m] * power
            slope += derivatives[k - 1, m] * derivatives[j - 1, m] * power
            power *= c
        gains[j] = size * outer[k - j] * one
        slopes[place + j - 1] = size * outer[k - j] * inner[k - j] * slope
    _advance(row, gains, k)


@loose
def backward_rows(depth: int, slopes: Any) -> Any:
    """How much the mean square of the adjoint in front of each block differs from the last one."""
    row, steps, moved = np.zeros(depth + 1), np.zeros(depth + 1), np.zeros(depth + 1)
    for k in range(depth, 0, -1):
        place = k * (k - 1) // 2
        for j in range(1, k):
            steps[j] += slopes[place + j - 1] * (1.0 + row[j])
        corner = 2.0 * row[k - 1] - row[k] + slopes[place + k - 1] * (1.0 + row[k])
        row[k - 1] = corner
        for j in range(k - 1, 0, -1):
            row[j - 1] = row[j] + steps[j]
        moved[k - 1] = corner
    return moved
