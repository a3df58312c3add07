"""Random diagrams of a hidden function: complete, disjoint, and right on walls and at corners.

The function asks a chamber for the signs of some hidden forms and stops early, after a path that
depends on what it saw, so different points record different conditions and a facet of one region
may face several others.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber, Region
from tpcalc.exponents.cover import Cell, cover

Point = tuple[Fraction, ...]
Path = tuple[int, ...]
SIDE = (Fraction(-1), Fraction(1))


@dataclass(frozen=True)
class Hidden:
    """Affine forms in the order in which they are asked for, and where to stop."""

    names: str
    forms: tuple[tuple[Fraction, ...], ...]
    stops: int
    detour: bool

    def value(self, k: int, point: Point) -> Fraction:
        first, *slopes = self.forms[k]
        return first + sum((a * x for a, x in zip(slopes, point, strict=True)), Fraction(0))

    def exponent(self, k: int) -> Ex:
        first, *slopes = self.forms[k]
        terms = (a * Ex.symbol(name) for a, name in zip(slopes, self.names, strict=True))
        return sum(terms, Ex.number(first))

    def stop(self, path: Path) -> bool:
        return random.Random(f"{self.stops} {path}").random() < 0.25

    def truth(self, point: Point) -> Path:
        path: Path = ()
        for k in range(len(self.forms)):
            value = self.value(k, point)
            path = (*path, (value > 0) - (value < 0))
            if self.stop(path):
                break
        return path

    def run(self, point: Mapping[str, Fraction]) -> tuple[Region, Path]:
        """The same answer by way of a chamber; a detour asks for more, so regions overlap."""
        chamber = Chamber(point)
        if self.detour and chamber.sign(self.exponent(len(self.forms) - 1)) <= 0:
            chamber = Chamber(point)
            chamber.sign(self.exponent(len(self.forms) - 2))
        path: Path = ()
        for k in range(len(self.forms)):
            path = (*path, chamber.sign(self.exponent(k)))
            if self.stop(path):
                break
        return chamber.region, path

    @property
    def box(self) -> dict[str, tuple[Fraction, Fraction]]:
        return dict.fromkeys(self.names, SIDE)


@st.composite
def hidden(draw: st.DrawFn, names: str, most: int) -> Hidden:
    whole = st.integers(-2, 2).map(Fraction)
    slopes = st.tuples(*(whole for _ in names)).filter(any)
    firsts = st.integers(-4, 4).map(lambda k: Fraction(k, 2))
    form = st.tuples(firsts, slopes).map(lambda pair: (pair[0], *pair[1]))
    forms = draw(st.lists(form, min_size=2, max_size=most))
    return Hidden(names, tuple(forms), draw(st.integers(0, 1000)), draw(st.booleans()))


def the_cell(cells: tuple[Cell[Path], ...], names: str, point: Point) -> Cell[Path]:
    (cell,) = [k for k in cells if k.contains(dict(zip(names, point, strict=True)))]
    return cell


def area(cell: Cell[Path]) -> Fraction:
    points = cell.corners
    pairs = zip(points, (*points[1:], points[0]), strict=True)
    return sum(((a[0] * b[1] - a[1] * b[0]) for a, b in pairs), Fraction(0)) / 2


def crossing(f: tuple[Fraction, ...], g: tuple[Fraction, ...]) -> Point | None:
    size = f[1] * g[2] - f[2] * g[1]
    if size == 0:
        return None
    return (f[2] * g[0] - f[0] * g[2]) / size, (f[0] * g[1] - f[1] * g[0]) / size


def arrangement(case: Hidden) -> list[Point]:
    """A point of every vertex and every edge of all lines together, and many more between them."""
    one, zero = Fraction(1), Fraction(0)
    frame = [(sign, *axis) for sign in SIDE for axis in ((one, zero), (zero, one))]
    lines = [*case.forms, *frame]
    found: set[Point] = set()
    for k, line in enumerate(lines):
        others = (crossing(line, other) for i, other in enumerate(lines) if i != k)
        on = sorted({p for p in others if p is not None and max(map(abs, p)) <= 1})
        found.update(on)
        found.update(middle(p, q) for p, q in itertools.pairwise(on))
    vertices = sorted(found)
    return [*vertices, *(middle(p, q) for p, q in zip(vertices, vertices[3:], strict=False))]


def middle(p: Point, q: Point) -> Point:
    return tuple((x + y) / 2 for x, y in zip(p, q, strict=True))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(hidden("xy", 6))
def test_two_symbols(case: Hidden) -> None:
    cells = cover(case.run, case.box)
    assert sum(area(cell) for cell in cells if cell.dimension == 2) == 4
    for point in arrangement(case):
        assert the_cell(cells, "xy", point).answer == case.truth(point)
    for cell in cells:
        sample = tuple(cell.sample[name] for name in "xy")
        assert the_cell(cells, "xy", sample) is cell
        assert cell.answer == case.truth(sample)
        assert cell.inner == (max(map(abs, sample)) < 1)
        assert all(point == sample for point in cell.corners) == (cell.dimension == 0)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(hidden("xyz", 4), st.randoms(use_true_random=False))
def test_three_symbols(case: Hidden, chance: random.Random) -> None:
    cells = cover(case.run, case.box)
    corners = sorted({corner for cell in cells for corner in cell.corners})
    for _ in range(60):  # points inside, on walls and edges, and corners
        some = [chance.choice(corners) for _ in range(chance.randint(1, 4))]
        weights = [chance.randint(1, 4) for _ in some]
        columns = zip(*some, strict=True)
        point = tuple(
            sum((w * x for w, x in zip(weights, column, strict=True)), Fraction(0)) / sum(weights)
            for column in columns
        )
        assert the_cell(cells, "xyz", point).answer == case.truth(point)
    for cell in cells:
        assert cell.answer == case.truth(tuple(cell.sample[name] for name in "xyz"))
