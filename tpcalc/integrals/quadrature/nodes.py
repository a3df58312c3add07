"""The Gauss-Legendre rule of one panel, and the rules of weight zero that judge it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals import rules

ORDER = 32
JUDGES = 4


class Rule(NamedTuple):
    """A rule on [-1, 1]."""

    points: Array  # its nodes, inside the interval: a kink at an end is never hit
    weights: Array
    # columns that give the last Legendre coefficients of the integrand, times the length. They fall
    # like the error of polynomials of degree ORDER - 1, so they bound the error of the rule, which
    # is exact up to degree 2 ORDER - 1.
    judges: Array


@lru_cache(maxsize=1)
def gauss_legendre() -> Rule:
    """The rule with ``ORDER`` nodes.

    Source: Davis, Rabinowitz, Methods of Numerical Integration, 2.7 (Gauss rules) and 4.9 (errors).
    """
    from scipy.special import eval_legendre

    points, weights = rules.legendre(ORDER)
    legendre = np.stack([eval_legendre(k, points) for k in range(ORDER)], axis=1)
    low, high = legendre[:, : ORDER - JUDGES], legendre[:, ORDER - JUDGES :]
    # Nodes are rounded, and high degrees magnify that: made orthogonal anew to lower degrees, the
    # judges see nothing of a polynomial that the rule integrates exactly.
    basis, _ = np.linalg.qr(low)
    judges = weights[:, None] * high * (2 * np.arange(ORDER - JUDGES, ORDER) + 1)
    for _ in range(3):
        judges -= basis @ (basis.T @ judges)
    return Rule(points, weights, judges)
