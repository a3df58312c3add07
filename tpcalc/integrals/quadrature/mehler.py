"""Expectations of pairs as power series of the correlation (Mehler's formula).

E f(u) g(v) = sum_k a_k b_k rho^k with the Hermite coefficients of f and g. What is left out after
degree K is at most |rho|^(K + 1) sqrt(A B), with A and B what the coefficients up to K lack of
E f^2 and E g^2; both are known, so the truncation is bounded and not guessed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.families import Family, Index
from tpcalc.integrals.quadrature.hermite import Series, expand

DEGREES = (64, 256, 1536)
FEW = 4  # pairs for which a two-dimensional rule costs less than a long series
SLOW = 0.62  # the correlation at which 64 terms of an arbitrary series are enough
LEVELS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
TRUNCATION = 5e-14  # relative to the natural scale
NEGLIGIBLE = 1e-17
MAJORITY = 0.8
BLOCK = 2**15
ENOUGH = 1e-13


def mehler(
    first: Family, second: Family, left: Index, right: Index, rho: Array
) -> tuple[Array, Array]:
    """E f(u) g(v) and bounds on the errors, infinite where the series is too slow.

    Pairs of correlation 1 or -1 are left to one-dimensional rules.

    Source: Mehler, Ueber die Entwicklung einer Function von beliebig vielen Variablen nach
    Laplaceschen Functionen hoeherer Ordnung, section 1.
    """
    value, error = np.zeros(rho.shape), np.full(rho.shape, np.inf)
    size = np.abs(rho)
    smooth = first.shape.smooth and second.shape.smooth
    for degree in DEGREES:
        still = size[~np.isfinite(error) & (size < 1.0)]
        if not still.size:
            break
        if still.size < FEW and (degree > DEGREES[0] or not (smooth or still.min() <= SLOW)):
            break
        left_series = _checked(first, degree)
        right_series = left_series if second is first else _checked(second, degree)
        if left_series is None or right_series is None:
            break
        levels = [k for k in LEVELS if k <= degree]
        bounds = np.array([_reach(left_series, right_series, k) for k in levels])
        bounds = np.maximum.accumulate(bounds)
        if still.min() <= bounds[-1]:
            _sum_levels(left_series, right_series, left, right, rho, levels, bounds, value, error)
    return value, error


class _Checked(NamedTuple):
    series: Series
    norm: Array
    lacking: Array  # of the squared norm after each degree, relative: (degree + 1, n)


def _checked(family: Family, degree: int) -> _Checked | None:
    series = expand(family.shape, family.mean, family.spread, degree, family.power)
    energy = family.energy
    norm = np.sqrt(energy.value)
    known = np.cumsum(series.table**2, axis=0)
    slack = energy.error + 2.0 * norm * series.doubt + 8.0 * EPS * energy.value
    lacking = np.maximum(energy.value - known, 0.0) + slack
    lacking = lacking / np.where(energy.value > 0, energy.value, 1.0)
    good = np.isfinite(lacking).all() and bool((series.doubt <= ENOUGH * norm).all())
    return _Checked(series, norm, lacking) if good else None


def _reach(first: _Checked, second: _Checked, degree: int) -> float:
    """The correlation up to which this degree is enough."""
    lacking = float(np.sqrt(first.lacking[degree].max() * second.lacking[degree].max()))
    if lacking <= TRUNCATION:
        return 1.0
    return float((TRUNCATION / lacking) ** (1.0 / (degree + 1)))


def _sum_levels(
    first: _Checked,
    second: _Checked,
    left: Index,
    right: Index,
    rho: Array,
    levels: list[int],
    bounds: Array,
    value: Array,
    error: Array,
) -> None:
    """Sum the series for all pairs in reach that are still open."""
    level = np.searchsorted(bounds, np.abs(rho))
    level[np.isfinite(error) | (np.abs(rho) == 1.0)] = len(levels)
    counts = np.bincount(level.ravel(), minlength=len(levels) + 1)
    most = int(np.searchsorted(np.cumsum(counts), MAJORITY * rho.size))
    a, b = first.series.table, second.series.table
    scale = first.norm[left] * second.norm[right]
    doubt = first.series.doubt[left] * second.norm[right]
    doubt = doubt + first.norm[left] * second.series.doubt[right]
    bound = np.broadcast_to((TRUNCATION + 8.0 * EPS) * scale + doubt, rho.shape)
    if most < len(levels):
        done = level <= most
        found = _dense(a, b, left, right, rho, levels[most])
        value[done], error[done] = found[done], bound[done]
        level[done] = len(levels)
    left, right = np.broadcast_to(left, rho.shape), np.broadcast_to(right, rho.shape)
    for k in np.flatnonzero(np.bincount(level.ravel(), minlength=len(levels) + 1)[:-1]):
        some = level == k
        value[some] = _series(a, b, left[some], right[some], rho[some], levels[k])
        error[some] = bound[some]


def _dense(a: Array, b: Array, left: Index, right: Index, rho: Array, degree: int) -> Array:
    rows = max(1, BLOCK // rho.shape[1])
    parts = []
    for start in range(0, rho.shape[0], rows):
        some = slice(start, start + rows)
        i = left[some] if left.shape[0] > 1 else left
        j = right[some] if right.shape[0] > 1 else right
        parts.append(_series(a, b, i, j, rho[some], degree))
    return np.concatenate(parts)


def _series(a: Array, b: Array, i: Index, j: Index, rho: Array, degree: int) -> Array:
    """Horner's rule from the highest degree; only even or odd ones where the others vanish."""
    size = np.abs(a[: degree + 1]).max(axis=1) * np.abs(b[: degree + 1]).max(axis=1)
    kept = np.flatnonzero(size > NEGLIGIBLE * size.max(initial=0.0) / (degree + 1))
    if not len(kept):
        return np.zeros(rho.shape)
    stride = 2 if len(set((kept % 2).tolist())) == 1 else 1
    step = rho * rho if stride == 2 else rho
    start = int(kept[-1])
    total = np.broadcast_to(a[start][i] * b[start][j], rho.shape).copy()
    for k in range(start - stride, -1, -stride):
        total *= step
        total += a[k][i] * b[k][j]
    return total * rho if stride == 2 and start % 2 else total
