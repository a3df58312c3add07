"""Averages of two smooth functions of two Gaussians by the trapezoidal rule in the plane.

For some pairs of functions without closed form sums over a lattice cost less than the long series
that strong correlations need, and no more where the correlation is 1 but for rounding.
"""

from __future__ import annotations

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.decay import shortfall
from tpcalc.integrals.quadrature.families import Family, Pairs
from tpcalc.integrals.quadrature.geometry import Plane
from tpcalc.integrals.quadrature.lattice import COARSEST, Line, line_of
from tpcalc.integrals.quadrature.shape import Shape, unit_of

SHARE = 0.17  # step, of the smallest unit of a function
FINER = (1.0, 0.5)
ENOUGH = 4e-14  # relative to the natural scale: no more than a series leaves out
MOST = 2**24  # nodes of all pairs: more cost as much as a series
BLOCK = 2**17  # values held at a time
ROUNDS = 16.0


def plane_sums(first: Family, second: Family, pairs: Pairs) -> tuple[Array, Array]:
    """E f(u) g(v) and bounds on the errors, infinite where the sums do not serve.

    Source: Trefethen, Weideman, The exponentially convergent trapezoidal rule, theorem 5.1.
    """
    shown = pairs.plane.rho.shape
    value, error = np.zeros(shown), np.full(shown, np.inf)
    smooth = first.shape.smooth and second.shape.smooth
    if not smooth or set(pairs.surface) != {(0, 0)}:
        return value, error
    flat = Plane(*(np.broadcast_to(part, shown).ravel() for part in pairs.plane))
    left, right = (np.broadcast_to(part, shown).ravel() for part in (pairs.left, pairs.right))
    scale = np.sqrt(first.energy.value[left] * second.energy.value[right])
    factor = np.broadcast_to(pairs.surface[0, 0], shown).ravel()
    for share in FINER:
        open_ = np.flatnonzero(~np.isfinite(error.ravel()) & (flat.kappa > 0.0))
        some = flat.at(open_)
        lines = _lines(first.shape, second.shape, some, share) if len(open_) else None
        if lines is None or len(open_) * len(lines[0].z) * len(lines[1].z) > MOST:
            break
        size = max(1, BLOCK // (len(lines[0].z) * len(lines[1].z)))
        for start in range(0, len(open_), size):
            here = open_[start : start + size]
            found, off = _sums(first.shape, second.shape, flat.at(here), scale[here], lines)
            good = off <= ENOUGH * scale[here]
            value.ravel()[here[good]] = (factor[here] * found)[good]
            error.ravel()[here[good]] = (np.abs(factor[here]) * off)[good]
    return value, error


def _lines(first: Shape, second: Shape, pair: Plane, share: float) -> tuple[Line, Line] | None:
    """Nodes along and across, for the widest of the pairs."""
    near, far = map(unit_of, (first, second))
    along = max(float(pair.su.max()) / near, float((pair.sv * np.abs(pair.rho)).max()) / far)
    across = float((pair.sv * pair.kappa).max()) / far
    steps = [min(COARSEST, SHARE / wide if wide else COARSEST) * share for wide in (along, across)]
    front, back = map(line_of, steps)
    return None if front is None or back is None else (front, back)


def _sums(
    first: Shape, second: Shape, pair: Plane, scale: Array, lines: tuple[Line, Line]
) -> tuple[Array, Array]:
    """Sums over the lattice, and how far they are off, for each pair."""
    along, across = lines
    front = first.values(pair.u0[:, None] + pair.su[:, None] * along.z) * along.weights
    centre = pair.v0[:, None] + (pair.sv * pair.rho)[:, None] * along.z
    x = centre[:, :, None] + (pair.sv * pair.kappa)[:, None, None] * across.z
    back = second.values(x)
    row = front * np.einsum("nzw,w->nz", back, across.weights)
    profile = np.einsum("nz,nzw->nw", front, back) * across.weights
    off = _lacking(row, along, scale) + _lacking(profile, across, scale)
    sides = np.flatnonzero(along.ends), np.flatnonzero(across.ends)
    size = np.abs(front)
    beyond = (size[:, sides[0]] * (np.abs(back[:, sides[0]]) @ across.weights)).sum(axis=1)
    beyond += np.einsum("nz,nzw,w->n", size, np.abs(back[:, :, sides[1]]), across.weights[sides[1]])
    error = off + 2.0 * beyond + ROUNDS * EPS * scale
    return row.sum(axis=1), error


def _lacking(part: Array, line: Line, scale: Array) -> Array:
    """What a rule lacks in one direction, from sums over fewer of its nodes."""
    off = np.abs(part @ line.signs)
    return np.array([shortfall(*each) for each in zip(scale, off[:, 0], off[:, 1], strict=True)])
