"""Expectations over two standard Gaussians: an integral over w within one over z.

The inner panels follow the bends of the second function as z moves them, so every kink stays at
the end of a panel whatever the correlation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import Effort, Integrals, integrate, integrate_twice
from tpcalc.integrals.quadrature.geometry import Plane
from tpcalc.integrals.quadrature.nodes import gauss_legendre
from tpcalc.integrals.quadrature.one_dimension import (
    FIRST,
    PEAK,
    Lines,
    line_bends,
    normal_integrand,
    sampled,
)
from tpcalc.integrals.quadrature.panels import Bends, Panels, panels
from tpcalc.integrals.quadrature.shape import Shape

SMOOTHED = 3.0  # a bend washed out over this much of z needs no panels of its own
BLOCK = 2**18  # values of the second function held at a time
OUTER = Effort(tolerance=4e-13, rounds=24, most=256)
PANELS = 8  # typical number of inner panels
WORK = 2 * 10**5  # inner panels for each pair


def plane_integrals(
    first: Shape, second: Shape, pair: Plane, powers: Array, scale: Array, reach: float
) -> Integrals:
    """E[f(u) g(v) P(z, w)] of n pairs."""
    outer = Lines((first,), pair.u0[None], pair.su[None], np.ones((1, len(scale))))

    def within(cover: Panels, effort: Effort) -> tuple[Array, Integrals]:
        z, front = sampled(outer, cover)
        front *= PEAK * np.exp(-0.5 * z * z)
        problem = np.repeat(cover.problem, z.shape[1])
        here, flat = z.ravel(), pair.at(problem)
        centre = flat.v0 + flat.sv * flat.rho * here
        width = flat.sv * flat.kappa
        weight = np.abs(front).ravel() * (2.0 * reach)
        enough = scale[problem] / np.where(weight == 0.0, np.inf, weight)
        inner = Lines((second,), centre[None], width[None], _at(powers, problem, here))
        limits = panels(line_bends(inner), inner.offset, reach)
        return front, integrate(normal_integrand(inner), limits, enough, None, effort)

    with np.errstate(all="ignore"):
        bends = _joined(line_bends(outer), _projected(second, pair))
        cover = panels(bends, np.stack([pair.u0]), reach)
        lean = np.abs(pair.u0 / pair.su) + np.abs(pair.v0 / pair.sv)
        size = max(1, BLOCK // (gauss_legendre().points.size ** 2 * PANELS))
        return integrate_twice(within, cover, scale, lean, OUTER, (WORK, size))


def _joined(left: Bends, right: Bends) -> Bends:
    return Bends(*(np.concatenate(parts, axis=-1) for parts in zip(left, right, strict=True)))


def _projected(second: Shape, pair: Plane) -> Bends:
    """Where E[g(v) | z] bends: at the bends of g, washed out over kappa / rho."""
    count = len(pair.rho)
    spread = pair.kappa / np.abs(pair.rho)
    place, first = [], []
    for feature in second.features:
        z = (feature.place - pair.v0) / (pair.sv * pair.rho)
        unit = feature.unit / (pair.sv * np.abs(pair.rho))
        start = FIRST * (spread if feature.kink else np.maximum(spread, unit))
        seen = np.isfinite(z) & (start < SMOOTHED)
        place.append(np.where(seen, z, np.inf))
        first.append(np.where(seen, start, np.inf))
    if not place:
        empty = np.zeros((count, 0))
        return Bends(empty, empty, empty, np.zeros((1, count, 0)))
    where = np.stack(place, axis=1)
    near = np.where(np.isfinite(where), where, 0.0)
    base = pair.u0[:, None] + pair.su[:, None] * near
    return Bends(where, np.stack(first, axis=1), np.zeros_like(where), base[None])


def _at(powers: Array, problem: NDArray[np.intp], z: Array) -> Array:
    """P(z, w) at given z: its coefficients in w."""
    if powers.shape[0] == 1:
        return np.asarray(powers[0][:, problem])
    out = powers[-1][:, problem]
    for coefficient in powers[-2::-1]:
        out = out * z + coefficient[:, problem]
    return np.asarray(out)
