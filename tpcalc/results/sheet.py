"""``Sheet``: what one activation does to signals in a wide network."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import Literal

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

PointKind = Literal["stable", "unstable", "stable from below", "stable from above"]
LengthClass = Literal[
    "all to a positive limit",
    "all to 0",
    "all to infinity",
    "small to 0, large to infinity",
    "identity",
    "half-stable",
    "mixed",
]
CovarianceClass = Literal["linear", "ordered", "edge", "chaotic"]
CurveKind = Literal["activation", "length", "covariance", "nlc of length", "nlc of covariance"]


@dataclass(frozen=True, slots=True)
class SplitTable:
    """An activation as a constant, a linear and a nonlinear part, for a standard Gaussian s.

    Args:
        mean: b = E tau.
        coefficient: a = E s tau.
        second: E tau^2.
        slope: E tau'^2.
        nlc: The nonlinearity coefficient n(1, 0).
        rest_nlc: That of the nonlinear part; None if there is none.
        linear: LAR, the share of the linear part in E tau^2.
        constant: CAR, that of the constant.
        nonlinear: NAR, that of the rest.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.
    """

    mean: Estimate
    coefficient: Estimate
    second: Estimate
    slope: Estimate
    nlc: Estimate
    rest_nlc: Estimate | None
    linear: Estimate
    constant: Estimate
    nonlinear: Estimate


@dataclass(frozen=True, slots=True)
class LengthRow:
    """Inputs of one length.

    Args:
        length: lambda, the standard deviation of the Gaussian.
        kernel: L(lambda) = sqrt(E tau^2).
        stability: lambda L' / L: relative deviations of the length shrink below 1.
        nlc: n(lambda^2, 0).
    """

    length: float
    kernel: Estimate
    stability: Estimate
    nlc: Estimate


@dataclass(frozen=True, slots=True)
class CovarianceRow:
    """Two inputs of one correlation.

    Args:
        correlation: c.
        kernel: The normalized covariance kernel.
        nlc: n(1, c).
    """

    correlation: float
    kernel: Estimate
    nlc: Estimate


@dataclass(frozen=True, slots=True)
class LengthPoint:
    """A length that the length kernel leaves as it is.

    Args:
        length: The length.
        slope: The slope of the kernel there; None where it has none.
        kind: What becomes of lengths near it.
        rate: How fast they come to it over M layers: ``"exponential"``, ``"M^(-1/2)"``, ...; empty
            where they do not.
    """

    length: Estimate
    slope: Estimate | None
    kind: PointKind
    rate: str = ""


@dataclass(frozen=True, slots=True)
class LengthMap:
    """The length kernel applied over and over.

    Args:
        normalized: Whether it is divided by its value at 1.
        label: What becomes of lengths.
        points: The lengths that it leaves as they are, the smallest first; none where all are.
        notes: What a reader should know besides.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.2.
    """

    normalized: bool
    label: LengthClass
    points: tuple[LengthPoint, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CovarianceMap:
    """The normalized covariance kernel, applied over and over to the correlation of two inputs.

    Args:
        start: Its value at 0.
        start_slope: Its slope at 0.
        end_slope: Its slope at 1.
        kind: ``"ordered"`` (slope below 1 at 1, case 1), ``"edge"`` (1, case 2), ``"chaotic"``
            (above 1, case 3), or ``"linear"``: correlations stay as they are, or tend to 1 where
            there is a constant.
        proof: Why the slope at 1 is 1 where it is.
        limit: The correlation that all but equal inputs tend to.
        limit_slope: The slope there.

    Source: Schoenherr, The nonlinearity coefficient, Theorem 7.

    Example:
        >>> from tpcalc.results import Method
        >>> half, two, none = (Estimate(x, 0.0, Method.EXACT) for x in (0.5, 2.0, 0.0))
        >>> found = CovarianceMap(none, half, two, "chaotic", "", none, half)
        >>> found.case, round(found.depth_scale, 4), round(found.nlc_growth, 4)
        (3, 1.4427, 1.4142)
    """

    start: Estimate
    start_slope: Estimate
    end_slope: Estimate
    kind: CovarianceClass
    proof: str
    limit: Estimate
    limit_slope: Estimate

    @property
    def case(self) -> int | None:
        """The case of the theorem; None for a linear activation."""
        return {"ordered": 1, "edge": 2, "chaotic": 3}.get(self.kind)

    @property
    def depth_scale(self) -> float:
        """Layers over which a distance to the limit falls to 1/e; infinite at the edge."""
        slope = abs(self.limit_slope.value)
        if self.kind == "edge" or slope == 1:
            return inf
        return 0.0 if slope <= self.limit_slope.stderr else -1 / log(slope)

    @property
    def depth_scale_error(self) -> float:
        """A bound on the error of ``depth_scale``; 0 where it is 0 or infinite."""
        scale = self.depth_scale
        if scale in (0.0, inf):
            return 0.0
        return scale**2 * self.limit_slope.stderr * exp(1 / scale)

    @property
    def nlc_growth(self) -> float:
        """The factor by which the nonlinearity coefficient grows with each layer of a deep net."""
        return self.end_slope.value**0.5 if self.kind == "chaotic" else 1.0


@dataclass(frozen=True, slots=True)
class Asymptote(Shown):
    """How n(lambda^2, 0) behaves at one end: n ~ factor * lambda^power.

    Args:
        end: Which end.
        power: The power of lambda.
        factor: The factor.
        reason: What of the activation it follows from; empty where it was measured.
    """

    end: Literal["0", "infinity"]
    power: Estimate
    factor: Estimate
    reason: str = ""

    @property
    def derived(self) -> bool:
        """Whether it follows from the activation, and was not measured."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class SheetCurve:
    """A curve of a sheet.

    Args:
        kind: Which.
        x: Abscissas.
        y: Ordinates.
        error: A bound on the error of each ordinate.
    """

    kind: CurveKind
    x: tuple[float, ...]
    y: tuple[float, ...]
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Sheet(Shown):
    """What one activation does to signals in a wide network.

    Args:
        name: Its name.
        formula: The function, of x0.
        split: Its linear, constant and nonlinear part.
        lengths: Numbers by the length of the inputs.
        correlations: Numbers by the correlation of two inputs.
        start: L(0), the length of the output for inputs of length 0.
        start_slope: L'(0); None where it does not exist.
        maps: The length kernel applied over and over, as it is and normalized.
        covariance: The same of the covariance kernel.
        asymptotes: How n(lambda^2, 0) behaves at both ends.
        curves: What is drawn.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.4.7, 5.4 and 5.6.
    """

    name: str
    formula: str
    split: SplitTable
    lengths: tuple[LengthRow, ...]
    correlations: tuple[CovarianceRow, ...]
    start: float
    start_slope: float | None
    maps: tuple[LengthMap, ...]
    covariance: CovarianceMap
    asymptotes: tuple[Asymptote, ...]
    curves: tuple[SheetCurve, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def curve(self, kind: str) -> SheetCurve:
        """The curve of one kind.

        Args:
            kind: Which.
        """
        return next(curve for curve in self.curves if curve.kind == kind)

    @property
    def stability(self) -> str:
        """``"stable"``, ``"edge"`` or ``"unstable"``: deviations of lengths near 1 over layers."""
        found = next(row.stability for row in self.lengths if row.length == 1)
        if abs(found.value - 1) <= max(1e-9, found.stderr):
            return "edge"
        return "unstable" if found.value > 1 else "stable"


@dataclass(frozen=True, slots=True)
class Sheets(Shown):
    """Activations side by side.

    Args:
        sheets: One for each.
    """

    sheets: tuple[Sheet, ...]

    @property
    def provenance(self) -> Provenance:
        """That of the first; all are computed alike."""
        return self.sheets[0].provenance
