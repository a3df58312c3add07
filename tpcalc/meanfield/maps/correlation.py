"""The correlation map of one layer at a fixed length, with its fixed point and its phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions import Expr
from tpcalc.integrals.activation_moments import CLOSE, Kernels, gaps, means, method_of, products
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import OfActivation
from tpcalc.meanfield.maps.roots import log_root
from tpcalc.shown import Shown

Phase = Literal["ordered", "edge of chaos", "chaotic"]
STEP = 1e-4
SMALLEST = 1e-300  # of 1 - c: below it the map is its slope at 1
STAGES = (1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-18)  # of 1 - c


@dataclass(frozen=True)
class CorrelationMap(OfActivation, Shown):
    """C(c) = (w E tau(s) tau(t) + b) / q, for s, t of variance q and correlation c.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.

    Source: Poole et al., Exponential expressivity in deep neural networks through transient
        chaos.
    """

    @property
    def effective(self) -> tuple[Bounded, Bounded]:
        """W and b."""
        raise NotImplementedError

    @property
    def fixed_point(self) -> Bounded:
        """Q."""
        raise NotImplementedError

    @cached_property
    def kernels(self) -> Kernels:
        """Averages of the activation."""
        return Kernels(self.tau)

    @cached_property
    def chi(self) -> Bounded:
        """chi, the slope of the correlation map at 1 and the growth of gradients for each layer."""
        return self.effective[0] * self.kernels.slope(self.fixed_point)

    @property
    def phase(self) -> Phase:
        """``"ordered"``, ``"chaotic"``, or ``"edge of chaos"`` where the error leaves it open."""
        excess = self.chi - 1.0
        if abs(excess.value) <= excess.error:
            return "edge of chaos"
        return "chaotic" if excess.value > 0 else "ordered"

    def correlation(self, c: Bounded | float) -> Bounded:
        """The correlation of two inputs one layer on, at the fixed point of the lengths.

        Args:
            c: Their correlation now.
        """
        q, (w, b) = self.fixed_point, self.effective
        return (w * self.kernels.product(q, q, q * bounded(c)) + b) / q

    def correlations(self, c: Any) -> Bounded:
        """``correlation`` at many correlations.

        Args:
            c: They, between -1 and 1.
        """
        (w, b), q = self.effective, self.fixed_point
        found: Bounded = (w * self.paired(self.tau, c) + b) / q.value
        return found + Bounded(0.0, self._lost * np.abs(found.value))

    def paired(self, factor: Expr, c: Any) -> Bounded:
        """E f(s) f(t) at many correlations."""
        q = self.fixed_point.value
        return products(factor, q, q, q * checked_correlations(c))

    def correlation_slope(self, c: Bounded | float) -> Bounded:
        """The derivative of ``correlation``.

        Args:
            c: Where.
        """
        q = self.fixed_point
        return self.effective[0] * self.kernels.slope_product(q, q, q * bounded(c))

    def gap_growth(self, x: Any, close: float = CLOSE) -> Bounded:
        """(1 - C(1 - x)) / x of the correlation map C, which falls from chi at x = 0.

        Args:
            x: 1 - c, however small; an array.
            close: The relative error that will do; a larger one may cost less.
        """
        q, xs = self.fixed_point.value, checks.reals(x, "x").astype(np.float64)
        found: Bounded = gaps(self.tau, q, q * xs, close) * self.effective[0] / (q * xs)
        return found + Bounded(0.0, self._lost * np.abs(found.value))

    def gap(self, gap: Bounded) -> Bounded:
        """The next 1 - c, from one that carries an error, however small it is.

        Args:
            gap: 1 - c, between 0 and 2.
        """
        # Its slope grows with |c|: nowhere on the way is it above a secant from there to 1.
        furthest = max(abs(1 - gap.value + side * gap.error) for side in (-1, 1))
        at = np.maximum([gap.value, 1 - furthest], SMALLEST)
        growth, steepest = map(self.gap_growth(at).at, (0, 1))
        moved = (steepest.value + steepest.error) * gap.error
        found: Bounded = growth * gap.value + Bounded(0.0, moved, gap.method)
        return found

    @property
    def _lost(self) -> float:
        """The relative error that averages of two inputs have by that of q."""
        q = self.fixed_point
        return float(self.sensitivity * q.error / q.value) + 4 * EPS

    @cached_property
    def sensitivity(self) -> float:
        """How many times the relative error of q* averages of two inputs may err, with a margin."""
        q = self.fixed_point.value
        if self.fixed_point.error == 0:
            return 0.0
        x = np.array([0.01, 0.1, 0.5, 1.0])
        pair = np.array([[q], [q * (1 + STEP)]])
        parts = [means((self.tau, self.tau), pair[:, 0]).value]
        parts += list((gaps(self.tau, pair, pair * x).value / pair).T)
        change = [abs(float(np.log(part[1] / part[0]))) for part in parts if (part > 0).all()]
        return 2.0 + 2.0 * max(change) / STEP

    @cached_property
    def distance(self) -> Bounded:
        """1 - c*, found by itself: near the edge of chaos it is far smaller than 1."""
        if self.phase == "ordered":
            return Bounded(0.0)
        method = max(self.chi.method, method_of((self.tau, self.tau)))
        if self.phase == "edge of chaos":
            return Bounded(0.0, self._unresolved(), method)
        whole = self._excess(np.array([1.0]))
        if whole.value[0] >= -whole.error[0]:  # C(0) = 0: no biases, and an activation of mean 0
            return Bounded(1.0, self._far(), method)
        for low, high in pairwise(STAGES):
            if self._excess(np.array([high])).value[0] > 0:
                at = log_root(lambda x: self._excess(np.array([x])).at(0), high, low)
                return replace(at, method=method)
        return Bounded(0.0, STAGES[-1], method)

    def _excess(self, x: Any) -> Bounded:
        return self.gap_growth(x) - 1.0 + Bounded(0.0, EPS)

    def _far(self) -> float:
        """A bound on c* where C(0) is 0 within its error."""
        zero = self.correlation(0.0)
        steep = 1.0 - min(self.correlation_slope(0.0).value, 1.0 - 1e-9)
        return 0.0 if zero.is_zero else (abs(zero.value) + zero.error) / steep

    def _unresolved(self) -> float:
        """The largest 1 - c at which the map is not told from the identity."""
        least = 1.0
        for low, high in pairwise(STAGES):
            places = np.geomspace(high, low, 4)
            found = self._excess(places)
            sure = found.value < -found.error
            if sure.any():
                least = min(least, float(places[sure][0]))
            if not sure[0]:
                break
        return least

    @cached_property
    def stable_correlation(self) -> Bounded:
        """c*, to which correlations tend: 1, or in the chaotic phase a smaller one."""
        return 1.0 - self.distance


def checked_correlations(given: Any) -> Array:
    """Correlations of two inputs, as an array."""
    c = np.atleast_1d(checks.reals(given, "correlations")).astype(np.float64)
    if not (np.abs(c) <= 1).all():
        raise UsageError("a correlation is not between -1 and 1.")
    return c
