"""GLLAD: how far a function is close to its linear approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.nonlinearity.laws import law_of
from tpcalc.nonlinearity.sampled import median
from tpcalc.nonlinearity.slopes import Blackbox
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

SMALLEST = 1e-9  # a change of inputs below which no difference is trusted
LARGEST = 0.1
SURE = 1e3  # changes are to be so many times their rounding
PER_DECADE = 24
HALVINGS = 40
CELLS = 2**22
PILOT = 64


@dataclass(frozen=True, eq=False)
class LinearRange(Shown):
    """The distribution of 1 / c, c the change of inputs up to which a function is nearly linear.

    Args:
        values: C for each draw, ascending: at least 1, and infinite where it is not resolved.
        smallest: The change of inputs, in their standard deviations, below which differences of
            outputs are rounding.
        seed: Of the draws.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6, metric 5.
    """

    values: Array
    smallest: float
    seed: int

    @property
    def one(self) -> Estimate:
        """How likely C = 1 is: the linear approximation holds over the whole spread of inputs."""
        share = float(np.mean(self.values == 1))
        error = sqrt((share * (1 - share) + 1 / len(self.values)) / len(self.values))
        return Estimate(share, error, Method.PARTICLES, samples=len(self.values), seed=self.seed)

    @property
    def median(self) -> Estimate:
        """MGLLA, the median of C; its error by order statistics."""
        return median(
            self.values,
            self.seed,
            f"the function leaves its linear approximation within {self.smallest:.0e} of the "
            "spread of inputs in half of the draws: floating-point numbers do not resolve it.",
        )


def linear_range(
    function: Callable[[Any], Any],
    law: Any,
    *,
    seed: int,
    batch: int = 250,
    draws: int = 100,
    factor: float = 2.0,
    jacobian: Callable[[Any], Any] | None = None,
    jvp: Callable[[Any, Any], Any] | None = None,
) -> LinearRange:
    """GLLAD of a function given as code; its median is MGLLA.

    For each draw a batch of inputs is moved by c times a random direction of their covariance, and
    a random combination of the changes of all outputs is compared to its linear approximation. C
    is 1 / c for the first c at which the ratio leaves [1 / factor, factor]; c is followed upward
    by steps of a tenth, so that a shorter excursion is not seen.

    Args:
        function: As of ``sampled_nlc``.
        law: As of ``sampled_nlc``.
        seed: Of the draws.
        batch: Inputs in a batch.
        draws: How many batches.
        factor: How far the ratio may be from 1, above 1.
        jacobian: As of ``sampled_nlc``.
        jvp: As of ``sampled_nlc``.

    Returns:
        C of every draw, sorted.

    Raises:
        UsageError: Arguments that do not fit.
        EvaluationError: Outputs that are not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6, metrics 5 and 6. The
        inequality is taken for the ratio, whose linear part may be negative.

    Example:
        >>> found = linear_range(lambda x: 3 * x, np.eye(6), seed=0, batch=2, draws=5)
        >>> found.values.tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    known = law_of(law)
    seed = checks.seed(seed)
    size, count = checks.whole(batch, "batch", least=1), checks.whole(draws, "draws", least=2)
    most = float(checks.real(factor, "factor", above=1))
    box = Blackbox(function, known.dimension, jacobian, jvp)
    rng = np.random.default_rng(seed)
    at_once = max(1, CELLS // (size * known.dimension))
    pilot = known.points(rng, PILOT), known.changes(rng, PILOT)
    box = box.with_step(*pilot)
    smallest = min(max(SMALLEST, SURE * box.noise(*pilot)), LARGEST)
    found: list[Array] = []
    while count:
        own = min(count, at_once)
        count -= own
        found.append(_ranges(_Trial.drawn(box, known, own, size, rng), most, smallest))
    return LinearRange(np.sort(np.concatenate(found)), smallest, seed)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Batches, the directions in which they move, and what their outputs are combined with."""

    box: Blackbox
    x: Array
    v: Array
    y: Array
    u: Array
    linear: Array

    @classmethod
    def drawn(
        cls, box: Blackbox, law: Any, draws: int, batch: int, rng: np.random.Generator
    ) -> _Trial:
        total = draws * batch
        x = law.points(rng, total)
        factor = law.factor(rng)
        z = rng.standard_normal((total, factor.shape[1]))
        z *= np.sqrt(factor.shape[1]) / np.linalg.norm(z, axis=1, keepdims=True)
        v = z @ factor.T
        y = box.values(x)
        u = rng.standard_normal(y.shape)
        along = np.sum(u * box.along(x, v).fine, axis=1).reshape(draws, batch).sum(axis=1)
        shape = (draws, batch, -1)
        return cls(
            box, x.reshape(shape), v.reshape(shape), y.reshape(shape), u.reshape(shape), along
        )

    def holds(self, rows: Array, c: Array, most: float) -> Any:
        """Whether the ratio is within bounds, for some of the draws, each with its change c."""
        moved = self.x[rows] + c[:, None, None] * self.v[rows]
        shape = self.y[rows].shape
        after = self.box.values(moved.reshape(-1, moved.shape[2])).reshape(shape)
        change = np.sum(self.u[rows] * (after - self.y[rows]), axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = change / (c * self.linear[rows])
        # A function that does not move, and should not, is its linear approximation.
        still = (change == 0) & (self.linear[rows] == 0)
        return still | ((ratio >= 1 / most) & (ratio <= most))


def _ranges(trial: _Trial, most: float, smallest: float) -> Array:
    grid = np.geomspace(smallest, 1.0, round(-np.log10(smallest) * PER_DECADE) + 1)
    found = np.ones(len(trial.x))
    active: Any = np.arange(len(found))
    for index, c in enumerate(grid):
        holds = trial.holds(active, np.full(len(active), c), most)
        left = active[~holds]
        if len(left):
            found[left] = np.inf if index == 0 else _refined(trial, left, grid[index - 1], c, most)
        active = active[holds]
        if not len(active):
            break
    return found


def _refined(trial: _Trial, rows: Array, low: float, high: float, most: float) -> Array:
    below, above = np.full(len(rows), low), np.full(len(rows), high)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        holds = trial.holds(rows, middle, most)
        below, above = np.where(holds, middle, below), np.where(holds, above, middle)
    return 1 / above
