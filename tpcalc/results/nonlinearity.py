"""``Nonlinearity``: the nonlinearity coefficient of a layer graph, layer by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tpcalc.results.estimate import Estimate, normal_score
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

Route = Literal["recursion", "program"]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer in the limit of infinite width.

    Args:
        index: Its number; 0 is the input.
        operation: What it does.
        reads: The layers that it reads.
        square: q, the second moment of a coordinate; LQM and LSCALE tend to its root.
        comean: c, the second moment of two inputs.
        gap: q - c, found without a difference.
        log_gradient: log g, of the mean square of derivatives along Gaussian changes of the
            input; JACF tends to sqrt(g).
        bias: LBIAS, sqrt(q / (q - c)).
        own: Of an activation or of batch norm in a finite batch, its coefficient as a function of
            the layer that it reads.
        total: The coefficient of the layer as a function of the input.
        growth: Of an activation s: how many times as large it makes relative deviations of lengths.
    """

    index: int
    operation: str
    reads: tuple[int, ...]
    square: Estimate
    comean: Estimate
    gap: Estimate
    log_gradient: Estimate
    bias: Estimate
    own: Estimate | None
    total: Estimate
    growth: Estimate | None = None

    @property
    def numerator(self) -> Estimate:
        """sqrt(g_l v_m / g_m) from the input m on, which NLCNUM tends to."""
        size = math.sqrt(self.gap.value)
        relative = self.gap.stderr / (2 * self.gap.value) + self.total.stderr / self.total.value
        value = self.total.value * size
        return Estimate(value, value * relative, max(self.gap.method, self.total.method))


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """A quantity over seeds of networks of one width.

    Args:
        mean: Its mean over seeds, with the standard error of that mean.
        deviation: The standard deviation between seeds.
        limit: The value in the limit of infinite width.
    """

    mean: Estimate
    deviation: float
    limit: Estimate

    @property
    def z(self) -> float | None:
        """The signed difference in combined standard errors; None where nothing was uncertain.

        Reduced to those of a Gaussian, as ``Estimate.z``.
        """
        if self.mean.stderr == self.limit.stderr == 0:
            return None
        gap = self.mean.value - self.limit.value
        return math.copysign(normal_score(abs(gap), self.mean.error, self.limit.error), gap)

    @property
    def relative(self) -> float:
        """The difference over the limit."""
        return self.mean.value / self.limit.value - 1 if self.limit.value else float("inf")


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A layer of networks of one width.

    Args:
        width: The width n.
        layer: The number of the layer.
        values: Quantities by name: LQM, LSCALE, QMNEX, QMNSTD, JACF, NLCNUM, LBIAS, NLC, and the
            diagnostics NKURT, NGHI, CVNSTD, LCV of layers that should be Gaussian; of a layer as a
            function of another JACF, NLCNUM and NLC.
        start: The layer that it is measured as a function of; 0 is the input.
    """

    width: int
    layer: int
    values: tuple[tuple[str, MeasuredValue], ...]
    start: int = 0

    def value(self, name: str) -> MeasuredValue | None:
        """A quantity; None if it was not measured.

        Args:
            name: Its name.
        """
        return dict(self.values).get(name)


@dataclass(frozen=True, slots=True)
class MeasuredEnd:
    """Networks of a width whose numbers leave the range of their format.

    Args:
        width: The width n.
        last: The last layer that was measured.
        reason: What ended it: the layer, and why.
    """

    width: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class NoiseReach:
    """From which layer on noise of lengths is as large as the lengths.

    Args:
        cause: Where the noise comes from.
        noise: Its size over the length of the input.
        layer: The layer; None where it stays below in all of them.
        overflow: The first layer whose numbers leave their format, of 32 bits for a width, if the
            inputs are longer by that; None where none does.
    """

    cause: str
    noise: float
    layer: int | None
    overflow: int | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the Master theorem.

    Args:
        name: What it is called.
        met: Whether the network meets it.
        found: How that is known.
    """

    name: str
    met: bool
    found: str


@dataclass(frozen=True, slots=True)
class Explained(Shown):
    """A property of the coefficient that follows from its limit.

    Args:
        name: The property, and the number that shows it.
        limit: n, the limit of wide networks.
        found: That number.
    """

    name: str
    limit: float
    found: Estimate

    @property
    def holds(self) -> bool:
        """Whether they are alike up to a tenth, or five standard errors of at most a tenth."""
        off, error = abs(self.found.value - self.limit), self.found.stderr
        return error <= 0.1 * self.limit and off <= max(0.1 * self.limit, 5 * error)


@dataclass(frozen=True, slots=True)
class PathRow(Shown):
    """A path through a network, and its part in the nonlinearity coefficient.

    Args:
        layers: The numbers of its layers.
        weight: Its weight; those of all paths add up to 1.
        product: The product of the squared coefficients of its layers.
    """

    layers: tuple[int, ...]
    weight: float
    product: float

    @property
    def part(self) -> float:
        """What it adds to the square of the coefficient."""
        return self.weight * self.product


@dataclass(frozen=True)
class Nonlinearity(Shown):
    """The nonlinearity coefficient of a network: its limit, and networks of finite width beside it.

    Args:
        model: The network in words.
        text: Its layers, one a line.
        route: ``"recursion"``: the mean-field recursion; ``"program"``: the limit of the program,
            where the recursion does not hold.
        nlc: The coefficient from the input to the output.
        layers: Every layer.
        paths: The paths that add most to its square.
        stability: ``"stable"``, ``"edge"`` or ``"unstable"``: what becomes of small deviations of
            lengths; ``""`` where it is not known.
        amplification: How much they grow at most.
        conditions: What the graph does not meet of the conditions of the theory.
        guidelines: Rules of design, each with whether the network follows it.
        measured: Networks of finite width, by width and layer.
        seeds: How many networks of each width.
        notes: What a reader should know besides.
        provenance: What it was computed from and with.
        ends: Widths whose networks leave the range of their number format, and where.
        reaches: From which layer on the noise of a width, or rounding, is as large as lengths.
        architecture: ``"GUA"``: a Gaussian unstable architecture; ``"GEA"``: at the edge; ``""``.
        theorem: The conditions of the Master theorem, which the limits rest on.

    Source: Schoenherr, The nonlinearity coefficient, chapters 4 and 5.
    """

    model: str
    text: str
    route: Route
    nlc: Estimate
    layers: tuple[LayerRow, ...]
    paths: tuple[PathRow, ...]
    stability: str
    amplification: float
    conditions: tuple[str, ...]
    guidelines: tuple[tuple[str, bool], ...]
    measured: tuple[MeasuredRow, ...]
    seeds: int
    notes: tuple[str, ...]
    provenance: Provenance
    ends: tuple[MeasuredEnd, ...] = ()
    reaches: tuple[NoiseReach, ...] = ()
    architecture: str = ""
    theorem: tuple[Condition, ...] = ()

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths that were measured, the smallest first."""
        return tuple(sorted({row.width for row in self.measured}))

    def at(self, width: int, layer: int, start: int = 0) -> MeasuredRow | None:
        """A layer of networks of a width; None if it was not measured.

        Args:
            width: The width.
            layer: The number of the layer.
            start: That of the layer that it is a function of.
        """
        asked = width, layer, start
        rows = [row for row in self.measured if (row.width, row.layer, row.start) == asked]
        return rows[0] if rows else None
