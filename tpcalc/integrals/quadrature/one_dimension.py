"""Expectations over one standard Gaussian: products of functions of points on lines."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.adaptive import FINEST, Effort, Integrals, Sampled, integrate
from tpcalc.integrals.quadrature.panels import Bends, Panels, panels
from tpcalc.integrals.quadrature.shape import Shape

PEAK = 1.0 / sqrt(2.0 * pi)
WHOLE = 38.0  # where the density of N(0, 1) leaves the range of floats
REACH = 13.0  # what two-dimensional rules cover
FIRST = 2.0  # first panel beside a bend, in its units
LOOSE = Effort(tolerance=1e-2, rounds=4)
USUAL = Effort()


class Lines(NamedTuple):
    """Integrands f_1(o_1 + b_1 z) f_2(o_2 + b_2 z) ... P(z) of n problems."""

    shapes: tuple[Shape, ...]  # the functions
    offset: Array  # the o_i, of shape (functions, n)
    slope: Array  # the b_i, of that shape
    powers: Array  # the coefficients of P for each problem, of shape (degree + 1, n)

    @property
    def problems(self) -> int:
        """The number of problems."""
        return int(self.powers.shape[1])


def line_integrals(lines: Lines, scale: Array) -> Integrals:
    """E of the integrands for z ~ N(0, 1)."""
    return _integrate(lines, normal_integrand(lines), scale, USUAL)


def outer_sizes(lines: Lines, reach: float) -> Array:
    """Bounds on E f(v)^2 where |w| > reach, for every w ~ N(0, 1) jointly Gaussian with v.

    Given the standardised v = r the mass of |w| > reach is largest where the two are correlated as
    r / reach; times the density at r it is at most the density at max(|r|, reach).
    """
    found = _integrate(lines, normal_integrand(lines, reach), np.zeros(lines.problems), LOOSE)
    return found.value + found.error


def normal_integrand(lines: Lines, least: float = 0.0) -> Callable[[Panels], Sampled]:
    """The integrands times the density, where |z| is not below this."""

    def integrand(cover: Panels) -> Sampled:
        z, values = sampled(lines, cover)
        values *= PEAK * np.exp(-0.5 * np.maximum(z * z, least**2))
        return Sampled(values, 0.0)

    return integrand


def _integrate(
    lines: Lines, integrand: Callable[[Panels], Sampled], scale: Array, effort: Effort
) -> Integrals:
    with np.errstate(all="ignore"):
        cover = panels(line_bends(lines), lines.offset, WHOLE)
        return integrate(integrand, cover, scale, _lean(lines), effort)


def _lean(lines: Lines) -> Array | None:
    if len(lines.shapes) < 2:
        return None
    flat = lines.slope == 0.0
    moved = np.abs(np.where(flat, 0.0, lines.offset / np.where(flat, 1.0, lines.slope)))
    return np.asarray(moved.max(axis=0))


def sampled(lines: Lines, cover: Panels) -> tuple[Array, Array]:
    """The nodes z of panels, and the product of the functions and P there."""
    offsets = cover.offsets
    z = cover.anchor[:, None] + offsets
    powers = lines.powers[:, cover.problem, None]
    values = np.zeros_like(z)
    values += powers[-1]
    for coefficient in powers[-2::-1]:
        values *= z
        values += coefficient
    for index, function in enumerate(lines.shapes):
        slope = lines.slope[index, cover.problem]
        values *= function.values(cover.base[index][:, None] + slope[:, None] * offsets)
    return z, values


def line_bends(lines: Lines) -> Bends:
    """Where the functions vary, on the axis of z."""
    count = lines.problems
    points = sum(len(function.features) for function in lines.shapes)
    place, first = np.full((count, points), np.inf), np.full((count, points), np.inf)
    finest, base = np.zeros((count, points)), np.zeros((len(lines.shapes), count, points))
    column = 0
    for index, function in enumerate(lines.shapes):
        offset, slope = lines.offset[index], lines.slope[index]
        for feature in function.features:
            z = np.where(slope == 0.0, np.inf, (feature.place - offset) / slope)
            place[:, column] = z
            first[:, column] = FIRST * feature.unit / np.abs(slope)
            finest[:, column] = FINEST * np.abs(feature.place / slope)
            near = np.where(np.isfinite(z), z, 0.0)
            base[:, :, column] = lines.offset + lines.slope * near
            base[index, :, column] = feature.place
            column += 1
    return Bends(place, first, finest, base)
