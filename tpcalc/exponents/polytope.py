"""Bounded polyhedra over the rationals, by their corners: cutting and looking inside, exactly.

Everything is integer arithmetic on homogeneous coordinates. A linear form is bounded on a polytope
by its values at the corners, so "is this part empty" is read off their signs; nothing is searched
for, and no tolerance is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

Form = tuple[int, ...]  # (c0, c1, ..., cd): the affine form c0 + c1 x1 + ... + cd xd
Point = tuple[int, ...]  # (w, w x1, ..., w xd) with w > 0, coprime

# Denominators for points inside. Conditions on exponents mostly meet at halves and quarters, so
# thirds and fifths rarely fall on one by accident.
_DENOMINATORS = (3, 5, 7, 11, 13, 17, 23, 31, 47, 71, 101, 211, 503, 1009)


def primitive(numbers: Sequence[Fraction | int]) -> tuple[int, ...]:
    """The coprime integers in the same proportions.

    Example:
        >>> primitive([Fraction(2, 3), Fraction(-4), Fraction(0)])
        (1, -6, 0)
    """
    common = math.lcm(*(number.denominator for number in numbers))
    whole = [int(number * common) for number in numbers]
    size = math.gcd(*whole) or 1
    return tuple(number // size for number in whole)


@dataclass(frozen=True, slots=True)
class Polytope:
    """The relative interior of a bounded polyhedron, never empty.

    Example:
        >>> square = Polytope.box([(Fraction(0), Fraction(1))] * 2)
        >>> triangle = square.part((-1, 1, 1), -1)  # where -1 + x + y < 0
        >>> [(str(x), str(y)) for x, y in triangle.points]
        [('0', '0'), ('1', '0'), ('0', '1')]
        >>> square.part((3, -1, -1), -1) is None
        True
    """

    dimension: int
    corners: tuple[Point, ...]  # the corners of its closure
    tight: tuple[int, ...]  # for each corner, the bounds that vanish there, as the bits of a number
    bounds: tuple[Form, ...]  # forms that are positive inside; together with zeros they describe it
    zeros: tuple[Form, ...] = ()  # independent forms that vanish on it

    @staticmethod
    def box(sides: Sequence[tuple[Fraction, Fraction]]) -> Polytope:
        """A product of open intervals; an interval of length zero is a point."""
        corners: list[tuple[Fraction, ...]] = [()]
        tight = [0]
        bounds: list[Form] = []
        zeros: list[Form] = []
        for axis, (low, high) in enumerate(sides):
            unit = [Fraction(0)] * len(sides)
            unit[axis] = Fraction(1)
            if low == high:
                zeros.append(primitive([-low, *unit]))
                corners = [(*corner, low) for corner in corners]
                continue
            bit = 1 << len(bounds)
            bounds.append(primitive([-low, *unit]))
            bounds.append(primitive([high, *(-number for number in unit)]))
            tight = [*(mask | bit for mask in tight), *(mask | 2 * bit for mask in tight)]
            corners = [(*corner, end) for end in (low, high) for corner in corners]
        points = tuple(primitive([Fraction(1), *corner]) for corner in corners)
        dimension = len(sides) - len(zeros)
        return Polytope(dimension, points, tuple(tight), tuple(bounds), tuple(zeros))

    @property
    def points(self) -> tuple[tuple[Fraction, ...], ...]:
        """The corners as rational points; those of a polygon one after the other, anticlockwise."""
        plain = [tuple(Fraction(c, point[0]) for c in point[1:]) for point in self.corners]
        if self.dimension == 2 and len(plain[0]) == 2:
            return _round(plain)
        return tuple(plain)

    def part(self, form: Form, sign: int) -> Polytope | None:
        """The part where a form has a sign, or None where it has it nowhere."""
        values = self._values(form)
        if sign < 0:
            values, form = [-value for value in values], tuple(-number for number in form)
        above, below = max(values) > 0, min(values) < 0
        if not above and not below:
            return self if sign == 0 else None
        if sign == 0:
            return self._slice(form, values) if above and below else None
        if not below or not above:
            return self if above else None
        return self._clip(form, values)

    def _values(self, form: Form) -> list[int]:
        return [sum(a * b for a, b in zip(form, point, strict=True)) for point in self.corners]

    def _crossings(self, values: list[int]) -> Iterator[tuple[Point, int]]:
        """Where the edges cross the zero set, with the bounds that vanish there."""
        above = [k for k, value in enumerate(values) if value > 0]
        below = [k for k, value in enumerate(values) if value < 0]
        for u in above:
            for v in below:
                shared = self.tight[u] & self.tight[v]
                # Two corners span an edge when no third lies on the smallest face of both.
                if sum(mask & shared == shared for mask in self.tight) == 2:
                    pairs = zip(self.corners[u], self.corners[v], strict=True)
                    yield primitive([values[u] * b - values[v] * a for a, b in pairs]), shared

    def _clip(self, form: Form, values: list[int]) -> Polytope:
        bit = 1 << len(self.bounds)
        known = zip(self.corners, self.tight, values, strict=True)
        kept = [(point, mask | (0 if value else bit)) for point, mask, value in known if value >= 0]
        kept += [(point, mask | bit) for point, mask in self._crossings(values)]
        corners, tight = zip(*kept, strict=True)
        return Polytope(self.dimension, corners, tight, (*self.bounds, form), self.zeros)

    def _slice(self, form: Form, values: list[int]) -> Polytope:
        known = zip(self.corners, self.tight, values, strict=True)
        kept = [(point, mask) for point, mask, value in known if value == 0]
        kept += list(self._crossings(values))
        corners, tight = zip(*kept, strict=True)
        return Polytope(self.dimension - 1, corners, tight, self.bounds, (*self.zeros, form))

    @property
    def facets(self) -> tuple[Form, ...]:
        """The bounds that cannot be left out, one for each facet (the last one given)."""
        found: dict[tuple[int, ...], Form] = {}
        for k, bound in enumerate(self.bounds):
            on = tuple(i for i, mask in enumerate(self.tight) if mask >> k & 1)
            if on and _rank([self.corners[i] for i in on]) == self.dimension:
                found[on] = bound
        return tuple(found.values())

    def inside(self) -> tuple[Fraction, ...]:
        """A point of the relative interior near its middle, of small denominators."""
        points = [[Fraction(c, point[0]) for c in point[1:]] for point in self.corners]
        centre = [sum(column, Fraction(0)) / len(points) for column in zip(*points, strict=True)]
        spans = [[a - b for a, b in zip(point, points[0], strict=True)] for point in points[1:]]
        rows = _echelon(spans)
        for denominator in _DENOMINATORS if rows else ():
            moved = list(centre)
            for pivot, row in rows:
                step = Fraction(round(centre[pivot] * denominator), denominator) - centre[pivot]
                moved = [a + step * b for a, b in zip(moved, row, strict=True)]
            if all(
                bound[0] + sum(c * x for c, x in zip(bound[1:], moved, strict=True)) > 0
                for bound in self.bounds
            ):
                return tuple(moved)
        return tuple(centre)


def _echelon(rows: Sequence[Sequence[Fraction]]) -> list[tuple[int, list[Fraction]]]:
    """A basis of the span with its pivots: 1 there, and 0 in the other rows."""
    basis: list[tuple[int, list[Fraction]]] = []
    for given in rows:
        row = list(given)
        for pivot, other in basis:
            row = [a - row[pivot] * b for a, b in zip(row, other, strict=True)]
        lead = next((k for k, number in enumerate(row) if number != 0), None)
        if lead is None:
            continue
        row = [number / row[lead] for number in row]
        basis = [
            (pivot, [a - other[lead] * b for a, b in zip(other, row, strict=True)])
            for pivot, other in basis
        ]
        basis.append((lead, row))
    return basis


def _rank(corners: Sequence[Point]) -> int:
    return len(_echelon([[Fraction(number) for number in point] for point in corners]))


def _round(points: list[tuple[Fraction, ...]]) -> tuple[tuple[Fraction, ...], ...]:
    """The corners of a convex polygon in order: along the lower side, back along the upper."""
    points = sorted(points)
    (x0, y0), (x1, y1) = points[0], points[-1]
    lower: list[tuple[Fraction, ...]] = []
    upper: list[tuple[Fraction, ...]] = []
    for x, y in points[1:-1]:
        under = (x1 - x0) * (y - y0) < (x - x0) * (y1 - y0)
        (lower if under else upper).append((x, y))
    return (points[0], *lower, points[-1], *reversed(upper))
