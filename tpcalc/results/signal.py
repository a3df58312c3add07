"""``Signal``: what becomes of signals and gradients in a deep network at the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

Phase = Literal["ordered", "edge of chaos", "chaotic"]
Kind = Literal[
    "length",
    "correlation",
    "edge",
    "scale",
    "dynamics",
    "gradient",
    "variance",
    "networks",
    "values",
]


@dataclass(frozen=True, slots=True)
class Scale:
    """Over how many layers something falls to 1/e; negative where it grows.

    Args:
        rate: What a layer takes off its logarithm.

    Example:
        >>> from tpcalc.results import Method
        >>> Scale(Estimate(0.5, 0.0, Method.EXACT)).layers
        2.0
        >>> edge = Scale(Estimate(1e-14, 1e-13, Method.QUADRATURE))
        >>> edge.layers, edge.least > 9e12
        (inf, True)
    """

    rate: Estimate

    @property
    def known(self) -> bool:
        """Whether the rate is told from 0 by its error."""
        return abs(self.rate.value) > self.rate.stderr

    @property
    def layers(self) -> float:
        """The number of layers; infinite where the rate is not told from 0."""
        if not self.known:
            return inf
        return 1 / self.rate.value if isfinite(self.rate.value) else 0.0

    @property
    def error(self) -> float:
        """A bound on the error of ``layers``, where it is finite."""
        rate, off = abs(self.rate.value), self.rate.stderr
        if not self.known or not isfinite(rate):
            return 0.0
        return off / rate / (rate - off)

    @property
    def least(self) -> float:
        """How many layers it is at least, growing or falling."""
        most = abs(self.rate.value) + self.rate.stderr
        return 1 / most if most > 0 else inf


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A length that a layer leaves as it is.

    Args:
        square: q, the second moment of preactivations.
        slope: The slope of the length map there.
        kind: What becomes of lengths near it; ``"marginal"`` where the error leaves it open.

    Example:
        >>> from tpcalc.results import Method
        >>> one = Estimate(1.0, 0.0, Method.EXACT)
        >>> FixedPoint(one, Estimate(0.5, 0.0, Method.EXACT), "stable").kind
        'stable'
    """

    square: Estimate
    slope: Estimate
    kind: Literal["stable", "unstable", "marginal", "stable from below", "stable from above"]


@dataclass(frozen=True, slots=True)
class LengthDrift:
    """Lengths that no layer keeps: each multiplies second moments by one factor.

    Args:
        growth: The factor, of second moments and of squared gradients.
        whole: The logarithm of that of all layers.
        end: ``"any"``: so for every length; ``"0"``, ``"infinity"``: for small or large ones, to
            which the others come.
        kept: The variance of the weights with which such lengths stay.
    """

    growth: Estimate
    whole: Estimate
    end: Literal["any", "0", "infinity"]
    kept: Estimate


@dataclass(frozen=True, slots=True)
class EdgePoint(Shown):
    """A point of the edge of chaos: q is a fixed point of lengths and chi is 1.

    It unpacks into the two variances as floats: ``weights, biases = point``.

    Args:
        square: q.
        weights: The variance of the weights.
        biases: The variance of the biases.
        every: Whether every other q is a fixed point as well.
        kind: What becomes of lengths near q; only at a stable one do deep networks stay.

    Example:
        >>> from tpcalc.results import Method
        >>> one, two = (Estimate(x, 0.0, Method.EXACT) for x in (1.0, 2.0))
        >>> weights, biases = EdgePoint(one, two, Estimate(0.0, 0.0, Method.EXACT), True)
        >>> weights, biases
        (2.0, 0.0)
    """

    square: Estimate
    weights: Estimate
    biases: Estimate
    every: bool = False
    kind: Literal["stable", "unstable", "marginal"] = "stable"

    def __iter__(self) -> Iterator[float]:
        return iter((self.weights.value, self.biases.value))


@dataclass(frozen=True, slots=True)
class Survival:
    """How long the correlation of two inputs keeps its distance from c*.

    Args:
        start: Their correlation in the first layer.
        end: That after so many layers more.
        left: The share of the distance to c* that is left then.
        depth: How many.
        layers: After how many less than a hundredth of it is left; None if it is more.

    Example:
        >>> from tpcalc.results import Method
        >>> end, left = (Estimate(x, 0.0, Method.EXACT) for x in (0.75, 0.5))
        >>> Survival(0.5, end, left, 10, None).left.value
        0.5
    """

    start: float
    end: Estimate
    left: Estimate
    depth: int
    layers: int | None


@dataclass(frozen=True, slots=True)
class JacobianRow:
    """Squared singular values of the input-output Jacobian for one family of weights.

    Args:
        family: The family.
        layer: Variance over squared mean, for one layer.
        whole: The same for all layers.
        note: What a reader should know of the family.
    """

    family: str
    layer: Estimate
    whole: Estimate
    note: str = ""


@dataclass(frozen=True, slots=True)
class Curve(Shown):
    """A curve of a figure.

    Args:
        kind: The figure.
        label: Which of its curves.
        x: Abscissas.
        y: Ordinates.
        error: A bound on the error of each ordinate.
    """

    kind: Kind
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Signal(Shown):
    """Signals and gradients in a deep network at the start, from layers that are all alike.

    Args:
        activation: Its name.
        weights: The variance of the weights times the fan-in.
        biases: The variance of the biases.
        rank: Rank over width of the weights.
        family: The law of the weights.
        depth: The number of layers.
        phase: What becomes of correlations (of signals divided by their lengths, where these settle
            nowhere): ``"ordered"``: inputs become alike; ``"chaotic"``:
            inputs that are nearly alike part; ``"edge of chaos"``: neither, within the error.
        fixed_points: All lengths that a layer leaves as they are.
        length: q*, the one that the rest is about.
        start: The mean square of an input from which the lengths start there.
        chi: The slope of the correlation map at 1, and the growth of squared gradients by layer.
        correlation: c*, to which correlations tend.
        length_scale: Layers over which a difference from q* falls to 1/e.
        correlation_scale: The same for a difference from c*.
        gradient_scale: The same for squared gradients, from layer to layer towards the input.
        gradient: The logarithm of their growth from the last layer to the input.
        survival: What is left of correlations in the last layer.
        nonzero: The share of singular values of the Jacobian that are not 0.
        jacobian: The spread of its singular values, for each family of weights.
        edges: Points of the edge of chaos with these biases.
        edge_note: Why there is none, or how far it is.
        curves: What is drawn.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        drift: How lengths grow or shrink, where no length is a fixed point; then ``length`` and
            what is about it are those of signals divided by their lengths.

    Source: Schoenholz et al., Deep information propagation; On the initialisation of wide low-rank
        feedforward neural networks.
    """

    activation: str
    weights: float
    biases: float
    rank: float
    family: str
    depth: int
    phase: Phase
    fixed_points: tuple[FixedPoint, ...]
    length: Estimate
    start: Estimate
    chi: Estimate
    correlation: Estimate
    length_scale: Scale
    correlation_scale: Scale
    gradient_scale: Scale
    gradient: Estimate
    survival: tuple[Survival, ...]
    nonzero: float
    jacobian: tuple[JacobianRow, ...]
    edges: tuple[EdgePoint, ...]
    edge_note: str
    curves: tuple[Curve, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    drift: LengthDrift | None = None

    @property
    def unstable(self) -> bool:
        """Whether ``length`` is a fixed point that lengths move away from."""
        kinds = [p.kind for p in self.fixed_points if p.square.value == self.length.value]
        return kinds == ["unstable"]

    @property
    def effective(self) -> tuple[float, float]:
        """The variances of the full-rank network with the same averages."""
        return self.rank * self.weights, self.rank * self.biases

    def curves_of(self, kind: str) -> tuple[Curve, ...]:
        """The curves of one figure.

        Args:
            kind: The figure.
        """
        return tuple(curve for curve in self.curves if curve.kind == kind)
