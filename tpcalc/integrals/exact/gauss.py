"""The jointly Gaussian variables: conditioning on a value, tilting by an exponential.

Both keep 2 x 2 minors of the covariance matrix as they are (up to a factor), so that what is small
because two variables are nearly the same is never found as a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tpcalc.integrals.exact.delta import no_density
from tpcalc.integrals.exact.numbers import Numbers

HALF = Fraction(1, 2)


class Variables:
    """Gaussian variables with a weight.

    Args:
        numbers: The number system.
        mean: Their means.
        cov: Their covariances, full rows.
        weight: The logarithm of a factor of everything.
        factor: Another factor of everything.
        minors: Minors of pairs (i, j), i < j, where they are known better than from ``cov``.
        drifts: Drifts (i, p) where they are known better.
        depths: Depths where they are known better.
        corners: Corners (i, p), i < p, where they are known better.
    """

    def __init__(
        self,
        numbers: Numbers,
        mean: Sequence[Any],
        cov: Sequence[Sequence[Any]],
        weight: Any = 0,
        factor: Any = 1,
        minors: dict[tuple[int, int], Any] | None = None,
        drifts: dict[tuple[int, int], Any] | None = None,
        depths: dict[int, Any] | None = None,
        corners: dict[tuple[int, int], Any] | None = None,
    ) -> None:
        self.numbers = numbers
        self.mean = tuple(mean)
        self.cov = cov
        self.weight = weight
        self.factor = factor
        self._minors: dict[tuple[int, int, int, int], Any] = {}
        for (i, j), value in (minors or {}).items():
            self._minors[i, j, i, j] = value
        self._drifts = dict(drifts or {})
        self._depths = dict(depths or {})
        self._corners = dict(corners or {})

    def minor(self, i: int, j: int, k: int, m: int) -> Any:
        """cov[i][k] cov[j][m] - cov[i][m] cov[j][k]."""
        if i == j or k == m:
            return 0
        if i > j:
            return -1 * self.minor(j, i, k, m)
        if k > m:
            return -1 * self.minor(i, j, m, k)
        key = (i, j, k, m) if (i, j) <= (k, m) else (k, m, i, j)
        if key not in self._minors:
            i, j, k, m = key
            cov = self.cov
            self._minors[key] = self.numbers.minor(
                cov[i][k], cov[j][m], cov[i][m], cov[j][k], (i, j) == (k, m)
            )
        return self._minors[key]

    def drift(self, i: int, p: int) -> Any:
        """mean[i] cov[p][p] - cov[i][p] mean[p]: the mean of i given p = 0, times cov[p][p]."""
        if i == p:
            return 0
        if (i, p) not in self._drifts:
            cov, mean = self.cov, self.mean
            self._drifts[i, p] = self.numbers.minor(mean[i], cov[p][p], cov[i][p], mean[p], False)
        return self._drifts[i, p]

    def depth(self, p: int) -> Any:
        """The weight where variable p is 0: weight - mean[p]^2 / (2 cov[p][p])."""
        if self.mean[p] == 0:
            return self.weight
        if p not in self._depths:
            away = self.numbers.over(self.mean[p] * self.mean[p], self.cov[p][p])
            self._depths[p] = self.weight + self.numbers.fraction(-HALF) * away
        return self._depths[p]

    def corner(self, i: int, p: int) -> Any:
        """The weight where both variables are 0."""
        if i > p:
            return self.corner(p, i)
        if (i, p) not in self._corners:
            drift = self.drift(i, p)
            away = self.numbers.over(drift * drift, self.cov[p][p] * self.minor(i, p, i, p))
            self._corners[i, p] = self.depth(p) + self.numbers.fraction(-HALF) * away
        return self._corners[i, p]

    def at(self, index: int, point: Any) -> Variables:
        """Given that a variable takes a value, weighted with its density there."""
        numbers, count = self.numbers, len(self.mean)
        variance = self.cov[index][index]
        if variance == 0:
            raise no_density()
        away = point - self.mean[index] if point != 0 else -1 * self.mean[index]
        mean = [
            point
            if j == index
            else self.mean[j] + numbers.over(self.cov[index][j], variance) * away
            for j in range(count)
        ]
        cov: list[list[Any]] = [[0] * count for _ in range(count)]
        for j in range(count):
            for k in range(j, count):
                if index not in (j, k):
                    cov[j][k] = cov[k][j] = numbers.over(self.minor(j, index, k, index), variance)
        weight = self.weight
        if away != 0:
            weight = weight + numbers.fraction(HALF) * numbers.over(-1 * away * away, variance)
        factor = self.factor * numbers.over(numbers.per_root_tau(1), numbers.root(variance))
        return Variables(numbers, mean, cov, weight, factor)

    def tilted(self, index: int, square: Any, slope: Any) -> Variables:
        """With the factor exp(square x^2 + slope x) of a variable."""
        numbers, count = self.numbers, len(self.mean)
        variance, centre = self.cov[index][index], self.mean[index]
        spread = numbers.tilted(square, variance)
        push = slope + 2 * square * centre
        mean = [
            numbers.over(centre + slope * variance, spread)
            if j == index
            else self.mean[j] + numbers.over(self.cov[index][j] * push, spread)
            for j in range(count)
        ]
        weight = self.weight + numbers.over(
            square * centre * centre
            + slope * centre
            + numbers.fraction(HALF) * slope * slope * variance,
            spread,
        )
        if square == 0:
            kept = {
                (i, j): value for (i, j, k, m), value in self._minors.items() if (i, j) == (k, m)
            }
            drifts = {
                (i, p): self.drift(i, p) + slope * self.minor(i, p, index, p)
                for i in range(count)
                for p in range(count)
                if i != p
            }
            # exp(slope x) is 1 where x is 0: no weight changes there.
            depths = {
                p: self.depth(p)
                if p == index
                else self.depth(p)
                + numbers.over(
                    slope * self.drift(index, p)
                    + numbers.fraction(HALF) * slope * slope * self.minor(index, p, index, p),
                    self.cov[p][p],
                )
                for p in range(count)
            }
            corners = {
                (i, p): self.corner(i, p)
                for i in range(count)
                for p in range(i + 1, count)
                if index in (i, p)
            }
            return Variables(
                numbers, mean, self.cov, weight, self.factor, kept, drifts, depths, corners
            )
        cov: list[list[Any]] = [[0] * count for _ in range(count)]
        for j in range(count):
            for k in range(j, count):
                near = self.cov[j][k]
                if index not in (j, k):
                    near = near + (-2 * square) * self.minor(index, j, index, k)
                cov[j][k] = cov[k][j] = numbers.over(near, spread)
        minors = {
            (min(j, index), max(j, index)): numbers.over(self.minor(index, j, index, j), spread)
            for j in range(count)
            if j != index
        }
        drifts = {}
        for j in range(count):
            if j != index:
                drifts[j, index] = numbers.over(self.drift(j, index), spread)
                grown = self.drift(index, j) + slope * self.minor(index, j, index, j)
                drifts[index, j] = numbers.over(grown, spread)
        factor = self.factor * numbers.over(1, numbers.root(spread))
        return Variables(numbers, mean, cov, weight, factor, minors, drifts)
