"""Mehler's series with polynomials beside the two functions.

With y = rho z + kappa w the standardised second Gaussian, a polynomial in (z, w) is one in (z, y),
and z^a f(u), y^b g(v) are functions of one Gaussian each: the series applies term by term.
"""

from __future__ import annotations

from math import comb

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.conditional import Surface
from tpcalc.integrals.quadrature.families import Family, Pairs, family
from tpcalc.integrals.quadrature.geometry import Plane
from tpcalc.integrals.quadrature.mehler import mehler

STEEP = 0.3  # below this kappa the turned polynomial has large terms that cancel
ENOUGH = 3e-13


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
