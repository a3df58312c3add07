"""Where the argument of a function takes a value: there the function bends."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.quadrature.polynomial import Coefficients, coefficients, shifted

SEARCHED = 2000  # points on each side of 0
WIDEST, FINEST = 1e5, 1e-5
MOST = 64


class Root(NamedTuple):
    """A point where an argument takes a value, or comes near it.

    Args:
        place: The point.
        unit: The distance over which the argument moves by 1.
        real: Whether the value is taken (else the root has an imaginary part).
    """

    place: float
    unit: float
    real: bool


def preimages(inner: Expr, target: float) -> list[Root]:
    """The points where an argument takes a value."""
    found = coefficients(inner)
    if found is None:
        return _searched(inner, target)
    numbers = (found[0] - Fraction(target), *found[1:])
    if len(numbers) == 2:
        slope = numbers[1]
        return [Root(float(-numbers[0] / slope), float(1 / abs(slope)), True)]
    return _roots(numbers)


def _roots(numbers: Coefficients) -> list[Root]:
    roots = np.roots([float(number) for number in reversed(numbers)])
    # A double root comes out as a complex pair; a kink too many does no harm.
    real = np.abs(roots.imag) <= 1e-6 * (1.0 + np.abs(roots))
    places = [_polished(numbers, float(root)) for root in roots.real]
    return [
        Root(x, _unit(numbers, x), bool(is_real)) for x, is_real in zip(places, real, strict=True)
    ]


def _polished(numbers: Coefficients, root: float) -> float:
    around = shifted(numbers, Fraction(root))
    if around[0] == 0 or around[1] == 0:
        return root
    step = float(-around[0] / around[1])
    return root + step if abs(step) <= 1e-6 * (1.0 + abs(root)) else root


def _unit(numbers: Coefficients, place: float) -> float:
    around = [abs(float(number)) for number in shifted(numbers, Fraction(place))]
    return min(float(size ** (-1.0 / k)) for k, size in enumerate(around) if k and size)


def _searched(inner: Expr, target: float) -> list[Root]:
    from scipy.optimize import brentq

    fn = Fn(inner, 1)

    def gap(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(evaluate(fn, [np.float64(x)])) - target

    side = np.geomspace(FINEST, WIDEST, SEARCHED)
    dense = np.linspace(0.0, 10.0, SEARCHED)[1:]
    right = np.unique(np.concatenate([side, dense]))
    x: Array = np.concatenate([-right[::-1], [0.0], right])
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(evaluate(fn, [x]), dtype=np.float64), x.shape) - target
    zero = y == 0.0
    ends = zero & ~(np.append(zero[1:], True) & np.insert(zero[:-1], 0, True))
    roots = [float(place) for place in x[ends]]
    change = np.flatnonzero(y[:-1] * y[1:] < 0.0)
    # Towards a change of sign at 0 (a pole, say) halving goes through all exponents of floats.
    options = {"xtol": 1e-300, "rtol": 1e-15, "maxiter": 5000}
    roots += [float(brentq(gap, x[k], x[k + 1], **options)) for k in change[:MOST]]
    return [Root(root, _local_unit(gap, root), True) for root in roots[:MOST]]


def _local_unit(gap: Callable[[float], float], root: float) -> float:
    step = 1e-4 * max(1.0, abs(root))
    slope = max(abs(gap(root + step)), abs(gap(root - step))) / step
    return 1.0 / slope if isfinite(slope) and slope > 1e-3 else 1e3
