"""An activation under a Gaussian as a constant, a linear and a nonlinear part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, NotDifferentiable, StudyError
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.average import averages
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import of_activation
from tpcalc.integrals.quadrature.shape import depends
from tpcalc.meanfield.activations.calibrate import check_spread
from tpcalc.results import Method
from tpcalc.shown import Shown

LINEAR = 1e-12  # of E tau^2: a nonlinear part below this is rounding
NEARLY = 1e-9
LARGEST = 1e280  # beyond it products of averages leave the range of floats


@dataclass(frozen=True)
class Split(Shown):
    """The least-squares split tau(s) = a s + b + rest for s ~ N(0, q).

    Args:
        tau: The activation, an expression of ``Var(0)``.
        q: The variance of s.
        mean: b = E tau.
        coefficient: a = E s tau / q.
        second: E tau^2.
        spread: Var tau.
        slope: E tau'^2.
        rest: E rest^2; 0 if tau is linear.
        rest_slope: E rest'^2.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.
    """

    tau: Expr
    q: Bounded
    mean: Bounded
    coefficient: Bounded
    second: Bounded
    spread: Bounded
    slope: Bounded
    rest: Bounded
    rest_slope: Bounded

    @property
    def linear(self) -> bool:
        """Whether there is no nonlinear part."""
        return bool(self.rest.value <= max(self.rest.error, LINEAR * self.second.value))

    @property
    def linear_ratio(self) -> Bounded:
        """LAR, the share of the linear part in E tau^2."""
        return ratio(self.q * self.coefficient * self.coefficient, self.second)

    @property
    def constant_ratio(self) -> Bounded:
        """CAR, the share of the constant."""
        return ratio(self.mean * self.mean, self.second)

    @property
    def nonlinear_ratio(self) -> Bounded:
        """NAR, the share of the rest."""
        return ratio(self.rest, self.second)

    @cached_property
    def nlc(self) -> Bounded:
        """n(q, 0), the nonlinearity coefficient of tau."""
        return ratio(self.q * self.slope, self.spread).root()

    @cached_property
    def rest_nlc(self) -> Bounded:
        """The nonlinearity coefficient of the rest."""
        if self.linear:
            raise EvaluationError("a linear activation has no nonlinear part.")
        return ratio(self.q * self.rest_slope, self.rest).root()

    @property
    def joined(self) -> Bounded:
        """The nonlinearity coefficient of tau from that of the rest: equal to ``nlc``.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 3.
        """
        return self.interpolated(0.0)

    def interpolated(self, line: float) -> Bounded:
        """The nonlinearity coefficient of tau(s) + l s, from the same split.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 3.

        Example:
            >>> from tpcalc.activations.entries import lookup
            >>> round(split(lookup("relu").fn.expr).interpolated(1.0).value, 6)
            1.033436
        """
        return Bounded(1.0) if self.linear else self.with_line(line).nlc

    def with_line(self, line: float) -> Split:
        """The split of tau(s) + l s, which has the same mean and the same rest."""
        slope = self.coefficient + line
        square = slope * slope
        spread = self.rest + self.q * square
        found = {"coefficient": slope, "spread": spread, "slope": self.rest_slope + square}
        second = spread + self.mean * self.mean
        return replace(self, tau=self.tau + const(line) * Var(0), second=second, **found)

    @property
    def excess(self) -> Bounded:
        """n(q, 0) - 1 by the rest alone, known relative to itself."""
        twice = ratio(self.curved, self.spread)  # n^2 - 1
        return twice / ((twice + 1).root() + 1)

    @property
    def curved(self) -> Bounded:
        """(n^2 - 1) Var tau, which no line changes."""
        return self.q * self.rest_slope - self.rest


@of_activation
def split(tau: Expr, q: Bounded | float = 1.0) -> Split:
    """The least-squares split of an activation under N(0, q).

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance.

    Returns:
        The line and the rest, and their shares, each with a bound on its error.

    Raises:
        EvaluationError: It has no derivative, or its averages do not exist.
        StudyError: The Gaussian sees a constant.
        UsageError: The variance is not positive.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7 and Lemma 2.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = split(lookup("relu").fn.expr)
        >>> [round(part.value, 6) for part in (found.linear_ratio, found.constant_ratio)]
        [0.5, 0.31831]
    """
    variance = bounded(q)
    checks.real(variance.value, "the variance of a Gaussian", above=0)
    slope_of(tau)
    if not depends(tau):
        raise StudyError(f"the activation is the constant {tau.text}.")
    kernels = Kernels(tau)
    mean, second = average(tau, variance), kernels.second(variance)
    if not max(second.value, mean.value**2, variance.value) < LARGEST:
        raise EvaluationError(
            "E tau^2 leaves the range of floats.", hint="Take a smaller dilation."
        )
    check_spread(mean, second)
    qs = np.array([variance.value, variance.value + variance.error])
    with_s = averages((Var(0), tau), [[qs, qs], [qs, qs]])
    moved = abs(float(with_s.value[1] - with_s.value[0]))
    coefficient = ratio(with_s.at(0) + Bounded(0.0, moved, with_s.method), variance)
    # A shift by a float near the mean costs the spread no digits; what it misses is of second
    # order, the square of the error.
    spread = Kernels(tau - const(mean.value)).second(variance)
    rounding = 8 * EPS * sqrt(second.value * spread.value)
    slope = kernels.slope(variance)
    return Split(
        tau,
        variance,
        mean,
        coefficient,
        second,
        spread + Bounded(0.0, mean.error**2 + rounding, mean.method),
        slope,
        *_rest(tau, variance, mean, coefficient, spread, slope),
    )


def _rest(
    tau: Expr, q: Bounded, mean: Bounded, coefficient: Bounded, spread: Bounded, slope: Bounded
) -> tuple[Bounded, Bounded]:
    """E rest^2 and E rest'^2."""
    straight = q * coefficient * coefficient
    second = spread - straight
    # What is so small a difference that its values are rounding is known by the difference alone.
    if second.value <= NEARLY * spread.value:
        return second, slope - coefficient * coefficient
    rest = tau - const(coefficient.value) * Var(0) - const(mean.value)
    found = Kernels(rest).second(q)
    off = mean.error**2 + q.value * coefficient.error**2
    # The rest is a difference: at each s it is rounded as tau is.
    size = spread.value + mean.value**2
    rounding = 8 * EPS * sqrt(size * found.value) + (8 * EPS) ** 2 * size
    return found + Bounded(0.0, off + rounding, Method.QUADRATURE), Kernels(rest).slope(q)


def slope_of(tau: Expr) -> Expr:
    """The derivative of an activation."""
    try:
        return derivative(tau, Var(0))
    except NotDifferentiable as error:
        raise EvaluationError(
            f"{tau.text} has no nonlinearity coefficient: E tau'^2 is infinite, because it jumps "
            "or its slope is unbounded.",
            hint="Take an activation that is continuous, with bounded slopes.",
        ) from error


def ratio(over: Bounded, under: Bounded) -> Bounded:
    """One number over another that is above 0."""
    if under.value - under.error <= 0:
        raise EvaluationError(
            f"the activation is constant: its spread is {under.value:.1g} with an error up to "
            f"{under.error:.1g}.",
            hint="Take another one, or a smaller dilation.",
        )
    return over / under
