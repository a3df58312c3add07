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
from tpcalc.integrals.quadrature.families import Family, beyond, distinct, family
from tpcalc.integrals.quadrature.hermite import expand
from tpcalc.integrals.quadrature.layer import LARGE, Pair, direct_gap, prepared
from tpcalc.integrals.quadrature.one_dimension import REACH, WHOLE
from tpcalc.integrals.quadrature.shape import Shape
from tpcalc.results import Method

DEGREES = (64, 256, 1024)
ENOUGH = 1e-12
MISSED = 1e-14
BATCH = 64
MOVE = 1e-6  # relative, for a derivative


def gap(factor: Expr, q: Any, delta: Any) -> Bounded:
    """E f(u)^2 - E f(u) f(v) for centred u, v of variance q and covariance q - delta.

    It is 1/2 E[f(a s + h t) - f(a s - h t)]^2 with a^2 = q - delta/2, h^2 = delta/2 and s, t
    independent N(0, 1); for a smooth f also q sum_k b_k^2 (1 - (1 - delta/q)^(k + 1)) / (k + 1)
    with the Hermite coefficients b_k of f'. Both have positive terms alone, so the result is
    accurate relative to itself however small delta is.

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
    """Whatever the function: by its Hermite coefficients, or adaptively in the plane."""
    value, error = np.zeros(len(q)), np.full(len(q), np.inf)
    todo = np.arange(len(q))
    spread, place = np.unique(np.sqrt(q[todo]), return_inverse=True)
    base = None if slope is None else family(slope, np.zeros(len(spread)), spread)
    if base is not None and base.shape.smooth:
        value[todo], error[todo] = _by_series(base, place, q[todo], delta[todo])
    else:
        value[todo], error[todo] = _by_products(function.expr, q[todo], delta[todo])
    left = ~(error[todo] <= ENOUGH * value[todo])
    todo, place = todo[left], place[left]
    if todo.size:
        body = base or family(function, np.zeros(len(spread)), spread)
        found = _by_difference(function, slope, body, place, q[todo], delta[todo])
        better = found.error < error[todo]
        value[todo] = np.where(better, found.value, value[todo])
        error[todo] = np.where(better, found.error, error[todo])
    return value, error


def _by_series(slope: Family, place: Any, q: Array, delta: Array) -> tuple[Array, Array]:
    """With the Hermite coefficients of f'.

    What is left out is at most delta times what the coefficients lack of E f'^2.
    """
    share = delta / q
    # log(1 - x) without loss for small x; from x = 1/2 on the power itself loses nothing.
    log = np.log1p(-np.minimum(share, 0.5))
    value, error = np.zeros(len(q)), np.full(len(q), np.inf)
    for degree in DEGREES:
        series = expand(slope.shape, slope.mean, slope.spread, degree)
        value = np.zeros(len(q))
        for k in range(degree, -1, -1):
            lost = np.where(share <= 0.5, -np.expm1((k + 1) * log), 1.0 - (1.0 - share) ** (k + 1))
            value += series.table[k][place] ** 2 * lost / (k + 1)
        value *= q
        energy = slope.energy
        known = (series.table**2).sum(axis=0)
        doubt = series.doubt * (2.0 * np.sqrt(energy.value) + series.doubt)
        lacking = np.maximum(energy.value - known, 0.0) + energy.error + doubt
        error = delta * lacking[place] + 16.0 * EPS * value
        if (error <= ENOUGH * value).all():
            break
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


def _by_difference(
    function: Shape, slope: Shape | None, body: Family | None, place: Any, q: Array, delta: Array
) -> Integrals:
    """By the square of a difference, in two dimensions."""
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
