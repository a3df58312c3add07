"""What one layer needs of an activation: moments and the gap, with their derivatives.

The way is chosen by the function: on a lattice where it is smooth, in closed form where it is a
broken line, on both sides of a kink where it has one. Each says where it is not good enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.functions.form import period
from tpcalc.integrals import exact
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.angle import gap_by_angle
from tpcalc.integrals.quadrature.broken import BrokenLine, broken_gap, broken_line, broken_moments
from tpcalc.integrals.quadrature.carried import Carried, Moments
from tpcalc.integrals.quadrature.dirac import holds_delta
from tpcalc.integrals.quadrature.kink import centre, kink_gap, kink_moments
from tpcalc.integrals.quadrature.lattice import lattice_gap, lattice_moments
from tpcalc.integrals.quadrature.shape import Shape, shape, unit_of
from tpcalc.integrals.quadrature.waves import Wave, wave, wave_gap, wave_moments

GOOD = 1e-12  # relative error with which no other way is tried
USABLE = 1e-11  # and up to which the best is taken
LARGE = 1e-3  # of the variance: such gaps are differences of closed forms
MOVE = 1e-6  # of the variance, for a derivative


class Pair(NamedTuple):
    """A function and its slope, where quadrature takes them."""

    function: Shape  # f
    slope: Shape | None  # its derivative; None where that is no function
    smooth: bool = False  # whether neither has a kink
    line: BrokenLine | None = None  # the function as a broken line, where it is one
    wave: Wave | None = None  # one period of it, where it has one
    # the only place where both vary, with all kinks; None where there are several
    centre: float | None = None
    closed: bool = False  # whether E f'(u) f'(v) has a closed form


@lru_cache(maxsize=1024)
def prepared(factor: Expr) -> Pair | None:
    """A function with what quadrature must know of it and its slope."""
    function = None if holds_delta(factor) else shape(factor)
    if function is None:
        return None
    try:
        expr = derivative(factor, Var(0))
    except NotDifferentiable:
        return Pair(function, None)
    slope = None if holds_delta(expr) else shape(expr)
    if slope is None:
        return Pair(function, None)
    smooth = function.smooth and slope.smooth
    line, middle = broken_line(function, slope), centre(function, slope)
    turn = None if line is None else wave(line, period(factor))
    return Pair(function, slope, smooth, line, turn, middle, exact.supported((expr, expr)))


@lru_cache(maxsize=4096)
def layer_moments(factor: Expr, q: float) -> Moments | None:
    """E f(s), E f(s)^2 and E f'(s)^2 for a centred Gaussian s, all from the same nodes.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = layer_moments(lookup("tanh").fn.expr, 1.0)
        >>> round(found.square.value, 6), found.square.error < 1e-14
        (0.394294, True)
    """
    pair = prepared(factor)
    if pair is None or pair.slope is None or not q > 0.0:
        return None
    function, slope, found = pair.function, pair.slope, None
    with np.errstate(all="ignore"):
        if pair.smooth:
            found = lattice_moments(function, slope, q)
        elif pair.line is not None:
            found = broken_moments(pair.line, q)
        if found is None and pair.wave is not None:
            found = wave_moments(pair.wave, q)
        if found is None and pair.centre is not None:
            found = kink_moments(function, slope, pair.centre, q)
    return found


Way = Callable[[Pair, float, float], Carried | None]


def direct_gap(pair: Pair, q: float, delta: float) -> Carried | None:
    """E f(u)^2 - E f(u) f(v) by rules made for one pair of numbers."""
    if pair.slope is None or not 0.0 < delta < 2.0 * q:
        return None
    closed: tuple[Way, ...] = ()
    if pair.closed:
        large = delta > LARGE * q
        closed = (_by_difference, _by_angle) if large else (_by_angle, _by_difference)
    ways = (_on_lattice, *closed, _by_sides) if pair.smooth else (_on_line, _by_sides, *closed)
    best = None
    with np.errstate(all="ignore"):
        for way in ways:
            found = way(pair, q, delta)
            if found is not None and (best is None or found.error < best.error):
                best = found
            if best is not None and best.error <= GOOD * best.value:
                break
    return best if best is not None and best.error <= USABLE * best.value else None


def _on_lattice(pair: Pair, q: float, delta: float) -> Carried | None:
    return lattice_gap(pair.function, pair.slope, q, delta) if pair.slope else None


def _on_line(pair: Pair, q: float, delta: float) -> Carried | None:
    found = broken_gap(pair.line, q, delta) if pair.line else None
    return wave_gap(pair.wave, q, delta) if found is None and pair.wave else found


def _by_sides(pair: Pair, q: float, delta: float) -> Carried | None:
    moments = layer_moments(pair.function.expr, q)
    if pair.centre is None or pair.slope is None or moments is None:
        return None
    return kink_gap(pair.function, pair.slope, pair.centre, (q, delta), moments)


def _closed(factor: Expr, variance: Array, covariance: Array) -> Bounded | None:
    rows = [[variance, covariance], [covariance, variance]]
    return exact.expectation((factor, factor), [0.0, 0.0], rows)


def _by_angle(pair: Pair, q: float, delta: float) -> Carried | None:
    slope = pair.slope
    if slope is None:
        return None
    return gap_by_angle(partial(_closed, slope.expr), q, delta, unit_of(slope))


def _by_difference(pair: Pair, q: float, delta: float) -> Carried | None:
    """By the closed forms of both terms, which do not cancel where the gap is large."""
    variance = np.array([q, q * (1.0 + MOVE)])
    square = _closed(pair.function.expr, variance, variance)
    product = _closed(pair.function.expr, variance, variance - delta)
    if pair.slope is None or square is None or product is None:
        return None
    by_gap = _closed(pair.slope.expr, variance[:1], variance[:1] - delta)
    if by_gap is None:
        return None
    value = np.asarray(square.value) - product.value
    size = abs(square.value[0]) + abs(product.value[0])
    error = np.broadcast_to(square.error, 2)[0] + np.broadcast_to(product.error, 2)[0]
    # The covariance is rounded.
    error += EPS * (size + q * abs(by_gap.value[0]))
    change = (value[1] - value[0]) / (variance[1] - q)
    return Carried(float(value[0]), float(error), float(change), float(by_gap.value[0]))
