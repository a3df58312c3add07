"""Length and correlation maps of one layer that is repeated, with their fixed points and scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, log

import numpy as np

from tpcalc.errors import EvaluationError, StudyError
from tpcalc.evaluate.bounded import Bounded
from tpcalc.functions import Expr, Var
from tpcalc.results import Estimate, Method, Status
from tpcalc.signal.kernels import Kernels, average

__all__ = ["LayerMap", "edge_of_chaos"]

SMALLEST, LARGEST, POINTS = 1e-8, 1e8, 200
NEAR_ONE = 1 - 1e-6
EDGE = 1e-9  # |chi - 1| below which a layer counts as at the edge


@dataclass(frozen=True)
class LayerMap:
    """Dense weights, biases and an activation, layer after layer.

    Args:
        tau: The activation, an expression of ``Var(0)``.
        weights: sigma_w^2: weights have the variance sigma_w^2 / fan-in.
        biases: sigma_b^2.
        rank: Rank over width of the weights, gamma: they are C A, C with orthonormal columns, A
            with the variance sigma_w^2 / fan-in, biases in the span of C. Both variances then
            count gamma times.

    Raises:
        StudyError: A variance or a rank that is none.

    Source: Poole et al., Exponential expressivity in deep neural networks through transient
        chaos; On the initialisation of wide low-rank feedforward neural networks, section 2.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> layer = LayerMap(lookup("erf").fn.expr, 1.5, 0.1)
        >>> round(layer.fixed_point.value, 6), round(layer.chi.value, 6), layer.phase
        (0.6911, 0.984359, 'ordered')
    """

    tau: Expr
    weights: float
    biases: float = 0.0
    rank: float = 1.0

    def __post_init__(self) -> None:
        if not self.weights > 0 or self.biases < 0 or not 0 < self.rank <= 1:
            raise StudyError(
                f"weights have the variance {self.weights}, biases {self.biases}, and the rank is "
                f"{self.rank} of the width.",
                where="LayerMap",
                hint="Weights above 0, biases from 0, the rank above 0 and at most 1.",
            )

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self.tau)

    @property
    def _w(self) -> float:
        return self.rank * self.weights

    @property
    def _b(self) -> float:
        return self.rank * self.biases

    def length(self, q: float) -> Bounded:
        """The second moment of the next layer's preactivations.

        Args:
            q: That of this layer's.
        """
        return self._w * self._kernels.second(Bounded(q)) + self._b

    def length_slope(self, q: float) -> Bounded:
        """The derivative of ``length``, also where the activation has kinks.

        Args:
            q: Where.

        Source: Gaussian integration by parts: d/dq E tau(s)^2 = E tau^2 (s^2 / q - 1) / (2 q).
        """
        weighted = average(self.tau**2 * Var(0) ** 2, Bounded(q))
        plain = self._kernels.second(Bounded(q))
        return self._w / (2 * q) * (weighted * (1 / q) - plain)

    @cached_property
    def fixed_point(self) -> Estimate:
        """q*, the stable fixed point of the length map above 0.

        Raises:
            EvaluationError: Lengths diverge, vanish, or stay what they are.
        """
        grid = np.geomspace(SMALLEST, LARGEST, POINTS)
        change = [self.length(q).value - q for q in grid]
        for low, high, at, then in zip(grid, grid[1:], change, change[1:], strict=False):
            if at > 0 >= then:
                return self._solved(lambda q: self.length(q) - q, low, high)
        if max(map(abs, np.array(change) / grid)) < EDGE:
            why = "every length is a fixed point"
        else:
            why = "they diverge" if change[-1] > 0 else "they tend to 0"
        raise EvaluationError(
            f"lengths have no stable fixed point above 0: {why}.",
            hint="Change the variances; edge_of_chaos gives those of a fixed point of its own.",
        )

    @cached_property
    def chi(self) -> Bounded:
        """chi, the slope of the correlation map at 1 and the growth of gradients for each layer."""
        found = self.fixed_point
        return self._w * self._kernels.slope(Bounded(found.value, found.stderr, found.method))

    @property
    def phase(self) -> str:
        """``"ordered"``, ``"chaotic"``, or ``"edge of chaos"`` within 1e-9."""
        excess = self.chi.value - 1
        if abs(excess) <= max(EDGE, self.chi.error):
            return "edge of chaos"
        return "chaotic" if excess > 0 else "ordered"

    def correlation(self, c: float) -> Bounded:
        """The correlation of two inputs one layer on, at the fixed point of the lengths.

        Args:
            c: Their correlation now.
        """
        q = self._at
        return (self._w * self._kernels.product(q, q, q * c) + self._b) * (1 / q.value)

    def correlation_slope(self, c: float) -> Bounded:
        """The derivative of ``correlation``.

        Args:
            c: Where.
        """
        q = self._at
        return self._w * self._kernels.slope_product(q, q, q * c)

    @property
    def _at(self) -> Bounded:
        found = self.fixed_point
        return Bounded(found.value, found.stderr, found.method)

    @cached_property
    def stable_correlation(self) -> Estimate:
        """c*, to which correlations tend: 1, or in the chaotic phase a smaller one."""
        if self.phase != "chaotic":
            return Estimate(1.0, 0.0, Method.EXACT, Status.EXACT)
        if self.correlation(0.0).value <= 0:
            return Estimate(0.0, 0.0, Method.EXACT, Status.EXACT)
        q = self._at

        def change(c: float) -> Bounded:
            # 1 - C(c) by the gap, which is accurate near c = 1 as well.
            gap = self._w * self._kernels.gap(q, q * (1 - c)) * (1 / q.value)
            return (1 - c) - gap

        if change(NEAR_ONE).value * change(0.0).value >= 0:
            raise EvaluationError(
                f"c* is within 1e-6 of 1: chi - 1 is {self.chi.value - 1:.1e}.",
                hint="So close to the edge of chaos, take it for 1.",
            )
        return self._solved(change, 0.0, NEAR_ONE)

    @property
    def length_scale(self) -> float:
        """xi_q: layers over which a difference of lengths falls to 1/e; infinite if it does not."""
        return _scale(self.length_slope(self.fixed_point.value).value)

    @property
    def correlation_scale(self) -> float:
        """xi_c: the same of correlations; infinite at the edge of chaos."""
        if self.phase == "edge of chaos":
            return inf
        c = self.stable_correlation.value
        return _scale(self.correlation_slope(c).value if c < 1 else self.chi.value)

    @property
    def gradient_scale(self) -> float:
        """xi_Delta: layers over which gradients change by a factor e; negative where they grow."""
        return inf if self.phase == "edge of chaos" else -1 / log(self.chi.value)

    def _solved(self, change: Callable[[float], Bounded], low: float, high: float) -> Estimate:
        """A root, with the error that the errors of the function leave."""
        from scipy.optimize import brentq

        root = float(brentq(lambda x: change(x).value, low, high, xtol=1e-15, rtol=1e-14))
        step = 1e-6 * max(root, 1e-3)
        here = change(root)
        slope = abs(change(root + step).value - change(max(root - step, 0.0)).value) / (2 * step)
        error = (here.error + abs(here.value)) / max(slope, 1e-12) + 4e-15 * abs(root)
        return Estimate(root, error, Method.QUADRATURE)


def _scale(slope: float) -> float:
    if abs(slope) >= 1:
        return inf
    return 0.0 if slope == 0 else -1 / log(abs(slope))


def edge_of_chaos(tau: Expr, q: float, rank: float = 1.0) -> tuple[float, float]:
    """The variances of weights and biases at which q is a fixed point and chi is 1.

    Args:
        tau: The activation, an expression of ``Var(0)``.
        q: The second moment of preactivations.
        rank: Rank over width of the weights.

    Returns:
        sigma_w^2 and sigma_b^2.

    Raises:
        EvaluationError: The biases would need a negative variance: there is no edge at this q.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2.1.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> [round(float(v), 7) for v in edge_of_chaos(lookup("erf").fn.expr, 0.5)]
        [1.3603495, 0.0465502]
    """
    kernels = Kernels(tau)
    weights = 1 / kernels.slope(Bounded(q)).value
    biases = q - weights * kernels.second(Bounded(q)).value
    if biases < -1e-12 * q:
        raise EvaluationError(
            f"there is no edge of chaos at q = {q:g}: biases would have the variance {biases:.3g}.",
            hint="Take another q.",
        )
    return weights / rank, max(biases, 0.0) / rank
