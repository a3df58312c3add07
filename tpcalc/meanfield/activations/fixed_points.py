"""Where the length kernel leaves a length as it is, and what becomes of all others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import OfActivation
from tpcalc.meanfield.activations.length import LengthKernel, longest
from tpcalc.meanfield.maps.fixed_lengths import EDGE, Changes, FixedLength, crossed, fixed_lengths
from tpcalc.results import Estimate, LengthMap, LengthPoint, Method, Status
from tpcalc.results.sheet import LengthClass
from tpcalc.shown import Shown

SMALLEST, LARGEST, PER_DECADE = -3, 3, 20
SAME = 1e-11  # relative difference of L(lambda) and lambda that counts as none
STEP = 1e-2
SHORTEST = 1e-30
_WHOLE = 0.03  # how near to a whole number a measured power has to be


@dataclass(frozen=True)
class Iteration(OfActivation, Shown):
    """The length kernel applied over and over, as it is or divided by its value at 1.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        normalized: Whether it is divided.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.2 and Theorem 6.

    Example:
        >>> from tpcalc.functions import Var
        >>> found = Iteration(Var(0) ** 2, normalized=False).found
        >>> found.label, [round(point.length.value, 6) for point in found.points]
        ('small to 0, large to infinity', [0.0, 0.57735])
    """

    normalized: bool = True

    @cached_property
    def _kernel(self) -> LengthKernel:
        return LengthKernel(self.tau)

    @cached_property
    def _unit(self) -> Bounded:
        return self._kernel.lengths([1.0]).at(0) if self.normalized else Bounded(1.0)

    @cached_property
    def found(self) -> LengthMap:
        """What becomes of lengths.

        Raises:
            EvaluationError: E tau^2 does not exist.
        """
        exact = 1.0 if self.normalized else 0.0
        found = fixed_lengths(self._many, self._one, self._slope, self._known, SAME, exact)
        if found.every:
            return LengthMap(self.normalized, "identity", ())
        points = [*self._at_zero(float(found.signs[0])), *map(self._told, found.points)]
        notes = [point.note for point in found.points if point.note]
        known = found.known
        if known.sign[0] == 0:
            end = known.at[np.flatnonzero(known.sign)[0]]
            notes.append(f"below {end:.2g} the kernel is the identity up to rounding")
        return LengthMap(self.normalized, _label(points, found.grow), tuple(points), tuple(notes))

    def _many(self, lengths: Array) -> Bounded:
        return self._kernel.lengths(lengths) / self._unit

    def _one(self, length: float) -> Bounded:
        return self._many(np.array([length])).at(0)

    def _change(self, lengths: Array) -> Changes:
        return Changes.of(lengths, self._many(lengths), SAME)

    @cached_property
    def _known(self) -> Changes:
        """The change on a grid of lengths, down to where it is what it is beside 0."""
        grid, values = _on_grid(self.tau)
        found = _finite(Changes.of(grid, values / self._unit, SAME))
        if not found.at.size:
            raise EvaluationError(
                "E tau(s)^2 does not exist for any Gaussian s.",
                hint="The activation grows too fast, or is not defined on the whole line.",
            )
        if self._below_all * found.sign[0] < 0:
            short = np.geomspace(SHORTEST, found.at[0], PER_DECADE * 10, endpoint=False)
            found = _finite(self._change(short)).merged(found)
        return found

    @cached_property
    def _below_all(self) -> float:
        """Whether the shortest lengths grow (1) or shrink (-1); 0 where that is not known."""
        kernel = self._kernel
        if kernel.at_zero > 0:
            return 1.0
        slope = kernel.slope_at_zero
        if slope is None:
            return 0.0
        excess = slope / self._unit.value - 1
        return 0.0 if abs(excess) <= EDGE else float(np.sign(excess))

    def _told(self, point: FixedLength) -> LengthPoint:
        length, rate = point.square, ""
        if length.error:
            length = replace(length, method=Method.QUADRATURE)
        if point.kind != "unstable":
            side = -STEP if point.kind != "stable from above" else STEP
            marginal = crossed(point.slope) == "marginal"
            rate = self._marginal(length.value, side) if marginal else _rate(point.slope)
        return LengthPoint(length.estimate(), point.slope.estimate(), point.kind, rate)

    def _slope(self, at: Bounded) -> Bounded:
        """The slope at a fixed point that may be off."""
        ends = np.array([at.value, at.value - at.error, at.value + at.error])
        found = self._kernel.stability(ends[: 3 if at.error else 1])
        moved = float(np.abs(found.value - found.value[0]).max())
        return found.at(0) + Bounded(0.0, moved)

    def _marginal(self, root: float, side: float) -> str:
        """The rate at which a marginal point is reached, by how the change grows beside it."""
        value = self._change(root * np.exp(side * np.array([1.0, 2.0]))).value
        if not value.all():
            raise ValueError("what changes beside a fixed point is below rounding")
        power = float(np.log2(abs(value[1] / value[0])))
        return _power_rate(power - 1)

    def _at_zero(self, first: float) -> Iterable[LengthPoint]:
        """0, where lengths stay 0."""
        kernel = self._kernel
        if kernel.at_zero != 0:
            return
        zero = Estimate(0.0, 0.0, Method.EXACT, Status.EXACT)
        slope = kernel.slope_at_zero
        if slope is None:
            yield LengthPoint(zero, None, "stable" if first < 0 else "unstable")
            return
        found = Bounded(slope / self._unit.value, slope * self._unit.error, self._unit.method)
        marginal = abs(found.value - 1) <= EDGE
        stable = first < 0 if marginal else found.value < 1
        rate = "" if not stable else self._slow() if marginal else _rate(found)
        yield LengthPoint(zero, found.estimate(), "stable" if stable else "unstable", rate)

    def _slow(self) -> str:
        """The rate at which 0 is reached where the slope is 1 there."""
        found = self._change(np.array([1.0, 2.0, 4.0]) * STEP)
        if found.sign[0] == 0:
            return "slower than any power of M"
        return _power_rate(float(np.log2(found.value[1] / found.value[0])))


@lru_cache(maxsize=8)
def _on_grid(tau: Expr) -> tuple[Array, Bounded]:
    """The length kernel on a grid, which it shares with its normalized form."""
    top = min(longest(tau), 10.0**LARGEST)
    count = round(PER_DECADE * (np.log10(top) - SMALLEST))
    grid = np.unique(np.append(np.geomspace(10.0**SMALLEST, top, count + 1), 1.0))
    return grid, LengthKernel(tau).lengths(grid)


def _finite(changes: Changes) -> Changes:
    kept = np.isfinite(changes.value) & np.isfinite(changes.doubt)
    return Changes(*(part[kept] for part in changes))


def _rate(slope: Bounded) -> str:
    return "superexponential" if abs(slope.value) <= max(EDGE, slope.error) else "exponential"


def _power_rate(power: float) -> str:
    whole = round(power)
    if whole < 1 or abs(power - whole) > _WHOLE * whole:
        return "subexponential"
    return "M^(-1)" if whole == 1 else f"M^(-1/{whole})"


def _label(points: list[LengthPoint], grow: bool) -> LengthClass:
    """What becomes of lengths, by the points and by what long ones do."""
    positive = [point for point in points if point.length.value > 0]
    down = any(point.length.value == 0 and point.kind == "stable" for point in points)
    if not positive:
        return "all to infinity" if grow else "all to 0"
    kinds = {point.kind for point in positive}
    if len(positive) == 1:
        if kinds == {"stable"}:
            return "all to a positive limit"
        if kinds == {"unstable"} and down and grow:
            return "small to 0, large to infinity"
        if kinds <= {"stable from below", "stable from above"}:
            return "half-stable"
    return "mixed"
