"""Gauss rules: the one place where their nodes are made."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tpcalc.arrays import Array


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]."""
    return _kept(*np.polynomial.legendre.leggauss(count))


@lru_cache(maxsize=64)
def normal(count: int) -> tuple[Array, Array]:
    """Nodes and weights of averages over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return _kept(nodes, weights / weights.sum())


def _kept(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """A rule that whoever asks for it cannot change."""
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
