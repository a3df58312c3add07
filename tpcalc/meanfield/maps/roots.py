"""Roots, powers and rates of numbers that carry errors."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, log1p

from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.results import Scale

FLAT = 1e-7


def rate(slope: Bounded) -> Bounded:
    """-ln |slope|: what a map with this slope takes off the logarithm of a small difference.

    Example:
        >>> rate(Bounded(1.0)).value
        0.0
    """
    size = abs(slope.value)
    if size <= slope.error:
        return Bounded(inf, 0.0 if slope.value == 0 == slope.error else inf, slope.method)
    found = -log(size) + 0.0
    error = -log1p(-slope.error / size) + EPS * max(1.0, abs(found))
    return Bounded(found, error, slope.method)


def scale(slope: Bounded) -> Scale:
    """Over how many layers a small difference changes by a factor e.

    Example:
        >>> from math import e
        >>> round(scale(Bounded(1 / e**2)).layers, 12)
        0.5
    """
    return Scale(rate(slope).estimate())


def log_root(function: Callable[[float], Bounded], low: float, high: float) -> Bounded:
    """Where a function of x > 0 changes its sign, with the error that its own errors leave.

    Example:
        >>> round(log_root(lambda x: Bounded(x * x - 2.0), 1.0, 2.0).value, 12)
        1.414213562373
    """
    from scipy.optimize import brentq

    start, end = log(low), log(high)
    place = float(
        brentq(
            lambda u: function(exp(u)).value,
            start,
            end,
            xtol=1e-15,
            rtol=1e-14,
            maxiter=200,
            disp=False,
        )
    )
    root = exp(place)
    here = function(root)
    step = 1e-5
    above, below = function(exp(place + step)), function(exp(place - step))
    slope = (above.value - below.value) / (2 * step)  # the derivative by log x
    off = (here.error + abs(here.value)) / abs(slope) if slope else 1.0
    # Where the function is flat its slope says little: then the search begins near the root.
    guess = (1.5 * off if off < FLAT else FLAT) + 4 * EPS
    ends = [_certain(function, root, side, guess, end) for side, end in ((-1, low), (1, high))]
    return Bounded(root, max(abs(root - end) for end in ends) + EPS * root, here.method)


def _certain(
    function: Callable[[float], Bounded], root: float, side: int, guess: float, end: float
) -> float:
    """Where the sign of the function is beyond doubt, as near to the root as that may be."""
    sign = function(end).value
    step = guess
    while step < abs(log(end / root)):
        at = root * exp(side * step)
        found = function(at)
        if abs(found.value) > found.error and found.value * sign > 0:
            return at
        step *= 4
    return end
