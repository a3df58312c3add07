"""E[f_1(G_1) ... f_k(G_k)] for jointly Gaussian G, by quadrature with a bound on the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Call, Expr
from tpcalc.functions.expr import walk
from tpcalc.functions.form import least
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.connected import connected
from tpcalc.integrals.quadrature.adaptive import EPS
from tpcalc.integrals.quadrature.dirac import Peak, continuous, given, peaks
from tpcalc.integrals.quadrature.groups import group_mean
from tpcalc.integrals.quadrature.shape import Shape, shape
from tpcalc.limit.degrees import degree_of
from tpcalc.results import Method

ROUNDS = 16.0


def supported(factors: Sequence[Expr]) -> bool:
    """Whether quadrature takes a product of functions of Gaussians.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> tanh = lookup("tanh").fn.expr
        >>> supported([tanh, tanh]), supported([tanh, tanh, tanh])
        (True, False)
    """
    split = [_split(factor) for factor in factors]
    found = [part for part in split if part is not None]
    if len(found) < len(split) or not all(map(_has_mean, factors)):
        return False
    return sum(part.plain.polynomial is None for part in found) <= 2


def _has_mean(factor: Expr) -> bool:
    """Whether exponentials in a function are bounded, or grow no faster than a Gaussian falls.

    Those of squares may have no mean either; that is seen by numbers, which do not reach as far as
    a cube is small.
    """
    for part in walk(factor):
        if isinstance(part, Call) and part.atom.facts.order and least(-part.arg) == -inf:
            degree = degree_of(part.arg, (Fraction(1),), ())
            if degree is None or part.atom.facts.order * degree > 2:
                return False
    return True


def expectation(factors: Sequence[Expr], mean: Sequence[Any], cov: Any) -> Bounded | None:
    """E[f_1(G_1) ... f_k(G_k)] by quadrature.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = lookup("relu").fn.expr
        >>> found = expectation([relu, relu], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
        >>> round(float(found.value), 12)
        0.304498890522
    """
    size = len(factors)
    if len(mean) != size or len(cov) != size or any(len(row) != size for row in cov):
        raise EvaluationError(f"{size} functions need {size} means and covariances of each two.")
    means = [np.asarray(value, dtype=np.float64) for value in mean]
    table = [[np.asarray(value, dtype=np.float64) for value in row] for row in cov]
    _check(means, table)
    shown = np.broadcast_shapes(*(x.shape for x in means), *(x.shape for row in table for x in row))
    if not supported(factors):
        return None
    with np.errstate(all="ignore"):
        found = _all_terms([_split(factor) for factor in factors], means, table)
    if found is None:
        return None
    return Bounded(_full(found.value, shown), _full(found.error, shown), Method.QUADRATURE)


def _check(mean: list[Array], cov: list[list[Array]]) -> None:
    if not all(np.isfinite(part).all() for row in (mean, *cov) for part in row):
        raise EvaluationError("a mean or covariance of a Gaussian is not a finite number.")
    if any((row[i] < 0).any() for i, row in enumerate(cov)):
        raise EvaluationError("the variance of a Gaussian is negative.")


def _full(part: Array, shown: tuple[int, ...]) -> Any:
    """An array of its own of this shape; a number where it has no axes."""
    return (part if part.shape == shown else np.array(np.broadcast_to(part, shown)))[()]


@dataclass(frozen=True)
class _Factor:
    plain: Shape
    peaks: list[Peak]


def _split(factor: Expr) -> _Factor | None:
    found = peaks(factor)
    if found is None:
        return None
    plain = shape(found[0])
    return None if plain is None else _Factor(plain, found[1])


def _all_terms(
    factors: Sequence[_Factor | None], mean: list[Array], cov: list[list[Array]]
) -> Bounded | None:
    """Deltas first: given the Gaussian that one holds fast, there is a Gaussian less."""
    parts = [factor for factor in factors if factor is not None]
    sharp = next((i for i, factor in enumerate(parts) if factor.peaks), None)
    if sharp is None:
        return _product([factor.plain for factor in parts], mean, cov)
    if (cov[sharp][sharp] <= 0).any():
        return None
    rest = [factor for i, factor in enumerate(parts) if i != sharp]
    total = Bounded(np.zeros(()), np.zeros(()))
    for peak in parts[sharp].peaks:
        fixed = given(sharp, peak.place, mean, cov)
        if any(
            _torn(f, m, fixed.cov[j][j])
            for j, (f, m) in enumerate(zip(rest, fixed.mean, strict=True))
        ):
            return None
        inner = _all_terms(rest, fixed.mean, fixed.cov)
        if inner is None:
            return None
        weight = peak.weight * fixed.density
        spread = ROUNDS * EPS * np.abs(weight * inner.value)
        total = _sum(total, Bounded(weight * inner.value, np.abs(weight) * inner.error + spread))
    smooth = parts[sharp].plain
    if smooth.polynomial is not None and not any(smooth.polynomial):
        return total
    left = [*parts[:sharp], _Factor(smooth, []), *parts[sharp + 1 :]]
    other = _all_terms(left, mean, cov)
    return None if other is None else _sum(total, other)


def _torn(factor: _Factor, mean: Array, variance: Array) -> bool:
    """Whether a delta holds a Gaussian fast where its function jumps: that has no value."""
    mean, variance = np.broadcast_arrays(mean, variance)
    held = np.unique(mean[variance == 0.0])
    return bool(held.size) and (
        bool(factor.peaks) or any(not continuous(factor.plain.expr, float(x)) for x in held)
    )


def _sum(left: Bounded, right: Bounded) -> Bounded:
    value = left.value + right.value
    return Bounded(value, left.error + right.error + EPS * np.abs(value))


def _product(shapes: list[Shape], mean: list[Array], cov: list[list[Array]]) -> Bounded | None:
    """The product over groups of Gaussians that are independent of each other."""
    value, error = np.ones(()), np.zeros(())
    for group in connected(range(len(cov)), lambda i, j: bool(np.any(cov[i][j] != 0))):
        part = group_mean(
            [shapes[i] for i in group],
            [mean[i] for i in group],
            [[cov[i][j] for j in group] for i in group],
        )
        if part is None:
            return None
        error = np.abs(value) * part.error + np.abs(part.value) * error + error * part.error
        value = value * part.value
        error = error + EPS * np.abs(value)
    return Bounded(value, error)
