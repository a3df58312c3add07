"""The gap as an integral over the angle between two Gaussians, where E f'(u) f'(v) is known.

For u and v of variance q and covariance q cos(t), d/dt E f(u) f(v) = -q sin(t) E f'(u) f'(v). With
the gap q (1 - cos T) the sum of the changes from t = 0 to T has positive terms alone for small T,
and kinks of f do no harm: E f'(u) f'(v) is smooth in t > 0, where it is not in the covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import sqrt

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.carried import Carried
from tpcalc.integrals.quadrature.nodes import ORDER, gauss_legendre

MOVE = 1e-6  # of the variance, for a derivative
WIDTH = 1.0  # of the first panel, in units of the function
WIDEST = 0.8
GROWTH = 4.0
HALVINGS = (1.0, 0.125)
ENOUGH = 4e-13
SAFETY = 4.0

Product = Callable[[Array, Array], Bounded | None]


@lru_cache(maxsize=1)
def _slopes() -> Array:
    """From values at the nodes of a panel of length 2 to derivatives there."""
    rule = gauss_legendre()
    table = np.polynomial.legendre.legvander(rule.points, ORDER - 1)
    coefficients = (table * rule.weights[:, None]).T * (np.arange(ORDER) + 0.5)[:, None]
    unit = np.polynomial.legendre.legder(np.eye(ORDER))
    derivatives = np.polynomial.legendre.legval(rule.points, unit).T
    return np.asarray(derivatives @ coefficients)


def _between(values: Array, place: Array) -> Array:
    """The polynomial through values at the nodes of [-1, 1], at other places.

    Source: Wang, Xiang, On the convergence rates of Legendre approximation, theorem 3.1 (weights).
    """
    rule = gauss_legendre()
    weights = np.sqrt((1.0 - rule.points**2) * rule.weights)
    weights[1::2] *= -1.0
    apart = place[..., None] - rule.points
    terms = weights / np.where(apart == 0.0, 1e-300, apart)
    return np.asarray((terms @ values[..., None])[..., 0] / terms.sum(axis=-1))


def gap_by_angle(product: Product, q: float, delta: float, unit: float) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) for variances q and the covariance q - delta.

    Source: Price, A useful theorem for nonlinear devices having Gaussian inputs.
    """
    first = min(WIDEST, WIDTH * unit / sqrt(q))
    for share in HALVINGS:
        found = _with_panels(product, q, delta, share * first)
        if found is None or found.error <= ENOUGH * found.value:
            return found
    return found


def _with_panels(product: Product, q: float, delta: float, first: float) -> Carried | None:
    variances = np.array([q, q * (1.0 + MOVE)])
    ends = 2.0 * np.arcsin(np.sqrt(np.minimum(0.5 * delta / variances, 1.0)))
    edges = _edges(ends, first)
    rule = gauss_legendre()
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    wanted = middle[..., None] + half[..., None] * rule.points
    q_all = np.broadcast_to(variances[:, None, None], wanted.shape)
    cov = q_all - 2.0 * q_all * np.sin(0.5 * wanted) ** 2
    found = product(q_all.ravel(), cov.ravel())
    if found is None:
        return None
    values = np.reshape(found.value, wanted.shape)
    doubt = np.broadcast_to(np.reshape(found.error, (-1,)), (wanted.size,)).reshape(wanted.shape)
    # The covariance is a float, so its angle is not quite the one wanted.
    met = 2.0 * np.arcsin(np.sqrt(np.clip(0.5 * (q_all - cov) / q_all, 0.0, 1.0)))
    values = values + (values @ _slopes().T) / half[..., None] * (wanted - met)
    return _summed(values, doubt, edges, ends, variances)


def _edges(ends: Array, first: float) -> Array:
    """Ends of panels for each row, longer and longer; beyond the end where it comes early."""
    if ends[0] <= first:
        return np.array([[0.0, first]] * len(ends))
    count = max(1, round(np.log(ends[0] / first) / np.log(GROWTH))) + 1
    inner = first * (ends[0] / first) ** (np.arange(count) / (count - 1))
    return np.outer(ends / ends[0], [0.0, *inner])


def _summed(values: Array, doubt: Array, edges: Array, ends: Array, variances: Array) -> Carried:
    rule, start = gauss_legendre(), edges[0, 1]
    if ends[0] <= start:
        theta = 0.5 * ends[:, None] * (1.0 + rule.points)
        weights = 0.5 * ends[:, None] * rule.weights * np.sin(theta)
        found = _between(values[:, 0], 2.0 * theta / start - 1.0)
        total = (found * weights).sum(axis=1) * variances
        size = (np.abs(found[0]) * weights[0]).sum()
        unseen = np.abs(values[0, 0] @ rule.judges).max() + SAFETY * doubt[0].max()
        error = SAFETY * unseen * weights[0].sum()
    else:
        half = 0.5 * np.diff(edges)[..., None]
        middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None]
        weighted = values * np.sin(middle + half * rule.points) * half
        total = (weighted @ rule.weights).sum(axis=1) * variances
        size = (np.abs(weighted[0]) @ rule.weights).sum()
        error = np.abs(weighted[0] @ rule.judges).max(axis=1).sum()
        error += ((doubt * half)[0] @ rule.weights).sum()
    panel = edges[0, -2:] if ends[0] > start else edges[0, :2]
    place = (2.0 * ends[:1] - panel.sum()) / (panel[1] - panel[0])
    last = float(_between(values[0, -1], place)[0])
    bound = (error + 16.0 * EPS * size) * variances[0]
    change = (total[1] - total[0]) / (MOVE * variances[0])
    return Carried(float(total[0]), float(bound), float(change), last)
