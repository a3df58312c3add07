"""Length and correlation maps of one layer that is repeated, with their fixed points and scales."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError
from tpcalc.integrals.activation_moments import means, square_growth
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.meanfield.maps.correlation import CorrelationMap
from tpcalc.meanfield.maps.edge import checked_rank
from tpcalc.meanfield.maps.edge import edge_of_chaos as edge_of_chaos
from tpcalc.meanfield.maps.edge import edges as edges
from tpcalc.meanfield.maps.fixed_lengths import (
    HIGHEST,
    SMALLEST,
    FixedLength,
    Lengths,
    fixed_lengths,
)
from tpcalc.meanfield.maps.roots import scale
from tpcalc.results import Scale


class Variances(NamedTuple):
    """Variances of weights (times the fan-in) and of biases."""

    weights: float
    biases: float


@dataclass(frozen=True)
class LayerMap(CorrelationMap):
    """Dense weights, biases and an activation, layer after layer.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        weights: sigma_w^2: weights have the variance sigma_w^2 / fan-in.
        biases: sigma_b^2.
        rank: Rank over width of the weights, gamma: they are C A, C with orthonormal columns, A
            with the variance sigma_w^2 / fan-in, biases in the span of C. Both variances then
            count gamma times.
        square: The length q that is meant where every one is a fixed point; where fixed points are
            unstable alone, the one nearest to it is meant.

    Raises:
        StudyError: A variance, a rank or a length that is none.

    Source: Poole et al., Exponential expressivity in deep neural networks through transient
        chaos; On the initialisation of wide low-rank feedforward neural networks, section 2.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> layer = LayerMap(lookup("erf").fn.expr, 1.5, 0.1)
        >>> round(layer.fixed_point.value, 6), round(layer.chi.value, 6), layer.phase
        (0.6911, 0.984359, 'ordered')
        >>> round(layer.length_scale.layers, 6), round(layer.correlation_scale.layers, 2)
        (1.131491, 63.43)
    """

    weights: float
    biases: float = 0.0
    rank: float = 1.0
    square: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_rank(self.rank, "LayerMap")
        checks.real(self.weights, "the variance of the weights", above=0)
        checks.real(self.biases, "the variance of the biases", least=0)
        if self.square is not None:
            checks.real(self.square, "square", above=0)

    @cached_property
    def effective(self) -> tuple[Bounded, Bounded]:
        """The variances of the full-rank layer with the same maps."""
        pair = (float(self.rank) * float(self.weights), float(self.rank) * float(self.biases))
        w, b = (Bounded(value, EPS * value) for value in pair)
        return w, b

    def length(self, q: Bounded | float) -> Bounded:
        """The second moment of the next layer's preactivations.

        Args:
            q: That of this layer's.
        """
        w, b = self.effective
        return w * self.kernels.second(bounded(q)) + b

    def lengths(self, q: Any) -> Bounded:
        """``length`` at an array of second moments.

        Args:
            q: They.
        """
        w, b = self.effective
        return w * means((self.tau, self.tau), q) + b

    def length_slope(self, q: Bounded | float) -> Bounded:
        """The derivative of ``length``, also where the activation has kinks.

        Args:
            q: Where.
        """
        return self.effective[0] * square_growth(self.tau, bounded(q))

    @cached_property
    def _found(self) -> Lengths:
        return fixed_lengths(self.lengths, self.length, self.length_slope)

    @property
    def fixed_points(self) -> tuple[FixedLength, ...]:
        """All fixed points of the length map above 0, the smallest first."""
        return self._found.points

    @property
    def every_length(self) -> bool:
        """Whether every length is a fixed point."""
        return self._found.every

    @property
    def grow(self) -> bool:
        """Whether the longest lengths that were looked at grow."""
        return self._found.grow

    @cached_property
    def fixed_point(self) -> Bounded:
        """q*, the stable fixed point of the length map above 0.

        Of several it is the one to which lengths of 1 tend, or else the nearest to 1. Where none is
        stable, it is the one nearest to ``square``.

        Raises:
            EvaluationError: Lengths diverge, vanish, or stay what they are.
        """
        if self.every_length and self.square is not None:
            return Bounded(float(self.square))
        found = self._found.reached()
        if found is not None:
            return found.square
        if self.square is not None and self.fixed_points:
            named = self.square
            points = [point.square for point in self.fixed_points]
            return min(points, key=lambda q: abs(np.log(q.value / named)))
        raise EvaluationError(
            f"lengths have no stable fixed point above 0: {self._why()}.",
            hint="Change the variances; edge_of_chaos gives those of a fixed point of its own.",
        )

    def _why(self) -> str:
        found = self._found
        if found.every:
            return "every length is a fixed point (name one as square)"
        if found.points:
            named = ", ".join(f"{point.square.value:.6g}" for point in found.points)
            return f"there are q = {named}, where the slope is 1 or more"
        what = f"they diverge, or grow past {HIGHEST[0]:g}" if found.grow else "they tend to 0"
        if not found.grow and float(self.rank) * float(self.biases) > 0:
            what = f"they fall below {SMALLEST:g}"
        return f"{what} (a layer takes q = 1 to {self.length(1.0).value:.6g})"

    @cached_property
    def start(self) -> Bounded:
        """|x|^2 / N of an input from which lengths start at q*; the first layer has no tau."""
        return self.kernels.second(self.fixed_point)

    @cached_property
    def length_scale(self) -> Scale:
        """xi_q: layers over which a difference of lengths falls to 1/e."""
        return scale(self.length_slope(self.fixed_point))

    @cached_property
    def correlation_scale(self) -> Scale:
        """xi_c: the same of correlations, at c*; infinite at the edge of chaos.

        Source: On the initialisation of wide low-rank feedforward neural networks, section 2.1.2
            and appendix A.7.
        """
        if self.phase != "chaotic":
            return scale(self.chi)
        return scale(self.correlation_slope(self.stable_correlation))

    @cached_property
    def gradient_scale(self) -> Scale:
        """xi_Delta: layers over which squared gradients fall to 1/e on their way to the input.

        It is negative where they grow.
        """
        return scale(self.chi)


def low_rank_start(weights: float, biases: float, rank: float) -> Variances:
    """The variances with which a low-rank network starts like a full-rank one.

    First-order averages depend on the rank through its products with the two variances alone.

    Args:
        weights: The variance of the full-rank weights, times the fan-in.
        biases: The variance of the full-rank biases.
        rank: Rank over width.

    Returns:
        Both variances, divided by the rank over the width.

    Raises:
        StudyError: A variance or a rank that is none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2.1.

    Example:
        >>> low_rank_start(2.0, 0.1, 0.25)
        Variances(weights=8.0, biases=0.4)
    """
    gamma = checked_rank(rank, "low_rank_start")
    weights = float(checks.real(weights, "the variance of the weights", above=0))
    biases = float(checks.real(biases, "the variance of the biases", least=0))
    return Variances(weights / gamma, biases / gamma)
