"""Gauss rules: the one place where their nodes are made."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]."""
    return _kept(*np.polynomial.legendre.leggauss(count))


class Rule(NamedTuple):
    """Nodes on an interval, with what tells the size of what a sum over them does not see."""

    points: Array  # the nodes
    weights: Array
    coefficients: Array  # in columns: from values at the nodes to those on orthogonal polynomials


@lru_cache(maxsize=16)
def expanding(count: int) -> Rule:
    """The rule on [-1, 1] with the coefficients on Legendre polynomials."""
    points, weights = legendre(count)
    table = np.polynomial.legendre.legvander(points, count - 1)
    return Rule(points, weights, table * weights[:, None] * (np.arange(count) + 0.5))


@lru_cache(maxsize=64)
def normal(count: int) -> tuple[Array, Array]:
    """Nodes and weights of averages over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return _kept(nodes, weights / weights.sum())


def hermite(z: Array, degree: int, start: Array | float = 1.0) -> Array:
    """Orthonormal Hermite polynomials of N(0, 1), in rows, times what the first is.

    Times the root of the density they are bounded at every degree.
    """
    out = np.empty((degree + 1, len(z)))
    out[0] = start
    if degree:
        out[1] = z * start
    for k in range(1, degree):
        np.multiply(z, out[k], out=out[k + 1])
        out[k + 1] -= np.sqrt(k) * out[k - 1]
        out[k + 1] *= 1.0 / np.sqrt(k + 1.0)
    return out


def _kept(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """A rule that whoever asks for it cannot change."""
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
