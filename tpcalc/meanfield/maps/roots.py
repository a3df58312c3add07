"""Roots, powers and rates of numbers that carry errors."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, log1p

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.results import Scale

FIRST, ROUNDS, NARROW, FLAT = 41, 6, 1e-15, 1e-7


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


def falling_root(many: Callable[[Array], Bounded], low: float, high: float) -> tuple[float, float]:
    """Where a function that falls crosses 0, from its values at many places at once.

    Example:
        >>> root, error = falling_root(lambda x: Bounded(2 - x * x, 1e-15), 1e-9, 4.0)
        >>> bool(abs(root - 2**0.5) <= error < 1e-14)
        True
    """
    places = np.geomspace(low, high, FIRST)
    root = low
    for _ in range(ROUNDS):
        found = many(places)
        value, error = np.broadcast_arrays(found.value, found.error)
        above, below = places[value > error], places[value < -error]
        low, high = max([low, *above]), min([high, *below])
        i = int(np.argmax(value <= 0)) if (value <= 0).any() else len(value) - 1
        j = max(i - 1, 0)
        drop = value[j] - value[i]
        share = value[j] / drop if drop > 0 else 0.5
        root = float(places[j] + np.clip(share, 0.0, 1.0) * (places[i] - places[j]))
        root = min(max(root, low), high)
        if high - low <= 8 * EPS * root:
            break
        # Ever finer steps away from the guess, to both sides.
        steps = np.concatenate([[0.0], np.geomspace(NARROW * root, high - low, 16)])
        around = np.unique(np.concatenate([root - steps, root + steps]))
        places = around[(around >= low) & (around <= high)]
    return float(root), float(max(root - low, high - root) + EPS * root)


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
