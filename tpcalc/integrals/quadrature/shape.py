"""What quadrature must know of a function of one variable: where it bends, and how fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Call, Expr, Fn, Par, Var
from tpcalc.functions.expr import Pow, walk
from tpcalc.functions.indicator import HIDDEN
from tpcalc.functions.tape import lower, numpy_space, run
from tpcalc.integrals.quadrature.polynomial import Coefficients, coefficients
from tpcalc.integrals.quadrature.roots import preimages

DIRAC = "delta"


@dataclass(frozen=True, slots=True)
class Feature:
    """A point around which a function varies.

    Args:
        place: The point.
        unit: The distance over which the function changes near it.
        kink: Whether the function is not smooth there.
    """

    place: float
    unit: float
    kink: bool


@dataclass(frozen=True)
class Shape:
    """A function of one variable, ready for quadrature.

    Args:
        expr: The function, of ``Var(0)``.
        polynomial: Its coefficients, constant term first; None where it is no polynomial.
        features: Where it varies, sorted by place.
        values: The function on an array.
    """

    expr: Expr
    polynomial: Coefficients | None
    features: tuple[Feature, ...]
    values: Callable[[Array], Array]

    @property
    def smooth(self) -> bool:
        """Whether no kink is known."""
        return not any(feature.kink for feature in self.features)


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
