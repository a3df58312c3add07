"""The jointly Gaussian variables: on a value, under an exponential, beside half-lines, at an edge.

All of it keeps 2 x 2 minors of the covariance matrix as they are (up to a factor), so that what is
small because two variables are nearly the same is never found as a difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc.integrals.exact.delta import no_density
from tpcalc.integrals.exact.numbers import Numbers

HALF = Fraction(1, 2)


class Variables:
    """Gaussian variables with a weight."""

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
        self._minors = {(*at, *at): value for at, value in (minors or {}).items()}
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
            self._depths[p] = self.weight + _fall(self.numbers, self.mean[p], self.cov[p][p])
        return self._depths[p]

    def corner(self, i: int, p: int) -> Any:
        """The weight where both variables are 0."""
        if i > p:
            return self.corner(p, i)
        if (i, p) not in self._corners:
            square = self.cov[p][p] * self.minor(i, p, i, p)
            self._corners[i, p] = self.depth(p) + _fall(self.numbers, self.drift(i, p), square)
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
        numbers, others = self.numbers, [j for j in range(len(self.mean)) if j != index]
        variance, centre = self.cov[index][index], self.mean[index]
        spread = numbers.tilted(square, variance)
        push = slope + 2 * square * centre
        mean = [
            numbers.over(centre + slope * variance, spread)
            if j == index
            else self.mean[j] + numbers.over(self.cov[index][j] * push, spread)
            for j in range(len(self.mean))
        ]
        weight = self.weight + numbers.over(
            square * centre * centre
            + slope * centre
            + numbers.fraction(HALF) * slope * slope * variance,
            spread,
        )
        if square == 0:
            return Variables(
                numbers, mean, self.cov, weight, self.factor, *self._pushed(index, slope)
            )
        minors, drifts = {}, {}
        for j in others:
            minors[min(j, index), max(j, index)] = numbers.over(
                self.minor(index, j, index, j), spread
            )
            drifts[j, index] = numbers.over(self.drift(j, index), spread)
            grown = self.drift(index, j) + slope * self.minor(index, j, index, j)
            drifts[index, j] = numbers.over(grown, spread)
        factor = self.factor * numbers.over(1, numbers.root(spread))
        cov = self._turned(index, square, spread)
        return Variables(numbers, mean, cov, weight, factor, minors, drifts)

    def _turned(self, index: int, square: Any, spread: Any) -> list[list[Any]]:
        """Covariances under the square of a variable in an exponent."""
        count = len(self.mean)
        cov: list[list[Any]] = [[0] * count for _ in range(count)]
        for j in range(count):
            for k in range(j, count):
                near = self.cov[j][k]
                if index not in (j, k):
                    near = near + (-2 * square) * self.minor(index, j, index, k)
                cov[j][k] = cov[k][j] = self.numbers.over(near, spread)
        return cov

    def _pushed(self, index: int, slope: Any) -> tuple[dict[Any, Any], ...]:
        """Minors, drifts, depths and corners with exp(slope x), which is 1 where x is 0."""
        numbers, every = self.numbers, range(len(self.mean))
        minors = {(i, j): value for (i, j, k, m), value in self._minors.items() if (i, j) == (k, m)}
        drifts = {
            (i, p): self.drift(i, p) + slope * self.minor(i, p, index, p)
            for i in every
            for p in every
            if i != p
        }
        half = numbers.fraction(HALF) * slope * slope
        depths = {
            p: self.depth(p)
            if p == index
            else self.depth(p)
            + numbers.over(
                slope * self.drift(index, p) + half * self.minor(index, p, index, p),
                self.cov[p][p],
            )
            for p in every
        }
        corners = {(i, p): self.corner(i, p) for p in every for i in range(p) if index in (i, p)}
        return minors, drifts, depths, corners


@dataclass(frozen=True, slots=True)
class Edge:
    """w = side * (variable) + shift + own noise; a variable itself has side 1 and no noise."""

    variable: int  # which
    side: int  # 1 or -1
    shift: Any  # a number
    noise: Any  # the variance of the noise; 0 for none
    kind: str  # "step", "sign", or "" for a variable of the polynomial


def _fall(numbers: Numbers, distance: Any, square: Any) -> Any:
    """-distance^2 / (2 square): how much lower a weight is at that distance."""
    if distance == 0:
        return 0
    return numbers.fraction(-HALF) * numbers.over(distance * distance, square)


class Edges(ABC):
    """Means, covariances and minors of edges."""

    def __init__(self, numbers: Numbers, weight: Any) -> None:
        self._numbers = numbers
        self.weight = weight
        self.mean: list[Any] = []
        self._cov: dict[tuple[int, int], Any] = {}

    def cov(self, i: int, j: int) -> Any:
        """The covariance of two edges."""
        key = (i, j) if i <= j else (j, i)
        if key not in self._cov:
            self._cov[key] = self._covariance(*key)
        return self._cov[key]

    @abstractmethod
    def _covariance(self, i: int, j: int) -> Any:
        """The covariance of two, the first no later."""

    @abstractmethod
    def minor(self, i: int, p: int, j: int) -> Any:
        """cov(i, j) cov(p, p) - cov(i, p) cov(j, p)."""

    @abstractmethod
    def drift(self, i: int, p: int) -> Any:
        """mean(i) cov(p, p) - cov(i, p) mean(p)."""

    @abstractmethod
    def depth(self, p: int) -> Any:
        """The weight where p is 0."""

    def corner(self, i: int, p: int) -> Any:
        """The weight where i and p are 0."""
        square = self.cov(p, p) * self.minor(i, p, i)
        return self.depth(p) + _fall(self._numbers, self.drift(i, p), square)

    def tied(self, i: int, p: int) -> bool:
        """Whether i is known once p is."""
        return False


class Root(Edges):
    """Edges of variables."""

    def __init__(self, base: Variables, edges: Sequence[Edge]) -> None:
        super().__init__(base.numbers, base.weight)
        self._base, self._edges = base, edges
        self.mean = [self._centre(edge) for edge in edges]

    def _centre(self, edge: Edge) -> Any:
        value = self._base.mean[edge.variable]
        return edge.shift if value == 0 else edge.side * value + edge.shift

    def _covariance(self, i: int, j: int) -> Any:
        one, other = self._edges[i], self._edges[j]
        value = one.side * other.side * self._base.cov[one.variable][other.variable]
        return value + one.noise if i == j else value

    def minor(self, i: int, p: int, j: int) -> Any:
        """cov(i, j) cov(p, p) - cov(i, p) cov(j, p)."""
        one, edge, other = self._edges[i], self._edges[p], self._edges[j]
        sides = one.side * other.side
        base = self._base
        found = sides * base.minor(one.variable, edge.variable, other.variable, edge.variable)
        if edge.noise != 0:
            found = found + sides * edge.noise * base.cov[one.variable][other.variable]
        if i == j and one.noise != 0:
            found = found + one.noise * self.cov(p, p)
        return found

    def drift(self, i: int, p: int) -> Any:
        """mean(i) cov(p, p) - cov(i, p) mean(p)."""
        one, edge, base = self._edges[i], self._edges[p], self._base
        found = one.side * base.drift(one.variable, edge.variable)
        if edge.noise != 0:
            found = found + one.side * base.mean[one.variable] * edge.noise
        if one.shift != 0:
            found = found + one.shift * self.cov(p, p)
        if edge.shift != 0:
            found = found + -1 * self.cov(i, p) * edge.shift
        return found

    def depth(self, p: int) -> Any:
        """The weight where p is 0."""
        edge = self._edges[p]
        if self.mean[p] == 0:
            return self.weight
        if edge.noise == 0 and edge.shift == 0:
            return self._base.depth(edge.variable)
        return self.weight + _fall(self._numbers, self.mean[p], self.cov(p, p))

    def corner(self, i: int, p: int) -> Any:
        """The weight where i and p are 0."""
        one, other = self._edges[i], self._edges[p]
        plain = one.noise == 0 and one.shift == 0 and other.noise == 0 and other.shift == 0
        if plain and one.variable != other.variable:
            return self._base.corner(one.variable, other.variable)
        return super().corner(i, p)

    def tied(self, i: int, p: int) -> bool:
        """Whether both are the same variable without noise."""
        one, edge = self._edges[i], self._edges[p]
        return one.variable == edge.variable and one.noise == 0 and edge.noise == 0

    def turn(self, i: int, p: int) -> int:
        """1 where both look the same way, else -1."""
        return self._edges[i].side * self._edges[p].side

    def point(self, i: int, p: int) -> Any:
        """The value of i where p, to which it is tied, is 0."""
        shift = self._edges[p].shift
        own = self._edges[i].shift
        return own if shift == 0 else own + -1 * self.turn(i, p) * shift


class Given(Edges):
    """What is left where one edge is at 0; whatever is tied to it has become a number."""

    def __init__(self, numbers: Numbers, before: Edges, edge: int) -> None:
        super().__init__(numbers, before.depth(edge))
        self._before, self._edge = before, edge
        self._kept = [i for i in range(len(before.mean)) if i != edge]
        self._tied = {i for i in self._kept if before.tied(i, edge)}
        self.mean = [self._centre(i) for i in self._kept]

    def _centre(self, i: int) -> Any:
        before, p = self._before, self._edge
        if isinstance(before, Root) and i in self._tied:
            return before.point(i, p)
        if before.mean[p] == 0:
            return before.mean[i]
        return self._numbers.over(before.drift(i, p), before.cov(p, p))

    def _covariance(self, i: int, j: int) -> Any:
        one, other, p = self._kept[i], self._kept[j], self._edge
        if self._tied & {one, other}:
            return 0
        return self._numbers.over(self._before.minor(one, p, other), self._before.cov(p, p))

    def minor(self, i: int, p: int, j: int) -> Any:
        return self._numbers.minor(
            self.cov(i, j), self.cov(p, p), self.cov(i, p), self.cov(j, p), i == j
        )

    def drift(self, i: int, p: int) -> Any:
        return self._numbers.minor(
            self.mean[i], self.cov(p, p), self.cov(i, p), self.mean[p], False
        )

    def depth(self, p: int) -> Any:
        if self.mean[p] == 0:
            return self.weight
        return self._before.corner(self._kept[p], self._edge)
