"""How far from an input a function stays within a factor of its linear part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log10
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.directions import Directions
from tpcalc.nonlinearity.tensors.shard import Shard, shard_of
from tpcalc.nonlinearity.tensors.uncertainty import median
from tpcalc.results import Estimate
from tpcalc.shown import Shown

Tensor = Any

# Halvings of the last step, between a distance that is linear enough and one that is not.
_HALVINGS = 10
# Entries of the inputs that are computed at a time.
_ENTRIES = 2**24


@dataclass(frozen=True)
class LocalLinearity(Shown):
    """GLLAD: laws of how many times smaller than the inputs' spread a linear region is.

    Attributes:
        values: C of every sample, at least 1; infinite where it is beyond what was scanned.
        median: MGLLA: their median, with its standard error.
        beyond: How many are infinite.
    """

    values: tuple[float, ...]
    median: Estimate
    beyond: int


def local_linearity(
    f: Callable[[Any], Any],
    x: Any,
    *,
    batch: int | None = None,
    samples: int = 20,
    factor: float = 2.0,
    smallest: float = 1e-8,
    per_decade: int = 12,
    seed: int = 0,
) -> LocalLinearity:
    """Sample C: the least C >= 1 with 1 / T <= D(c) / (c G) <= T for all c up to 1 / C.

    Over a batch, G sums u J d^T and D(c) sums u (f(x + c d) - f(x))^T, for directions d with the
    covariance of the inputs and Gaussian u. c is scanned upward from ``smallest``.

    Args:
        f: A module or another function from a batch of inputs to one of outputs, which torch can
            map over batches.
        x: The inputs.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        samples: How many batches.
        factor: T, above 1.
        smallest: The smallest c; below 1.
        per_decade: Values of c for each power of ten.
        seed: The seed.

    Returns:
        C of every batch, and their median.

    Raises:
        UsageError: Numbers outside their range, or inputs that are too few or all equal.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6; the inequality is one of the
        ratio, which G < 0 does not turn around.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> local_linearity(lambda x: 3 * x, gaussian_inputs(250, 4), samples=5).median.value
        1.0
    """
    samples = checks.whole(samples, "samples", least=2)
    per_decade = checks.whole(per_decade, "per_decade", least=1)
    checks.real(factor, "factor", above=1)
    checks.real(smallest, "smallest", above=0, most=1)
    shard = shard_of(x, batch, seed)
    directions = Directions(shard)
    together = max(1, _ENTRIES // (shard.batch * shard.features))
    steps = ceil(-log10(smallest) * per_decade)
    distances = np.geomspace(smallest, 1.0, steps + 1)
    found: list[float] = []
    with batch_moments(f):
        while len(found) < samples:
            first = len(found)
            count = min(together, samples - first)
            scan = _Scan(f, shard, directions, first, count, factor)
            found.extend(scan.run(distances).tolist())
    return LocalLinearity(tuple(found), median(np.array(found), seed), found.count(inf))


class _Scan:
    """Some samples: batches with directions and noise, scanned together."""

    def __init__(
        self,
        f: Callable[[Any], Any],
        shard: Shard,
        directions: Directions,
        first: int,
        count: int,
        factor: float,
    ) -> None:
        torch = load_torch()
        self._torch, self._factor, self._shard = torch, factor, shard
        # Each batch is seen by itself, so that batch norm has the moments of one.
        self._f = torch.func.vmap(lambda part: f(part).reshape(len(part), -1))
        numbers = range(first, first + count)
        self._x = torch.stack([shard.drawn("inputs", k) for k in numbers])
        self._d = torch.stack(
            [directions.sphere(shard.stream("directions", k), shard.batch) for k in numbers]
        )
        self._start, slope = torch.func.jvp(self._f, (self._x,), (self._d,))
        self._u = torch.stack(
            [shard.noise(part, "outputs", k) for k, part in zip(numbers, self._start, strict=True)]
        )
        self._slope = (slope * self._u).flatten(1).sum(1)

    def run(self, distances: Array) -> Array:
        """C of each sample."""
        count = len(self._x)
        low = np.zeros(count)
        high = np.full(count, inf)
        alive = np.arange(count)
        for before, now in zip([0.0, *distances[:-1]], distances, strict=True):
            left = alive[~self._linear(alive, np.full(len(alive), now))]
            low[left], high[left] = before, now
            alive = np.setdiff1d(alive, left)
            if not len(alive):
                break
        ends = np.flatnonzero(np.isfinite(high) & (low > 0))
        for _ in range(_HALVINGS if len(ends) else 0):
            middle = np.sqrt(low[ends] * high[ends])
            kept = self._linear(ends, middle)
            low[ends] = np.where(kept, middle, low[ends])
            high[ends] = np.where(kept, high[ends], middle)
        with np.errstate(divide="ignore"):
            return np.where(np.isfinite(high), 1 / low, 1.0)

    def _linear(self, places: Any, distances: Array) -> Any:
        torch, device, dtype = self._torch, self._x.device, self._x.dtype
        chosen = torch.from_numpy(np.asarray(places)).to(device)
        c = torch.from_numpy(distances).to(device, dtype)
        shape = (len(c), *(1,) * (self._x.ndim - 1))
        with torch.no_grad():
            moved = self._f(self._x[chosen] + c.reshape(shape) * self._d[chosen])
            change = ((moved - self._start[chosen]) * self._u[chosen]).flatten(1).sum(1)
            ratio = change / (c * self._slope[chosen])
            fine = (ratio >= 1 / self._factor) & (ratio <= self._factor)
        return fine.cpu().numpy()
