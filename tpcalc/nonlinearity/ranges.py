"""GLLAD and MGLLA: how far a function is close to its linear approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log10, sqrt
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.nonlinearity.estimators import median
from tpcalc.nonlinearity.function import Code, Function
from tpcalc.nonlinearity.laws import law_of
from tpcalc.nonlinearity.sample import CELLS
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

SMALLEST = 1e-9  # a change of inputs below which no difference is trusted
LARGEST = 0.1
SURE = 1e3  # changes are to be so many times their rounding
PER_DECADE = 24
HALVINGS = 24
PILOT = 64

Change = Literal["values", "hessian"]
Holds = Callable[[Any, Array], Any]
"""Whether something holds for some of the draws, each with its change c of the inputs."""


@dataclass(frozen=True, eq=False)
class LinearRange(Shown):
    """The distribution of 1 / c, c the change of inputs up to which a function is nearly linear."""

    values: Array  # C for each draw, ascending: at least 1, and infinite where it is not resolved
    # the change of inputs, in their standard deviations, below which differences of outputs
    # are rounding
    smallest: float
    seed: int  # of the draws

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
            Method.PARTICLES,
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
    by: Change = "values",
) -> LinearRange:
    """GLLAD of a function given as code; its median is MGLLA.

    For each draw a batch of inputs is moved by c times a random direction of their covariance, and
    a random combination of the changes of all outputs is compared to its linear approximation. C
    is 1 / c for the first c at which the ratio leaves [1 / factor, factor]; c is followed upward
    by steps of a tenth, so that a shorter excursion is not seen.

    Args:
        function, law, jacobian, jvp: As of ``sampled_nlc``.
        seed: Of the draws.
        batch, draws: Inputs in a batch, and how many batches.
        factor: How far the ratio may be from 1, above 1.
        by: ``"values"`` of the function, or ``"hessian"``: a local quadratic one in its place
            (MGLLAHE), which is blind to kinks.

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
    checks.one_of("by", by, ("values", "hessian"))
    seed = checks.seed(seed)
    size, count = checks.whole(batch, "batch", least=1), checks.whole(draws, "draws", least=2)
    most, rng = float(checks.real(factor, "factor", above=1)), np.random.default_rng(seed)
    pilot = known.points(rng, PILOT), known.changes(rng, PILOT)
    code = Code(function, known.dimension, jacobian, jvp).fitted(*pilot)
    smallest = min(max(SMALLEST, SURE * code.noise(*pilot)), LARGEST)

    found: list[Array] = []
    at_once = max(1, CELLS // (size * known.dimension))
    for own in [min(at_once, count - first) for first in range(0, count, at_once)]:
        shape = (own, size, known.dimension)
        x, v = (draw(rng, own * size).reshape(shape) for draw in (known.points, known.sphere))
        holds = linear_within(code, x, v, most, rng.standard_normal, by)
        found.append(scanned(holds, own, scales(smallest), HALVINGS))
    return LinearRange(np.sort(np.concatenate(found)), smallest, seed)


def linear_within(
    function: Function,
    x: Array,
    v: Array,
    most: float,
    noise: Callable[[tuple[int, ...]], Array],
    by: Change,
) -> Holds:
    """Whether changes of batches along vectors are within a factor of linear ones."""
    y = function.apart(x)
    u = noise(y.shape)  # the weights with which outputs are combined
    linear = np.sum(u * function.slopes_apart(x, v), axis=(1, 2))

    def moved(rows: Any, c: Array) -> Array:
        after = function.apart(x[rows] + c[:, None, None] * v[rows])
        return np.asarray(np.sum(u[rows] * (after - y[rows]), axis=(1, 2)))

    if by == "hessian":
        bent = function.bends_apart(x, v, u)

        def moved(rows: Any, c: Array) -> Array:
            return np.asarray(c * linear[rows] + c**2 / 2 * bent[rows])

    def holds(rows: Any, c: Array) -> Any:
        change = moved(rows, c)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = change / (c * linear[rows])
        # A function that does not move, and should not, is its linear approximation.
        still = (change == 0) & (linear[rows] == 0)
        return still | ((ratio >= 1 / most) & (ratio <= most))

    return holds


def scales(smallest: float, per_decade: int = PER_DECADE) -> Array:
    """Changes of inputs, upward to 1."""
    smallest = float(checks.real(smallest, "smallest", above=0, most=1))
    per_decade = checks.whole(per_decade, "per_decade", least=1)
    return np.geomspace(smallest, 1.0, ceil(-log10(smallest) * per_decade) + 1)


def scanned(holds: Holds, count: int, grid: Array, halvings: int = 0) -> Array:
    """1 / c for the first c at which something does not hold: infinite at the first of the grid."""
    low, high = np.zeros(count), np.full(count, inf)
    active: Any = np.arange(count)
    for before, c in zip([0.0, *grid[:-1]], grid, strict=True):
        fine = holds(active, np.full(len(active), c))
        left, active = active[~fine], active[fine]
        low[left], high[left] = before, c
        if not len(active):
            break
    ends = np.flatnonzero(np.isfinite(high) & (low > 0))
    for _ in range(halvings if len(ends) else 0):
        middle = np.sqrt(low[ends] * high[ends])
        fine = holds(ends, middle)
        low[ends[fine]], high[ends[~fine]] = middle[fine], middle[~fine]
    found = np.where(np.isfinite(high), 1 / high, 1.0)
    found[np.isfinite(high) & (low == 0)] = inf
    return found
