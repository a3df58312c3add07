"""Two Gaussians, and others beside them, as functions of two independent ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.integrals.exact.floats import two_product

ROUNDED = 1e-12  # a correlation this far above 1 is the rounding of whoever computed it


class Plane(NamedTuple):
    """u = u0 + su z and v = v0 + sv (rho z + kappa w), with z, w independent N(0, 1)."""

    u0: Array  # mean of u
    v0: Array  # mean of v
    su: Array  # standard deviation of u
    sv: Array  # standard deviation of v
    rho: Array  # the correlation; 1 where one of the two is constant
    kappa: Array  # sqrt(1 - rho^2), to full relative precision

    def at(self, index: Any) -> Plane:
        """Some of the pairs."""
        return Plane(*(part[index] for part in self))


def determinant(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The determinant a d - b c, accurate, where the products nearly cancel."""
    high, low = two_product(a, d)
    other, rest = two_product(b, c)
    return np.asarray((high - other) + (low - rest))


def _balanced(q: Array) -> tuple[Array, Array]:
    """A variance as q' 4^k with q' of order one, and k."""
    _, exponent = np.frexp(q)
    half = exponent // 2
    return np.ldexp(q, -2 * half), half


def plane(u0: Array, v0: Array, qu: Array, qv: Array, c: Array) -> Plane:
    """The two directions of a pair."""
    a, k_u = _balanced(qu)
    b, k_v = _balanced(qv)
    cross = np.ldexp(c, -(k_u + k_v))
    flat = (qu == 0) | (qv == 0)
    product = np.where(flat, 1.0, a * b)
    share = determinant(a, cross, cross, b) / product
    if (np.where(flat, (c != 0) * -1.0, share) < -ROUNDED).any():
        raise EvaluationError(
            "a covariance of two Gaussians is larger than their variances allow.",
            hint="|Cov(u, v)| is at most sqrt(Var u Var v).",
        )
    kappa = np.sqrt(np.clip(np.where(flat, 0.0, share), 0.0, 1.0))
    rho = np.where(flat, 1.0, np.clip(cross / np.sqrt(product), -1.0, 1.0))
    rho = np.where((kappa == 0.0) & ~flat, np.sign(rho), rho)
    return Plane(u0, v0, np.sqrt(qu), np.sqrt(qv), rho, kappa)


def regression(pair: Plane, qu: Array, c: Array, cu: Array, cv: Array) -> tuple[Array, Array]:
    """Cov(g, z) and Cov(g, w) of another Gaussian g."""
    with np.errstate(all="ignore"):
        along = np.where(pair.su > 0, cu / pair.su, np.where(pair.sv > 0, cv / pair.sv, 0.0))
        across = determinant(cv, c, cu, qu) / (qu * pair.sv * pair.kappa)
    return along, np.where(pair.kappa > 0, across, 0.0)
