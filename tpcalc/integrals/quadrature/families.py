"""Functions at the different Gaussians of an array, and pairs of such Gaussians."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import Integrals
from tpcalc.integrals.quadrature.conditional import Surface
from tpcalc.integrals.quadrature.geometry import Plane
from tpcalc.integrals.quadrature.one_dimension import Lines, line_integrals, outer_sizes
from tpcalc.integrals.quadrature.shape import Shape, shape

Index = NDArray[np.intp]


class Family(NamedTuple):
    """A function at the different Gaussians that occur."""

    shape: Shape  # the function f
    mean: Array  # means, of shape (n,)
    spread: Array  # standard deviations
    energy: Integrals  # E z^2p f^2 with its error
    power: int = 0  # the p of a factor z^p, z the standardised Gaussian


class Pairs(NamedTuple):
    """Pairs of Gaussians in an array of two axes."""

    plane: Plane  # the two directions of each pair
    left: Index  # for each pair the place of u among the different ones; it broadcasts
    right: Index  # the same for v
    surface: Surface  # the polynomial P(z, w), each coefficient an array that broadcasts
    natural: Array  # the natural scale of P


def distinct(mean: Array, spread: Array) -> tuple[Array, Array, Index]:
    """The different Gaussians of an array, and for each entry its place among them."""
    mean, spread = np.broadcast_arrays(mean, spread)
    if mean.size == 1:
        return mean.ravel(), spread.ravel(), np.zeros(mean.shape, dtype=np.intp)
    rows = np.stack([mean.ravel(), spread.ravel()], axis=1)
    found, index = np.unique(rows, axis=0, return_inverse=True)
    return found[:, 0].copy(), found[:, 1].copy(), index.reshape(mean.shape)


def family(function: Shape, mean: Array, spread: Array, power: int = 0) -> Family | None:
    """A function at different Gaussians; None where its square has no finite mean."""
    square = shape(function.expr * function.expr)
    if square is None:
        return None
    powers = np.zeros((2 * power + 1, len(mean)))
    powers[-1] = 1.0
    lines = Lines((square,), mean[None], spread[None], powers)
    energy = line_integrals(lines, np.zeros(len(mean)))
    good = energy.error <= 1e-9 * energy.size
    return Family(function, mean, spread, energy, power) if good.all() else None


def beyond(part: Family, reach: float) -> Array:
    """Bounds on E f^2 outside of what a rule over |z|, |w| < reach sees."""
    square = shape(part.shape.expr * part.shape.expr)
    if square is None:
        raise AssertionError(part.shape.expr.text)  # a family has one
    ones = np.ones((1, len(part.mean)))
    return outer_sizes(Lines((square,), part.mean[None], part.spread[None], ones), reach)
