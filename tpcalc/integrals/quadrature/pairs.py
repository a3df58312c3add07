"""Expectations of two functions of two Gaussians, with polynomials of others beside them."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS, Integrals
from tpcalc.integrals.quadrature.conditional import Surface
from tpcalc.integrals.quadrature.families import Family, Index, Pairs, beyond, family
from tpcalc.integrals.quadrature.geometry import Plane
from tpcalc.integrals.quadrature.mehler import mehler
from tpcalc.integrals.quadrature.one_dimension import REACH, WHOLE, Lines, line_integrals
from tpcalc.integrals.quadrature.plane_sums import plane_sums
from tpcalc.integrals.quadrature.shape import Shape
from tpcalc.integrals.quadrature.two_dimensions import plane_integrals

STEEP = 0.3  # below this kappa the turned polynomial has large terms that cancel
ENOUGH = 3e-13

BATCH = 64  # pairs that a two-dimensional rule takes at a time
MISSED = 1e-15


def pair_integrals(first: Family, second: Family, pairs: Pairs) -> Integrals:
    """E[f(u) g(v) P(z, w)] for every pair."""
    shown = pairs.plane.rho.shape
    size = np.zeros(shown)
    value, error = plane_sums(first, second, pairs)
    left_out = ~np.isfinite(error) & (pairs.plane.kappa > 0.0)
    if left_out.any():
        series = turned_series(first, second, pairs)
        value = np.where(left_out, series[0], value)
        error = np.where(left_out, series[1], error)
    flat = _flat(pairs)
    left = np.broadcast_to(pairs.left, shown).ravel()
    right = np.broadcast_to(pairs.right, shown).ravel()
    powers = _powers(pairs.surface, shown)
    scale = np.sqrt(first.energy.value[left] * second.energy.value[right])
    scale = scale * np.broadcast_to(pairs.natural, shown).ravel()
    still = ~np.isfinite(error.ravel()) | (flat.kappa == 0.0)
    aligned = np.flatnonzero(still & (flat.kappa == 0.0))
    apart = np.flatnonzero(still & (flat.kappa > 0.0))
    _fill(_on_lines(first.shape, second.shape), aligned, flat, powers, scale, (value, error, size))
    if len(apart):
        reach, missed = _coverage(first, second, left[apart], right[apart], powers[:, :, apart])
        rule = _in_plane(first.shape, second.shape, reach)
        _fill(rule, apart, flat, powers, scale, (value, error, size))
        error.ravel()[apart] += missed + 16.0 * EPS * size.ravel()[apart]
    return Integrals(value, error, size)


Rule = Callable[[Plane, Array, Array], Integrals]


def _fill(
    rule: Rule, where: Index, flat: Plane, powers: Array, scale: Array, out: tuple[Array, ...]
) -> None:
    """Apply a rule to some pairs, equal ones once, a batch at a time."""
    if not len(where):
        return
    rows = np.concatenate([np.stack(flat.at(where)), powers[:, :, where].reshape(-1, len(where))])
    _, chosen, back = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    chosen = where[chosen]
    parts = []
    for start in range(0, len(chosen), BATCH):
        some = chosen[start : start + BATCH]
        parts.append(rule(flat.at(some), powers[:, :, some], scale[some]))
    for target, columns in zip(out, zip(*parts, strict=True), strict=True):
        target.ravel()[where] = np.concatenate(columns)[back.ravel()]


def _on_lines(first: Shape, second: Shape) -> Rule:
    def rule(pair: Plane, powers: Array, scale: Array) -> Integrals:
        offset, slope = np.stack([pair.u0, pair.v0]), np.stack([pair.su, pair.rho * pair.sv])
        return line_integrals(Lines((first, second), offset, slope, powers[:, 0]), scale)

    return rule


def _in_plane(first: Shape, second: Shape, reach: float) -> Rule:
    def rule(pair: Plane, powers: Array, scale: Array) -> Integrals:
        return plane_integrals(first, second, pair, powers, scale, reach)

    return rule


def _coverage(
    first: Family, second: Family, left: Index, right: Index, powers: Array
) -> tuple[float, Array]:
    """How far a rule must reach, and a bound on what lies beyond."""
    norms = np.sqrt(first.energy.value)[left], np.sqrt(second.energy.value)[right]
    whole = norms[0] * norms[1]
    for reach in (REACH, WHOLE):
        degrees = reach ** np.add.outer(np.arange(powers.shape[0]), np.arange(powers.shape[1]))
        factor = (np.abs(powers) * degrees[:, :, None]).sum(axis=(0, 1))
        out = [np.sqrt(beyond(part, reach)) for part in (first, second)]
        missed = 2.0 * (out[0][left] * norms[1] + out[1][right] * norms[0]) * factor
        if (missed <= MISSED * whole * np.abs(powers).sum(axis=(0, 1))).all():
            break
    return reach, missed


def _flat(pairs: Pairs) -> Plane:
    shown = pairs.plane.rho.shape
    return Plane(*(np.broadcast_to(part, shown).ravel() for part in pairs.plane))


def _powers(surface: Surface, shown: tuple[int, ...]) -> Array:
    high = [max(key[axis] for key in surface) for axis in (0, 1)]
    out = np.zeros((high[0] + 1, high[1] + 1, int(np.prod(shown))))
    for (a, b), coefficient in surface.items():
        out[a, b] = np.broadcast_to(coefficient, shown).ravel()
    return out


def turned_series(first: Family, second: Family, pairs: Pairs) -> tuple[Array, Array]:
    """E[f(u) g(v) P(z, w)] by series, with errors that are infinite where they do not serve."""
    rho = pairs.plane.rho
    if set(pairs.surface) == {(0, 0)}:
        factor = pairs.surface[0, 0]
        value, error = mehler(first, second, pairs.left, pairs.right, rho)
        return value * factor, error * np.where(np.isinf(error), 1.0, np.abs(factor))
    value, error = np.zeros(rho.shape), np.zeros(rho.shape)
    usable = np.broadcast_to(pairs.plane.kappa >= STEEP, rho.shape)
    if np.count_nonzero(usable) < 2:
        return value, np.full(rho.shape, np.inf)
    turned = _turned(pairs.surface, pairs.plane)
    masked = np.where(usable, rho, 1.0)
    fronts = {a: _raised(first, a) for a in {key[0] for key in turned}}
    backs = {b: _raised(second, b) for b in {key[1] for key in turned}}
    for (a, b), factor in turned.items():
        front, back = fronts[a], backs[b]
        if front is None or back is None:
            return value, np.full(rho.shape, np.inf)
        back = front if first is second and a == b else back
        found, bound = mehler(front, back, pairs.left, pairs.right, masked)
        value = value + factor * found
        error = error + np.abs(factor) * (bound + 16.0 * EPS * np.abs(found))
    norms = np.sqrt(first.energy.value)[pairs.left] * np.sqrt(second.energy.value)[pairs.right]
    serves = usable & (error <= ENOUGH * norms * pairs.natural)
    return np.where(serves, value, 0.0), np.where(serves, error, np.inf)


def _raised(part: Family, power: int) -> Family | None:
    return family(part.shape, part.mean, part.spread, power) if power else part


def _turned(surface: Surface, pair: Plane) -> Surface:
    """The polynomial in z and y = rho z + kappa w."""
    kappa = np.where(pair.kappa >= STEEP, pair.kappa, 1.0)
    out: Surface = {}
    for (a, b), factor in surface.items():
        scaled = factor / kappa**b
        for j in range(b + 1):
            key = (a + b - j, j)
            term = scaled * comb(b, j) * (-pair.rho) ** (b - j)
            out[key] = out[key] + term if key in out else term
    return out
