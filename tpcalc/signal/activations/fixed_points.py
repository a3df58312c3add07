"""Where the length kernel leaves a length as it is, and what becomes of all others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate.bounded import Bounded
from tpcalc.functions import Expr
from tpcalc.results import Estimate, LengthMap, LengthPoint, Method, Status
from tpcalc.signal.activations.averages import Values
from tpcalc.signal.activations.length import LengthKernel
from tpcalc.signal.activations.reach import longest

__all__ = ["Iteration"]

Array = Any
Kind = Literal["stable", "unstable", "stable from below", "stable from above"]
SMALLEST, LARGEST, PER_DECADE = -3, 3, 20
SAME = 1e-11  # relative difference of L(lambda) and lambda that counts as none
EDGE = 1e-9  # |slope - 1| that counts as none
STEP = 1e-2
_WHOLE = 0.03  # how near to a whole number a measured power has to be
_WORDS: dict[tuple[float, float], Kind] = {
    (1.0, -1.0): "stable",
    (-1.0, 1.0): "unstable",
    (1.0, 1.0): "stable from below",
    (-1.0, -1.0): "stable from above",
}


@dataclass(frozen=True)
class Iteration:
    """The length kernel applied over and over, as it is or divided by its value at 1.

    Args:
        tau: The activation, an expression of ``Var(0)``.
        normalized: Whether it is divided.

    Source: Schoenherr, The nonlinearity coefficient, section 5.4.2 and Theorem 6.

    Example:
        >>> from tpcalc.functions import Var
        >>> found = Iteration(Var(0) ** 2, normalized=False).found
        >>> found.label, [round(point.length.value, 6) for point in found.points]
        ('small to 0, large to infinity', [0.0, 0.57735])
    """

    tau: Expr
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
        grid, sign = self._signs
        if not sign.any():
            return LengthMap(self.normalized, "identity", ())
        points = [*self._at_zero(sign), *self._positive(grid, sign)]
        notes = []
        if sign[0] == 0:
            end = grid[np.flatnonzero(sign)[0]]
            notes.append(f"below {end:.2g} the kernel is the identity up to rounding")
        label = _label(points, float(sign[-1]))
        return LengthMap(self.normalized, label, tuple(points), tuple(notes))

    def change(self, lengths: Array) -> tuple[Array, Array]:
        """log(L(lambda) / lambda), with bounds on the errors.

        Args:
            lengths: The lambdas.
        """
        at = np.atleast_1d(np.asarray(lengths, dtype=np.float64))
        return self._change(at, self._kernel.lengths(at))

    def _change(self, at: Array, found: Values) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            value = np.log(found.value / self._unit.value / at)
            error = found.error / found.value + self._unit.error / self._unit.value
        return value, np.where(found.known, error, np.inf)

    @cached_property
    def _signs(self) -> tuple[Array, Array]:
        """A grid of lengths, and whether the kernel makes them longer."""
        grid, lengths = _on_grid(self.tau)
        value, error = self._change(grid, lengths)
        known = np.isfinite(value) & np.isfinite(error)
        if not known.any():
            raise EvaluationError(
                "E tau(s)^2 does not exist for any Gaussian s.",
                hint="The activation grows too fast, or is not defined on the whole line.",
            )
        grid, value, error = grid[known], value[known], error[known]
        same = np.abs(value) <= np.maximum(8 * error, SAME)
        return grid, np.where(same, 0.0, np.sign(value))

    def _positive(self, grid: Array, sign: Array) -> Iterable[LengthPoint]:
        """Changes of sign, and single places where the kernel touches the identity."""
        places = np.flatnonzero(sign)
        for left, right in pairwise(places):
            if right == left + 1 and sign[left] == sign[right]:
                continue
            if right == left + 1:
                root = self._root(float(grid[left]), float(grid[right]))
            elif right == left + 2:
                root = float(grid[left + 1])
            else:  # the identity on a stretch
                root = float(np.sqrt(grid[left + 1] * grid[right - 1]))
            yield self._point(root, float(sign[left]), float(sign[right]))

    def _root(self, low: float, high: float) -> float:
        from scipy.optimize import brentq

        found = brentq(
            lambda u: float(self.change(np.exp(u))[0][0]),
            np.log(low),
            np.log(high),
            xtol=1e-15,
            rtol=1e-14,
        )
        return float(np.exp(found))

    def _point(self, root: float, below: float, above: float) -> LengthPoint:
        slope = self._kernel.stability([root]).at(0)
        value, error = (float(part[0]) for part in self.change(root))
        marginal = abs(slope.value - 1) <= max(EDGE, slope.error)
        off = 0.0
        if not (self.normalized and root == 1.0):
            off = root * ((abs(value) + error) / max(abs(slope.value - 1), EDGE) + 4e-16)
        kind = _WORDS[below, above]
        rate = ""
        if kind != "unstable":
            side = -STEP if kind != "stable from above" else STEP
            rate = self._marginal(root, side) if marginal else _rate(slope)
        status = Status.EXACT if off == 0 else Status.CONVERGED
        method = Method.EXACT if off == 0 else Method.QUADRATURE
        return LengthPoint(Estimate(root, off, method, status), slope.estimate(), kind, rate)

    def _marginal(self, root: float, side: float) -> str:
        """The rate at which a marginal point is reached, by how the change grows beside it."""
        value, _ = self.change(root * np.exp(side * np.array([1.0, 2.0])))
        power = float(np.log2(abs(value[1] / value[0])))
        return _power_rate(power - 1)

    def _at_zero(self, sign: Array) -> Iterable[LengthPoint]:
        """0, where lengths stay 0."""
        kernel, first = self._kernel, float(sign[np.flatnonzero(sign)[0]])
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
        value, error = self.change(np.array([1.0, 2.0, 4.0]) * STEP)
        if (np.abs(value) <= np.maximum(8 * error, SAME))[0]:
            return "slower than any power of M"
        return _power_rate(float(np.log2(value[1] / value[0])))


@lru_cache(maxsize=8)
def _on_grid(tau: Expr) -> tuple[Array, Values]:
    """The length kernel on a grid, which it shares with its normalized form."""
    top = min(longest(tau), 10.0**LARGEST)
    count = round(PER_DECADE * (np.log10(top) - SMALLEST))
    grid = np.unique(np.append(np.geomspace(10.0**SMALLEST, top, count + 1), 1.0))
    return grid, LengthKernel(tau).lengths(grid)


def _rate(slope: Bounded) -> str:
    return "superexponential" if abs(slope.value) <= max(EDGE, slope.error) else "exponential"


def _power_rate(power: float) -> str:
    whole = round(power)
    if whole < 1 or abs(power - whole) > _WHOLE * whole:
        return "subexponential"
    return "M^(-1)" if whole == 1 else f"M^(-1/{whole})"


def _label(points: list[LengthPoint], top: float) -> Any:
    """What becomes of lengths, by the points and by what long ones do."""
    positive = [point for point in points if point.length.value > 0]
    down = any(point.length.value == 0 and point.kind == "stable" for point in points)
    if not positive:
        return "all to infinity" if top > 0 else "all to 0"
    kinds = {point.kind for point in positive}
    if len(positive) == 1:
        if kinds == {"stable"}:
            return "all to a positive limit"
        if kinds == {"unstable"} and down and top > 0:
            return "small to 0, large to infinity"
        if kinds <= {"stable from below", "stable from above"}:
            return "half-stable"
    return "mixed"
