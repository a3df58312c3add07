"""E f(u)^2 - E f(u) f(v) for nearly equal u and v, without the difference of two large numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature.adaptive import EPS, Integrals
from tpcalc.integrals.quadrature.carried import Carried
from tpcalc.integrals.quadrature.differences import Difference, difference_integrals
from tpcalc.integrals.quadrature.expectation import expectation
from tpcalc.integrals.quadrature.families import beyond, distinct, family
from tpcalc.integrals.quadrature.layer import LARGE, Pair, direct_gap, prepared
from tpcalc.integrals.quadrature.one_dimension import REACH, WHOLE
from tpcalc.integrals.quadrature.shape import Shape
from tpcalc.results import Method

ENOUGH = 1e-12
MISSED = 1e-14
BATCH = 64
MOVE = 1e-6  # relative, for a derivative


def gap(factor: Expr, q: Any, delta: Any) -> Bounded:
    """E f(u)^2 - E f(u) f(v) for centred u, v of variance q and covariance q - delta.

    It is 1/2 E[f(a s + h t) - f(a s - h t)]^2 with a^2 = q - delta/2, h^2 = delta/2 and s, t
    independent N(0, 1). It has positive terms alone, so the result is accurate relative to itself
    however small delta is.

    Args:
        factor: f, a function of ``Var(0)`` without Dirac deltas.
        q: Variances, floats or arrays.
        delta: Differences of variance and covariance, between 0 and 2 q, floats or arrays.

    Returns:
        Values with bounds on their errors. These are of relative size 1e-10 at most where f has
        a derivative or jumps; where its slope is unbounded they grow as delta falls. They are
        infinite where f bends too often for its average to be found in a second or two.

    Raises:
        EvaluationError: The numbers are no variances, or quadrature does not take this function.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = gap(lookup("relu").fn.expr, 1.0, 1e-20)
        >>> round(float(found.value) * 1e20, 9)
        0.5
    """
    pair = _pair(factor)
    variance = np.asarray(q, dtype=np.float64)
    difference = np.asarray(delta, dtype=np.float64)
    if not (np.isfinite(variance).all() and np.isfinite(difference).all()):
        raise EvaluationError("a variance or a difference of covariances is not finite.")
    if (variance < 0).any() or (difference < 0).any() or (difference > 2.0 * variance).any():
        raise EvaluationError(
            "a difference of variance and covariance is not between 0 and twice the variance."
        )
    variance, difference = np.broadcast_arrays(variance, difference)
    some_q, some_delta, index = distinct(variance, difference)
    with np.errstate(all="ignore"):
        value, error = _gaps(pair, some_q, some_delta)
    return Bounded(value[index][()], error[index][()], Method.QUADRATURE)


def carried_gap(factor: Expr, q: float, delta: float) -> Carried:
    """The gap at two numbers, with its derivatives in both.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = carried_gap(lookup("relu").fn.expr, 1.0, 1e-20)
        >>> round(found.by_gap, 9), found.error < 1e-10 * found.value
        (0.5, True)
    """
    pair = _pair(factor)
    found = direct_gap(pair, q, delta)
    if found is not None:
        return found
    here = gap(factor, q, delta)
    value, error = here.value, here.error
    if not np.isfinite(error):
        raise EvaluationError(
            f"{factor.text} bends too often for an average over inputs of the variance {q:.3g}.",
            hint="Take smaller variances, or an activation with fewer kinks.",
        )
    more, shift = q * (1.0 + MOVE), delta * (1.0 - MOVE)
    wider, nearer = gap(factor, np.array([more, q]), np.array([delta, shift])).value
    by_variance, by_gap = (wider - value) / (more - q), (value - nearer) / (delta - shift)
    return Carried(float(value), float(error), float(by_variance), float(by_gap))


def _pair(factor: Expr) -> Pair:
    pair = prepared(factor)
    if pair is None:
        raise EvaluationError(
            f"quadrature does not take the function {factor.text}.",
            hint="It needs values, and kinks that are declared or can be solved for.",
        )
    return pair


def _gaps(pair: Pair, q: Array, delta: Array) -> tuple[Array, Array]:
    value, error = np.zeros(len(q)), np.zeros(len(q))
    left = []
    for place in np.flatnonzero(delta > 0.0):
        found = direct_gap(pair, float(q[place]), float(delta[place]))
        if found is None:
            left.append(place)
        else:
            value[place], error[place] = found.value, found.error
    if left:
        value[left], error[left] = _general(pair.function, pair.slope, q[left], delta[left])
    return value, error


def _general(function: Shape, slope: Shape | None, q: Array, delta: Array) -> tuple[Array, Array]:
    """Whatever the function: as a difference of averages, or adaptively in the plane."""
    value, error = _by_products(function.expr, q, delta)
    left = np.flatnonzero(~(error <= ENOUGH * value))
    if left.size:
        found = _by_difference(function, slope, q[left], delta[left])
        better = found.error < error[left]
        value[left] = np.where(better, found.value, value[left])
        error[left] = np.where(better, found.error, error[left])
    return value, error


def _by_products(factor: Expr, q: Array, delta: Array) -> tuple[Array, Array]:
    """As a difference of averages, which costs little and loses nothing where the gap is large."""
    value, error = np.zeros(len(q)), np.full(len(q), np.inf)
    for place in np.flatnonzero(delta > LARGE * q):
        variance, product = q[place], q[place] - delta[place] * np.array([0.0, 1.0])
        found = expectation(
            (factor, factor), [0.0, 0.0], [[variance, product], [product, variance]]
        )
        if found is not None:
            value[place] = found.value[0] - found.value[1]
            rounding = EPS * (np.abs(found.value).sum() + value[place] * variance / delta[place])
            error[place] = np.broadcast_to(found.error, 2).sum() + rounding
    return value, error


def _by_difference(function: Shape, slope: Shape | None, q: Array, delta: Array) -> Integrals:
    """By the square of a difference, in two dimensions."""
    spread, place = np.unique(np.sqrt(q), return_inverse=True)
    shapes = (one for one in (slope, function) if one is not None)
    bodies = (family(one, np.zeros(len(spread)), spread) for one in shapes)
    body = next((one for one in bodies if one is not None), None)
    reach, missed = WHOLE, np.zeros(len(q))
    if body is not None:
        left_out = beyond(body, REACH)[place]
        if slope is not None and (left_out <= MISSED * body.energy.value[place]).all():
            reach, missed = REACH, 4.0 * delta * left_out
    parts = []
    for start in range(0, len(q), BATCH):
        some = slice(start, start + BATCH)
        spread, step = np.sqrt(q[some] - 0.5 * delta[some]), np.sqrt(0.5 * delta[some])
        parts.append(difference_integrals(Difference(function, slope, spread, step), reach))
    found = Integrals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    rounding = 16.0 * EPS * found.value
    return found._replace(error=found.error + rounding + missed)
