"""The mean of a polynomial of Gaussians on half-lines, by integration by parts.

For jointly Gaussian x and half-lines of w_1, w_2, ...

    E[x P s(w_1) ...] = E[x] E[P s(w_1) ...] + sum_j Cov(x, x_j) E[(dP/dx_j) s(w_1) ...]
                        + sum_m Cov(x, w_m) p_m(0) E[P (the other half-lines) | w_m = 0] s'

with p_m the density of w_m and s' the height of the jump, 1 for a step and 2 for a sign. Every term
has a lower degree or one half-line less, and what is left are probabilities of one or two
half-lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tpcalc.integrals.exact.gauss import Edge, Edges, Given, Root, Variables
from tpcalc.integrals.exact.numbers import Numbers
from tpcalc.integrals.exact.piece import Unsupported


class Moments:
    """Means of monomials on half-lines; each is computed once."""

    def __init__(self, numbers: Numbers, source: Edges, kinds: tuple[str, ...]) -> None:
        self._numbers, self._source = numbers, source
        self._kinds = kinds
        self._count = len(source.mean) - len(kinds)
        self._known: dict[tuple[int, ...], Any] = {}
        self._given: dict[int, tuple[Any, Moments]] = {}
        self._centred = all(value == 0 for value in source.mean)
        self._mirrored = self._centred and "step" not in kinds
        self._signs = len(kinds)

    def of(self, degrees: tuple[int, ...]) -> Any:
        """The mean of the monomial of these degrees on the half-lines."""
        if degrees not in self._known:
            self._known[degrees] = self._find(degrees)
        return self._known[degrees]

    def _find(self, degrees: tuple[int, ...]) -> Any:
        if self._mirrored and (sum(degrees) + self._signs) % 2:
            return 0  # an odd function
        first = next((i for i, degree in enumerate(degrees) if degree), None)
        if first is None:
            return self._mass()
        short = self._short(degrees)
        if short is not None:
            return short
        source = self._source
        lower = _less(degrees, first)
        terms = [source.mean[first] * self.of(lower)] if source.mean[first] != 0 else []
        for j, degree in enumerate(lower):
            if degree and source.cov(first, j) != 0:
                terms.append(degree * source.cov(first, j) * self.of(_less(lower, j)))
        for m in range(len(self._kinds)):
            share = source.cov(first, self._count + m)
            if share != 0:
                terms.append(self._jump(m, share, lower))
        return self._numbers.total(terms)

    def _jump(self, m: int, share: Any, lower: tuple[int, ...]) -> Any:
        """The term of the edge of a half-line."""
        size, rest = self._at_edge(m)
        found = rest.of(lower)
        if found == 0:
            return 0
        return (1 if self._kinds[m] == "step" else 2) * (share * size) * found

    def _short(self, degrees: tuple[int, ...]) -> Any:
        """The known form of E[w_1 w_2 step(w_1) step(w_2)] with means 0."""
        source = self._source
        if self._kinds != ("step", "step") or degrees != (1, 1) or not self._centred:
            return None
        if not isinstance(source, Root) or source.weight != 0:
            return None
        for x, y in ((2, 3), (3, 2)):
            if source.tied(0, x) and source.tied(1, y):
                entries = (
                    source.cov(2, 2),
                    source.cov(3, 3),
                    source.cov(2, 3),
                    source.minor(2, 3, 2),
                )
                return source.turn(0, x) * source.turn(1, y) * self._numbers.ramps(entries)
        return None

    def _at_edge(self, m: int) -> tuple[Any, Moments]:
        """1 / (the deviation of w_m) / sqrt(2 pi), and the rest given w_m = 0."""
        if m not in self._given:
            numbers, source = self._numbers, self._source
            p = self._count + m
            kinds = self._kinds[:m] + self._kinds[m + 1 :]
            size = numbers.over(numbers.per_root_tau(1), numbers.root(source.cov(p, p)))
            self._given[m] = size, Moments(numbers, Given(numbers, source, p), kinds)
        return self._given[m]

    def _mass(self) -> Any:
        """The mean of the half-lines alone."""
        numbers, source = self._numbers, self._source
        known: Any = 1
        places, kinds = [], []
        for p, kind in enumerate(self._kinds, self._count):
            if source.cov(p, p) == 0:
                known = known * numbers.known_side(kind, source.mean[p])
            else:
                places.append(p)
                kinds.append(kind)
        if known == 0:
            return 0
        if not places:
            return known * numbers.exponential(source.weight)
        if len(places) == 1:
            return known * self._line(kinds[0], places[0])
        if len(places) == 2:
            return known * self._pair((kinds[0], kinds[1]), (places[0], places[1]))
        raise Unsupported("more than two half-lines")

    def _line(self, kind: str, p: int) -> Any:
        source = self._source
        weights = (source.weight, source.depth(p)) if source.weight != 0 else (0, 0)
        return self._numbers.half(kind, weights, source.mean[p], source.cov(p, p))

    def _pair(self, kinds: tuple[str, str], places: tuple[int, int]) -> Any:
        source, (p, q) = self._source, places
        weights: tuple[Any, ...] = (0,)
        if source.weight != 0:
            drifts = (source.drift(q, p), source.drift(p, q))
            corner = source.corner(p, q)
            weights = (source.weight, source.depth(p), source.depth(q), corner, *drifts)
        entries = (source.cov(p, p), source.cov(q, q), source.cov(p, q), source.minor(p, q, p))
        return self._numbers.quarter(kinds, weights, (source.mean[p], source.mean[q]), entries)


def _less(degrees: tuple[int, ...], index: int) -> tuple[int, ...]:
    return (*degrees[:index], degrees[index] - 1, *degrees[index + 1 :])


def root(
    numbers: Numbers, base: Variables, used: Sequence[int], halves: Sequence[Edge]
) -> list[tuple[Any, Moments]]:
    """The moments of some variables on half-lines, as a sum of (coefficient, moments)."""
    plain = [Edge(index, 1, 0, 0, "") for index in used]
    choices: list[tuple[Any, Sequence[Edge]]] = [(1, halves)]
    if len(halves) > 2:
        centred = all(value == 0 for value in base.mean)
        if centred and all(edge.shift == 0 for edge in halves):
            choices = [(numbers.fraction(share), picked) for share, picked in _as_signs(halves)]
    out = []
    for number, chosen in choices:
        kinds = tuple(edge.kind for edge in chosen)
        source = Root(base, [*plain, *chosen])
        out.append((number, Moments(numbers, source, kinds)))
    return out


def _as_signs(halves: Sequence[Edge]) -> list[tuple[Fraction, list[Edge]]]:
    """A product of steps as a sum of products of signs: step = (1 + sign) / 2."""
    out = []
    for picks in product((False, True), repeat=len(halves)):
        number, chosen = Fraction(1), []
        for half, pick in zip(halves, picks, strict=True):
            if half.kind == "step":
                number /= 2
                if pick:
                    chosen.append(Edge(half.variable, half.side, 0, half.noise, "sign"))
            elif pick:
                chosen.append(half)
            else:
                number = Fraction(0)
        if number:
            out.append((number, chosen))
    return out
