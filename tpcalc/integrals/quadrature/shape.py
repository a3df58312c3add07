"""What quadrature must know of a function of one variable: where it bends, and how fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import Pow, walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.functions.tape import evaluate, lower, numpy_space, run
from tpcalc.integrals.quadrature.polynomial import Coefficients, coefficients, shifted

SEARCHED = 2000  # points on each side of 0
WIDEST, FINEST = 1e5, 1e-5
MOST = 64

DIRAC = "delta"


@dataclass(frozen=True, slots=True)
class Feature:
    """A point around which a function varies."""

    place: float  # the point
    unit: float  # the distance over which the function changes near it
    kink: bool  # whether the function is not smooth there


@dataclass(frozen=True)
class Shape:
    """A function of one variable, ready for quadrature."""

    expr: Expr  # the function, of Var(0)
    # its coefficients, constant term first; None where it is no polynomial
    polynomial: Coefficients | None
    features: tuple[Feature, ...]  # where it varies, sorted by place
    values: Callable[[Array], Array]  # the function on an array

    @property
    def smooth(self) -> bool:
        """Whether no kink is known."""
        return not any(feature.kink for feature in self.features)


def unit_of(function: Shape, *others: Shape) -> float:
    """The smallest distance over which functions change; infinite for a polynomial."""
    units = (feature.unit for part in (function, *others) for feature in part.features)
    return min(units, default=1.0 if function.polynomial is None else inf)


def depends(expr: Expr) -> bool:
    """Whether an expression has an argument in it."""
    return any(isinstance(part, Var) for part in walk(expr))


@lru_cache(maxsize=1024)
def shape(expr: Expr) -> Shape | None:
    """The shape of a function; None where quadrature cannot be trusted with it."""
    parts = list(walk(expr))
    if any(_foreign(part) for part in parts):
        return None
    found = coefficients(expr)
    if found is not None:
        return Shape(expr, found, (), _callable(expr))
    features: list[Feature] = []
    for part in parts:
        added = _features(part)
        if added is None:
            return None
        features.extend(added)
    return Shape(expr, None, _merged(features), _callable(expr))


def _foreign(part: Expr) -> bool:
    """A part without values, or of another variable."""
    if isinstance(part, Par) or (isinstance(part, Var) and part.index != 0):
        return True
    if not isinstance(part, Call):
        return False
    numbers = all(isinstance(value, int | float | Fraction) for value in part.atom.params)
    return part.atom.name in (HIDDEN, DIRAC) or not numbers


def _features(part: Expr) -> list[Feature] | None:
    if isinstance(part, Call) and depends(part.arg):
        inner, kinks = part.arg, part.atom.facts.kinks
    elif isinstance(part, Pow) and depends(part.base) and not _whole(part.exponent):
        inner, kinks = part.base, (0.0,)
    else:
        return []
    # Roots of an argument that is no polynomial are searched, not solved: one that is missed where
    # the function bends is noticed by the panels, one where it jumps back and forth might not be.
    searched = isinstance(part, Call) and coefficients(inner) is None
    if searched and isinstance(part, Call) and any(_jumps(part, kink) for kink in kinks):
        return None
    targets = dict.fromkeys((0.0, *kinks))
    return [
        Feature(root.place, root.unit, root.real and target in kinks)
        for target in targets
        for root in preimages(inner, target)
    ]


def _whole(exponent: Fraction) -> bool:
    return exponent.denominator == 1 and exponent >= 0


def _jumps(call: Call, kink: float) -> bool:
    step = 1e-9 * max(1.0, abs(kink))
    with np.errstate(all="ignore"):
        left, right = call.atom.evaluate(numpy_space(), np.array([kink - step, kink + step]))
    if np.isnan(left) or np.isnan(right):  # the end of its domain
        return False
    return not abs(right - left) < 1e-4 * (1.0 + abs(left))


def _merged(features: list[Feature]) -> tuple[Feature, ...]:
    """One feature for each place: the smallest unit, a kink where any is one."""
    found: dict[float, Feature] = {}
    for feature in features:
        if not math.isfinite(feature.place):
            continue
        place = feature.place + 0.0  # no negative zero
        other = found.get(place, feature)
        unit, kink = min(feature.unit, other.unit), feature.kink or other.kink
        found[place] = Feature(place, unit, kink)
    return tuple(found[place] for place in sorted(found))


def _callable(expr: Expr) -> Callable[[Array], Array]:
    tape = lower(Fn(expr, 1))

    def values(x: Array) -> Array:
        out: Any = run(tape, numpy_space(), [x])
        return np.broadcast_to(np.asarray(out, dtype=np.float64), x.shape)

    return values


class Root(NamedTuple):
    """A point where an argument takes a value, or comes near it."""

    place: float  # the point
    unit: float  # the distance over which the argument moves by 1
    real: bool  # whether the value is taken (else the root has an imaginary part)


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
