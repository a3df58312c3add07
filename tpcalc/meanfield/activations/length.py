"""The length kernel: what an activation makes of the length of its input, layer after layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, pi, sqrt

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.functions import Expr, Fn, Var, const
from tpcalc.functions.fn import slope_or_none
from tpcalc.functions.tape import values
from tpcalc.integrals.average import averages, better
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.given import OfActivation
from tpcalc.integrals.quadrature.gap import gap
from tpcalc.integrals.quadrature.shape import shape
from tpcalc.meanfield.activations.split import slope_of
from tpcalc.results import Method
from tpcalc.shown import Shown

NEAR = 1e-150  # beside 0, but not so near that a product leaves the range of floats
FAR = 1e6
MANY, SIGMAS = 16, 8.0  # kinks of what goes on bending, and how far averages see it
POOR = 1e-9
FINE = 1e-12  # relative error of a difference that needs no second way


@dataclass(frozen=True)
class LengthKernel(OfActivation, Shown):
    """L(lambda) = sqrt(E tau(s)^2) for s ~ N(0, lambda^2).

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.2.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> kernel = LengthKernel(lookup("abs").fn.expr)
        >>> kernel.lengths([0.5, 2.0]).value.tolist(), round(kernel.stability([3.0]).at(0).value, 9)
        ([0.5, 2.0], 1.0)
    """

    def squares(self, lengths: Sequence[float] | Array) -> Bounded:
        """E tau(s)^2.

        Args:
            lengths: The lambdas.
        """
        q = checks.reals(lengths, "lengths").astype(np.float64) ** 2
        return averages((self.tau, self.tau), [[q, q], [q, q]])

    def lengths(self, lengths: Sequence[float] | Array) -> Bounded:
        """L.

        Args:
            lengths: The lambdas.
        """
        return self.squares(lengths).root()

    def stability(self, lengths: Sequence[float] | Array) -> Bounded:
        """The Gaussian stability number lambda L'(lambda) / L(lambda).

        Below 1 a relative deviation of the length shrinks, above 1 it grows.

        Args:
            lengths: The lambdas.

        Source: Schoenherr, The nonlinearity coefficient, section 5.6 and Theorem 6.
        """
        q = checks.reals(lengths, "lengths").astype(np.float64) ** 2
        below = self.squares(lengths)
        slope = slope_or_none(self.tau, Var(0))
        if slope is not None:
            above = averages((Var(0), self.tau, slope), [[q] * 3 for _ in range(3)])
        if slope is None or not above.known.all():
            above = self._by_weight(q, below)
        return above / below

    def nlc(self, lengths: Sequence[float] | Array) -> Bounded:
        """The nonlinearity coefficient n(lambda^2, 0).

        Args:
            lengths: The lambdas.

        Raises:
            EvaluationError: tau has no derivative that is a function.

        Source: Schoenherr, The nonlinearity coefficient, section 5.4.4.
        """
        q, slope = checks.reals(lengths, "lengths").astype(np.float64) ** 2, slope_of(self.tau)
        return (averages((slope, slope), [[q, q], [q, q]]) * q / self._spread(q)).root()

    def _spread(self, q: Array) -> Bounded:
        """Var tau: a difference, by a way of its own where that loses digits."""
        found = self._difference(q)
        poor = found.known & ~(found.error <= POOR * np.abs(found.value))
        known = shape(self.tau)
        if not poor.any() or known is None or not known.smooth:
            return found  # beside a kink the slopes there decide, whose squares are no rounding
        careful = gap(self.tau, q[poor], q[poor])
        value, error = found.value.copy(), found.error.copy()
        better = careful.error < error[poor]
        value[poor] = np.where(better, careful.value, value[poor])
        error[poor] = np.where(better, careful.error, error[poor])
        return Bounded(value, error, Method.QUADRATURE)

    def _difference(self, q: Array) -> Bounded:
        """E tau^2 - (E tau)^2, of tau or of tau less its value at 0."""
        plain, zero = _variance(self.tau, 0.0, q), self._value_at_zero
        if zero == 0 or (plain.error <= FINE * np.abs(plain.value)).all():
            return plain
        other = _variance(self.tau - const(zero), abs(zero), q)
        return better(plain, other, other.method)

    @cached_property
    def _value_at_zero(self) -> float:
        low, high = sides(self.tau)
        return low if low == high and np.isfinite(low) else 0.0

    def _by_weight(self, q: Array, second: Bounded) -> Bounded:
        """E tau^2 (s^2 / lambda^2 - 1) / 2, which needs no derivative."""
        weighted = averages((Var(0) ** 2, self.tau, self.tau), [[q] * 3 for _ in range(3)])
        return (weighted / q - second) * 0.5

    @cached_property
    def at_zero(self) -> float:
        """L(0), the limit for lambda to 0; infinite where tau is unbounded at 0."""
        left, right = sides(self.tau)
        return sqrt((left * left + right * right) / 2)

    @cached_property
    def slope_at_zero(self) -> float | None:
        """L'(0) by the one-sided slopes of tau at 0; None where there are none.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 6(4).
        """
        low, high = sides(self.tau)
        if low != high or not np.isfinite(low):
            return None
        slope = slope_or_none(self.tau, Var(0))
        left, right = (inf, inf) if slope is None else sides(slope)
        if not (np.isfinite(left) and np.isfinite(right)):
            return None
        if low == 0:
            return sqrt((left * left + right * right) / 2)
        return float(np.sign(low)) * (right - left) / sqrt(2 * pi) + 0.0


def sides(expr: Expr) -> tuple[float, float]:
    """The limits of a function at 0 from the left and from the right.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> sides(lookup("step").fn.expr)
        (0.0, 1.0)
    """
    others = np.append(np.geomspace(1e-12, 0.1, 12), (0.3, 1.0, 2.7))
    around = np.concatenate([[-NEAR, NEAR], -others, others])
    found = values(Fn(expr, 1), around)
    # A value within rounding of 0 is 0: a constant that was subtracted is a float.
    size = float(np.nanmax(np.abs(found[2:]), initial=0.0))
    left, right = (0.0 if abs(x) <= 8 * EPS * size else float(x) for x in found[:2])
    # An unbounded function is far beyond its other values here.
    bounded = (x if abs(x) <= FAR * (1 + size) else inf for x in (left, right))
    left, right = bounded
    return left, right


def tails(expr: Expr, near: float, far: float) -> tuple[float, float, float, float]:
    """A function far out: the values at -far, -near, near and far."""
    left, near_left, near_right, right = values(Fn(expr, 1), [-far, -near, near, far]).tolist()
    return left, near_left, near_right, right


def _variance(tau: Expr, shifted: float, q: Array) -> Bounded:
    """E tau^2 - (E tau)^2; ``shifted`` is what was subtracted from tau, which rounds it."""
    second, mean = averages((tau, tau), [[q, q], [q, q]]), averages((tau,), [[q]])
    lost = 4 * EPS * shifted * np.sqrt(np.abs(second.value)) + EPS * second.value
    found: Bounded = second - mean * mean + Bounded(0.0, lost)
    return found


def longest(tau: Expr) -> float:
    """The standard deviation up to which averages are taken; infinite for most activations.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> longest(lookup("relu").fn.expr), longest(lookup("sawtooth").fn.expr)
        (inf, 15.875)
    """
    found = shape(tau)
    kinks = [] if found is None else [part.place for part in found.features if part.kink]
    return inf if len(kinks) <= MANY else max(map(abs, kinks)) / SIGMAS
