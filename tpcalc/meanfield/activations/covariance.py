"""The covariance kernel: what an activation makes of the correlation of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.functions import Expr
from tpcalc.functions.form import degree, varying
from tpcalc.integrals.average import averages
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.given import OfActivation
from tpcalc.integrals.quadrature.gap import gap
from tpcalc.meanfield.activations.split import Split, ratio, slope_of, split
from tpcalc.results import CovarianceMap, Estimate, Method, Status
from tpcalc.results.sheet import CovarianceClass
from tpcalc.shown import Shown

EDGE = 1e-9  # |slope - 1| that counts as none
CLOSE = 1e-10  # relative error of a difference that asks for the careful quadrature
NEAR = 1e-3  # 1 - c from which on differences need no care
FAIR = 1e-8
FARTHEST = 1e-12  # how near to 1 the limit of correlations is looked for


@dataclass(frozen=True)
class CovarianceKernel(OfActivation, Shown):
    """E tau(s) tau(t) over E tau(s)^2, for s, t of variance q and correlation c.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.3.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> kernel = CovarianceKernel(lookup("relu").fn.expr)
        >>> kernel.correlations([0.0, 0.5]).value.round(6).tolist()
        [0.31831, 0.608998]
        >>> kernel.nlc([0.0, 0.9]).value.round(6).tolist()
        [1.211174, 1.0514]
    """

    q: float = 1.0

    @cached_property
    def split(self) -> Split:
        """The linear, constant and nonlinear part under N(0, q)."""
        return split(self.tau, self.q)

    def covariances(self, correlations: Sequence[float] | Array) -> Bounded:
        """E tau(s) tau(t).

        Args:
            correlations: The c, between -1 and 1.
        """
        return self._pair(self.tau, correlations)

    def correlations(self, correlations: Sequence[float] | Array) -> Bounded:
        """E tau(s) tau(t) / E tau(s)^2, the kernel that is applied over and over.

        Args:
            correlations: The c, between -1 and 1.
        """
        return _scaled(self.covariances(correlations), ratio(Bounded(1.0), self.split.second))

    def slopes(self, correlations: Sequence[float] | Array) -> Bounded:
        """The derivative of ``correlations``: q E tau'(s) tau'(t) / E tau^2.

        Args:
            correlations: The c, between -1 and 1.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 7(a).
        """
        found = self._pair(slope_of(self.tau), correlations)
        return _scaled(found, ratio(self.split.q, self.split.second))

    def gaps(self, correlations: Sequence[float] | Array) -> Bounded:
        """1 less ``correlations``, accurate relative to itself.

        Args:
            correlations: The c, between -1 and 1.
        """
        return self._at_gaps(1 - _checked(correlations))

    def gap(self, gap: Bounded) -> Bounded:
        """The next 1 - c, from one that carries an error, however small it is.

        Args:
            gap: 1 - c, between 0 and 2.
        """
        slope = self.end_slope.value  # the kernel is nowhere steeper
        found = self._at_gaps(np.array([gap.value])).at(0)
        return found + Bounded(0.0, slope * gap.error, gap.method)

    def _at_gaps(self, gaps: Array) -> Bounded:
        return self._gaps(gaps, self.covariances(1 - gaps))

    def _gaps(self, gaps: Array, values: Bounded, close: float = CLOSE) -> Bounded:
        """E tau^2 less the covariance, over E tau^2; where that loses digits, by a quadrature."""
        second, spread = self.split.second, self.split.spread
        # At c = 0 the two are independent, and the difference is the variance. Elsewhere c itself
        # is rounded, which counts where 1 - c is small.
        apart = gaps == 1
        value = np.where(apart, spread.value, second.value - values.value)
        off = values.error + second.error + EPS * (np.abs(values.value) + second.value)
        # 1 - c is exact from 1/2 on.
        off = off + np.where(gaps >= 0.5, 0.0, EPS * self.q * self.split.slope.value)
        error = np.where(apart, spread.error, off)
        method, poor = values.method, ~(error <= close * np.abs(value))
        if poor.any():
            careful = gap(self.tau, self.q, self.q * gaps[poor])
            better = ~(careful.error >= error[poor])
            value[poor] = np.where(better, careful.value, value[poor])
            error[poor] = np.where(better, careful.error, error[poor])
            method = Method.QUADRATURE
        return _scaled(Bounded(value, error, method), ratio(Bounded(1.0), second))

    def nlc(self, correlations: Sequence[float] | Array) -> Bounded:
        """The nonlinearity coefficient n(q, q c): 1 at c = 1 and for linear activations.

        Args:
            correlations: The c, between -1 and below 1.

        Raises:
            UsageError: c = 1, where it is a limit.

        Source: Schoenherr, The nonlinearity coefficient, Proposition 18.
        """
        return self.table(correlations)[1]

    def table(self, correlations: Sequence[float] | Array) -> tuple[Bounded, Bounded]:
        """Both ``correlations`` and ``nlc``, from the same averages.

        Args:
            correlations: The c, between -1 and below 1.
        """
        c = _checked(correlations)
        if (c >= 1).any():
            raise UsageError(
                "the nonlinearity coefficient of equal inputs is not defined.",
                hint="Its limit for c to 1 is 1.",
            )
        found = self.covariances(c)
        below, end = self._gaps(1 - c, found), self.end_slope
        value = np.sqrt(end.value * (1 - c) / below.value)
        part = below.error / np.abs(below.value) + end.error / end.value + 2 * EPS / (1 - c)
        coefficient = Bounded(value, value * (part / 2 + EPS), max(below.method, end.method))
        return _scaled(found, ratio(Bounded(1.0), self.split.second)), coefficient

    @cached_property
    def end_slope(self) -> Bounded:
        """The slope at 1, q E tau'^2 / E tau^2."""
        return ratio(self.split.q * self.split.slope, self.split.second)

    @cached_property
    def found(self) -> CovarianceMap:
        """What becomes of correlations when the kernel is applied over and over.

        Raises:
            EvaluationError: Averages do not exist, or the limit of correlations is not told from 1.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 7.
        """
        parts, end = self.split, self.end_slope
        start, start_slope = parts.constant_ratio, parts.linear_ratio
        one, proof = Bounded(1.0), self._edge
        kind: CovarianceClass
        if parts.linear:
            # All that is left is the line: correlations stay, or approach 1 with the constant.
            kind, limit, slope = "linear", one, end
            proof = "linear" if degree(varying(self.tau)) == 1 else "linear up to 1e-12"
        elif proof:
            kind, limit, slope = "edge", one, one
        elif end.value < 1:
            kind, limit, slope = "ordered", one, end
        else:
            kind = "chaotic"
            limit = self._limit
            slope = start_slope if limit.value == 0 else self._slope_at(limit)
        if kind == "edge" and proof.startswith("homogeneous"):
            end = one
        return CovarianceMap(
            start.estimate(),
            start_slope.estimate(),
            end.estimate(),
            kind,
            proof,
            _known(limit),
            _known(slope),
        )

    @property
    def _edge(self) -> str:
        """Why the slope at 1 is 1; empty where it is not."""
        if degree(self.tau) == 1:
            return "homogeneous of degree 1"
        off = abs(self.end_slope.value - 1)
        return "" if off > max(EDGE, self.end_slope.error) else f"1 within {max(EDGE, off):.0e}"

    @cached_property
    def _limit(self) -> Bounded:
        """The stable correlation below 1, where the slope at 1 is above 1."""
        from scipy.optimize import brentq

        start = self.split.constant_ratio
        if start.value <= max(start.error, EPS):
            return Bounded(0.0)

        def change(u: float) -> float:
            # Of log x, x = 1 - c: the next distance from 1 over this one.
            x = float(np.exp(u))
            c = np.array([1 - x])
            found = self._gaps(1 - c, self.covariances(c), CLOSE if x < NEAR else FAIR)
            return float(np.log(found.value[0] / (1 - c[0])))

        low, high = float(np.log(FARTHEST)), 0.0
        near = float(np.log(NEAR))
        if change(near) > 0:
            low = near
        elif change(low) > 0:
            high = near
        else:
            raise EvaluationError(
                f"the limit of correlations is not told from 1: the slope there is "
                f"{self.end_slope.value:.12g}.",
                hint="So close to the edge of chaos, take it for 1.",
            )
        if low == near and change(high) >= 0:
            return Bounded(0.0)
        x = float(np.exp(brentq(change, low, high, xtol=1e-14, rtol=1e-14)))
        found, here = 1 - x, self.gaps([1 - x])
        slope = float(self.slopes([found]).value[0])
        left = abs(float(here.value[0]) - x) + float(here.error[0]) + 2 * EPS
        return Bounded(found, left / max(1 - slope, EDGE), Method.QUADRATURE)

    def _slope_at(self, limit: Bounded) -> Bounded:
        moved = min(limit.value + max(limit.error, EPS), 1.0)
        found = self.slopes([limit.value, moved])
        off = abs(float(found.value[1] - found.value[0]))
        return found.at(0) + Bounded(0.0, off, found.method)

    def _pair(self, factor: Expr, correlations: Sequence[float] | Array) -> Bounded:
        c = _checked(correlations)
        q = np.full(c.shape, self.q)
        return averages((factor, factor), [[q, q * c], [q * c, q]])


def _checked(correlations: Sequence[float] | Array) -> Array:
    c = np.atleast_1d(checks.reals(correlations, "correlations")).astype(np.float64)
    if not (np.abs(c) <= 1).all():
        raise UsageError("a correlation is not between -1 and 1.")
    return c


def _scaled(values: Bounded, factor: Bounded) -> Bounded:
    value = values.value * factor.value
    error = values.error * factor.value + np.abs(values.value) * factor.error + EPS * np.abs(value)
    return Bounded(value, error, max(values.method, factor.method))


def _known(number: Bounded) -> Estimate:
    if number.error == 0 and number.value in (0.0, 1.0):
        return Estimate(number.value, 0.0, Method.EXACT, Status.EXACT)
    return number.estimate()
