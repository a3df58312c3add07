"""Functions with Dirac deltas in them, as derivatives of jumps have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, pi, sqrt

import numpy as np

from tpcalc.arrays import Array
from tpcalc.functions import Call, Const, Expr, Fn
from tpcalc.functions.expr import Add, Mul, add, mul, walk
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.quadrature.geometry import determinant
from tpcalc.integrals.quadrature.polynomial import coefficients
from tpcalc.integrals.quadrature.shape import DIRAC

ZERO = Const(Fraction(0))
NEAR = 1e-9
JUMP = 1e-6


@dataclass(frozen=True, slots=True)
class Peak:
    """A multiple of a Dirac delta."""

    place: float  # where it sits
    weight: float  # its integral


def holds_delta(expr: Expr) -> bool:
    """Whether a Dirac delta occurs in an expression."""
    return any(isinstance(part, Call) and part.atom.name == DIRAC for part in walk(expr))


def peaks(expr: Expr) -> tuple[Expr, list[Peak]] | None:
    """A function as a function without deltas plus deltas; None where it is no such sum."""
    if not holds_delta(expr):
        return expr, []
    if isinstance(expr, Call) and expr.atom.name == DIRAC:
        inner = coefficients(expr.arg)
        if inner is None or len(inner) != 2:
            return None
        return ZERO, [Peak(float(-inner[0] / inner[1]), float(1 / abs(inner[1])))]
    if isinstance(expr, Add):
        parts = [peaks(term) for term in expr.terms]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        return add(plain for plain, _ in found), [peak for _, some in found for peak in some]
    return _scaled(expr) if isinstance(expr, Mul) else None


def _scaled(expr: Mul) -> tuple[Expr, list[Peak]] | None:
    """A product with deltas in one factor: the others count where a delta sits."""
    sharp = [factor for factor in expr.factors if holds_delta(factor)]
    rest = mul(factor for factor in expr.factors if not holds_delta(factor))
    inner = peaks(sharp[0]) if len(sharp) == 1 else None
    if inner is None:
        return None
    plain, found = inner
    if any(not continuous(rest, peak.place) for peak in found):
        return None
    weighted = [Peak(peak.place, peak.weight * _value(rest, peak.place)) for peak in found]
    return mul((plain, rest)), weighted


def _value(expr: Expr, x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.asarray(evaluate(Fn(expr, 1), [np.asarray(x)])))


def continuous(expr: Expr, x: float) -> bool:
    """Whether a function has one finite value around a point."""
    step = NEAR * max(1.0, abs(x))
    left, here, right = (_value(expr, x + move) for move in (-step, 0.0, step))
    if not all(map(isfinite, (left, here, right))):
        return False
    return max(abs(left - here), abs(right - here)) <= JUMP * (1.0 + abs(here))


@dataclass(frozen=True, slots=True)
class Given:
    """Other Gaussians, given one."""

    density: Array  # the density of the one at the value it is given
    mean: list[Array]  # conditional means of the others
    cov: list[list[Array]]  # their conditional covariances


def given(index: int, x: float, mean: Sequence[Array], cov: Sequence[Sequence[Array]]) -> Given:
    """Condition on the value of one Gaussian; its variance must not be 0."""
    q = cov[index][index]
    others = [j for j in range(len(mean)) if j != index]
    shift = (x - mean[index]) / q
    density = np.exp(-0.5 * (x - mean[index]) * shift) / (sqrt(2.0 * pi) * np.sqrt(q))
    centres = [mean[j] + cov[j][index] * shift for j in others]
    table = []
    for j in others:
        row = []
        for k in others:
            entry = determinant(cov[j][k], cov[j][index], cov[k][index], q) / q
            row.append(np.maximum(entry, 0.0) if j == k else entry)
        table.append(row)
    return Given(density, centres, table)
