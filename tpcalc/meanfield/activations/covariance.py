"""The covariance kernel: what an activation makes of the correlation of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.functions.form import degree, varying
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.meanfield.activations.split import Split, ratio, slope_of, split
from tpcalc.meanfield.maps.correlation import SMALLEST, CorrelationMap, checked_correlations
from tpcalc.results import CovarianceMap, Estimate, Method, Status
from tpcalc.results.sheet import CovarianceClass

EDGE = 1e-9  # |slope - 1| that counts as none
FARTHEST = 1e-12  # how near to 1 the limit of correlations is looked for


@dataclass(frozen=True)
class CovarianceKernel(CorrelationMap):
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

    @property
    def fixed_point(self) -> Bounded:
        """Q."""
        return self.split.q

    @cached_property
    def effective(self) -> tuple[Bounded, Bounded]:
        """The variances of weights with which q stays, and of biases: none."""
        return ratio(self.split.q, self.split.second), Bounded(0.0)

    def covariances(self, correlations: Sequence[float] | Array) -> Bounded:
        """E tau(s) tau(t).

        Args:
            correlations: The c, between -1 and 1.
        """
        return self.paired(self.tau, correlations)

    def slopes(self, correlations: Sequence[float] | Array) -> Bounded:
        """The derivative of ``correlations``: q E tau'(s) tau'(t) / E tau^2.

        Args:
            correlations: The c, between -1 and 1.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 7(a).
        """
        return self.paired(slope_of(self.tau), correlations) * self.effective[0]

    def gaps(self, correlations: Sequence[float] | Array) -> Bounded:
        """1 less ``correlations``, accurate relative to itself.

        Args:
            correlations: The c, between -1 and 1.
        """
        x = np.maximum(1 - checked_correlations(correlations), SMALLEST)
        return self.gap_growth(x) * x

    def nlc(self, correlations: Sequence[float] | Array) -> Bounded:
        """The nonlinearity coefficient n(q, q c): 1 at c = 1 and for linear activations.

        Args:
            correlations: The c, between -1 and below 1.

        Raises:
            UsageError: c = 1, where it is a limit.

        Source: Schoenherr, The nonlinearity coefficient, Proposition 18.
        """
        c = checked_correlations(correlations)
        if (c >= 1).any():
            raise UsageError(
                "the nonlinearity coefficient of equal inputs is not defined.",
                hint="Its limit for c to 1 is 1.",
            )
        found = (self.end_slope / self.gap_growth(1 - c)).root()  # 1 - c is rounded
        return found + Bounded(0.0, EPS * found.value / (1 - c))

    @property
    def end_slope(self) -> Bounded:
        """The slope at 1, q E tau'^2 / E tau^2."""
        return self.chi

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
            slope = start_slope if limit.value == 0 else self.correlation_slope(limit)
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
        start = self.split.constant_ratio
        if start.value <= max(start.error, EPS):
            return Bounded(0.0)
        found = self.stable_correlation
        if 1 - found.value <= FARTHEST:
            raise EvaluationError(
                f"the limit of correlations is not told from 1: the slope there is "
                f"{self.end_slope.value:.12g}.",
                hint="So close to the edge of chaos, take it for 1.",
            )
        return replace(found, method=Method.QUADRATURE)


def _known(number: Bounded) -> Estimate:
    if number.error == 0 and number.value in (0.0, 1.0):
        return Estimate(number.value, 0.0, Method.EXACT, Status.EXACT)
    return number.estimate()
