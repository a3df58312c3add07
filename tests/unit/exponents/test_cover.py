"""Phase diagrams that are known by hand, the shape of their cells, and what is refused."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest
from properties.test_cover import area

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber, Region
from tpcalc.exponents.cover import Cell, cover
from tpcalc.exponents.polytope import Polytope

A, C, P = Ex.symbol("a"), Ex.symbol("c"), Ex.symbol("p")
HALF, THREE_QUARTERS = Fraction(1, 2), Fraction(3, 4)
SQUARE = {"a": (Fraction(0), Fraction(2)), "c": (Fraction(-1), Fraction(1))}
Point = Mapping[str, Fraction]


def corners(*points: tuple[int | Fraction, int | Fraction]) -> set[tuple[Fraction, ...]]:
    return {tuple(Fraction(x) for x in point) for point in points}


def asking(verdict: Callable[[Chamber], str]) -> Callable[[Point], tuple[Region, str]]:
    def run(point: Point) -> tuple[Region, str]:
        chamber = Chamber(point)
        answer = verdict(chamber)
        return chamber.region, answer

    return run


def learning(chamber: Chamber) -> str:
    """Unstable beyond two walls, trivial inside, kernel on one wall, features at a point of it."""
    if chamber.sign(A - HALF) < 0 or (stable := chamber.sign(2 * A + C - 1)) < 0:
        return "unstable"
    if stable > 0:
        return "trivial"
    return "features" if chamber.sign(A - THREE_QUARTERS) == 0 else "kernel"


def at(cells: tuple[Cell[str], ...], a: Fraction | int, c: Fraction | int) -> Cell[str]:
    (cell,) = [k for k in cells if k.contains({"a": Fraction(a), "c": Fraction(c)})]
    return cell


def test_what_holds_on_a_wall_and_at_a_point_only() -> None:
    cells = cover(asking(learning), SQUARE)
    inner = Counter((k.dimension, k.answer) for k in cells if k.inner)
    assert inner == {
        (2, "unstable"): 2,
        (2, "trivial"): 1,
        (1, "kernel"): 2,
        (1, "unstable"): 1,
        (1, "trivial"): 1,
        (0, "features"): 1,
        (0, "kernel"): 1,  # where the wall a = 1/2 meets the other
    }
    wall = at(cells, Fraction(5, 8), -Fraction(1, 4))
    assert (wall.answer, wall.dimension) == ("kernel", 1)
    assert set(wall.corners) == corners((HALF, 0), (THREE_QUARTERS, -HALF))
    feature = at(cells, THREE_QUARTERS, -HALF)
    assert (feature.answer, feature.dimension) == ("features", 0)
    assert feature.corners == ((THREE_QUARTERS, -HALF),)
    assert at(cells, HALF, 0).answer == at(cells, 1, -1).answer == "kernel"
    assert at(cells, HALF, HALF).answer == "trivial"
    assert at(cells, HALF, -HALF).answer == "unstable"
    assert at(cells, 0, 0).dimension == 1  # an edge of the box has its own cell


def test_a_cell_says_where_it_is() -> None:
    cells = cover(asking(learning), SQUARE)
    wall = at(cells, Fraction(5, 8), -Fraction(1, 4))
    assert wall.region.lines == ("-1 + 2*a + c = 0", "-1/2 + a > 0", "3/4 - a > 0")
    assert set(wall.conditions.lines) == set(wall.region.lines)
    unstable = at(cells, Fraction(1, 4), 0)
    assert unstable.region.lines == ("1/2 - a > 0",)
    assert set(unstable.conditions.lines) == {
        "1/2 - a > 0",
        "a > 0",
        "1 + c > 0",
        "1 - c > 0",
    }
    trivial = at(cells, Fraction(3, 2), 0)
    assert set(trivial.corners) == corners((HALF, 0), (1, -1), (2, -1), (2, 1), (HALF, 1))
    for cell in cells:
        assert cell.contains(cell.sample)
        assert cell.region.contains(cell.sample)
        assert len(cell.corners) == 1 if cell.dimension == 0 else len(cell.corners) >= 2


def test_an_edge_faces_several_regions() -> None:
    def tee(chamber: Chamber) -> str:
        if chamber.sign(A - 1) <= 0:
            return "left"
        return "up" if chamber.sign(C) > 0 else "down"

    cells = cover(asking(tee), SQUARE)
    assert Counter(k.answer for k in cells if k.dimension == 2) == {"left": 1, "up": 1, "down": 1}
    assert at(cells, 1, 0).answer == "left"
    assert at(cells, Fraction(3, 2), 0).answer == "down"


def test_no_question_leaves_the_box_whole() -> None:
    cells = cover(asking(lambda chamber: "same"), SQUARE)
    assert Counter(k.dimension for k in cells) == {2: 1, 1: 4, 0: 4}
    assert [k.inner for k in cells] == [True] + [False] * 8


def test_a_region_is_run_once() -> None:
    seen: list[Point] = []

    def run(point: Point) -> tuple[Region, str]:
        seen.append(point)
        return asking(learning)(point)

    cells = cover(run, SQUARE)
    assert len(seen) == len({k.region for k in cells})
    assert len(cells) > len(seen)  # the edges of the box are in regions known from inside


def test_regions_that_overlap_share_the_box() -> None:
    """A run that first tries a short way answers the same on both, and its regions overlap."""
    regions: list[Region] = []

    def run(point: Point) -> tuple[Region, str]:
        chamber = Chamber(point)
        if chamber.sign(A + C - 1) <= 0:
            chamber = Chamber(point)  # the long way does not ask this
            chamber.sign(A - C)
        answer = "up" if chamber.sign(C) > 0 else "down"
        regions.append(chamber.region)
        return chamber.region, answer

    cells = cover(run, SQUARE)
    assert len(regions) == len(set(regions))
    assert sum(area(k) for k in cells if k.dimension == 2) == 4
    for x, y in itertools.product(range(9), range(-4, 5)):
        assert at(cells, Fraction(x, 4), Fraction(y, 4)).answer == ("up" if y > 0 else "down")


def test_a_region_cut_by_no_line_of_the_other() -> None:
    """The half-plane c < 0 goes round a wedge whose lines cross what is left of it."""
    wedge = (A - C - THREE_QUARTERS, A + C + Fraction(1, 4))  # its tip is at (1/4, -1/2)
    regions: list[Region] = []

    def run(point: Point) -> tuple[Region, str]:
        if point["c"] < 0 and Region(wedge).contains(point):
            regions.append(Region(wedge))
        elif point["c"] < 0 and point["a"] < 0:
            regions.append(Region((-C,)))
        else:
            chamber = Chamber(point)
            chamber.sign(A)
            chamber.sign(C)
            regions.append(chamber.region)
        return regions[-1], "same"

    cells = cover(run, {"a": (-1, 2), "c": (-1, 2)})
    assert regions.index(Region(wedge)) < regions.index(Region((-C,)))
    assert sum(area(k) for k in cells if k.dimension == 2) == 9
    half = [k for k in cells if k.region == Region((-C,)) and k.dimension == 2]
    assert set(half[0].corners) == corners((-1, -1), (0, -1), (0, 0), (-1, 0))
    for x, y in itertools.product(range(-4, 9), repeat=2):
        assert at(cells, Fraction(x, 4), Fraction(y, 4)).answer == "same"


def test_one_symbol_and_four() -> None:
    line = cover(asking(lambda k: str(k.sign(A - HALF))), {"a": (0, 1)})
    assert Counter((k.dimension, k.answer) for k in line) == {
        (1, "1"): 1,
        (1, "-1"): 1,
        (0, "0"): 1,
        (0, "1"): 1,
        (0, "-1"): 1,
    }
    total = Ex.symbol("w") + Ex.symbol("x") + Ex.symbol("y") + Ex.symbol("z")
    cells = cover(asking(lambda k: str(k.sign(total - 2))), {name: (0, 1) for name in "wxyz"})
    (wall,) = [k for k in cells if k.inner and k.answer == "0"]
    assert wall.dimension == 3
    assert set(wall.corners) == {
        corner
        for corner in itertools.product((Fraction(0), Fraction(1)), repeat=4)
        if sum(corner) == 2
    }
    # One cell in every open face of the box that reaches beyond the wall.
    faces = [4 - face.count(0) for face in itertools.product((0, 1, None), repeat=4)]
    assert sum(k.answer == "1" for k in cells) == sum(most > 2 for most in faces)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({}, "at least one symbol"),
        ({name: (0, 1) for name in "vwxyz"}, "at most 4 are covered"),
        ({"a": (1, 0)}, "a from 1 to 0 is not an interval"),
        ({"a": (1, 1)}, "single number 1"),
        ({"a": (0, float("inf"))}, "must be finite"),
        ({"a": 1}, "1 is not an interval for a"),
        ({"a": (0, "x")}, "is not an interval for a"),
        ({"a": (0, A)}, "a from 0 to a is not an interval"),
        ({"a b": (0, 1)}, "cannot be called 'a b'"),
    ],
)
def test_boxes_that_are_none(box: dict[str, tuple[float, float]], message: str) -> None:
    with pytest.raises(ScaleError, match=message):
        cover(asking(lambda chamber: ""), box)


def test_a_curved_boundary_is_refused() -> None:
    box = {**SQUARE, "p": (Fraction(1), Fraction(2))}
    with pytest.raises(ScaleError, match=r"curved.*Give a number for p, as in values=\{'p': 2\}"):
        cover(asking(lambda k: str(k.sign(P**2 * A + P * A + C - 1))), box)
    with pytest.raises(ScaleError, match=r"curved.*Give a number for a \(or p\)"):
        cover(asking(lambda k: str(k.sign(P * A - 1))), box)


def test_a_foreign_symbol_is_refused() -> None:
    def run(point: Point) -> tuple[Region, str]:
        return Region((A, P)), ""

    with pytest.raises(ScaleError, match=r"holds p, of which the box says nothing"):
        cover(run, SQUARE)


def test_a_region_without_its_point_is_refused() -> None:
    with pytest.raises(ScaleError, match="does not contain this point"):
        cover(lambda point: (Region((A - 5,)), ""), SQUARE)
    with pytest.raises(ScaleError, match="does not contain this point"):
        cover(lambda point: (Region((Ex.number(-1),)), ""), SQUARE)


def test_the_number_of_runs_is_limited() -> None:
    def run(point: Point) -> tuple[Region, str]:
        """Asks how far away its own point is: regions without end."""
        chamber = Chamber(point)
        chamber.sign(A - point["a"] / 2)
        return chamber.region, ""

    with pytest.raises(ScaleError, match=r"not complete after 40 runs.*most=80"):
        cover(run, SQUARE, most=40)


def test_a_diagram_of_many_runs_takes_little_time() -> None:
    lines = [k * A + (3 - k) * C - Fraction(k * k, 5) for k in range(-3, 6)]
    runs: list[float] = []

    def run(point: Point) -> tuple[Region, str]:
        start = time.perf_counter()
        chamber = Chamber(point)
        answer = str([chamber.sign(line) for line in lines])
        runs.append(time.perf_counter() - start)
        return chamber.region, answer

    start = time.perf_counter()
    cover(run, SQUARE)
    assert len(runs) > 60
    assert time.perf_counter() - start - sum(runs) < 2


def test_a_cube_is_cut_exactly() -> None:
    cube = Polytope.box([(Fraction(0), Fraction(1))] * 3)
    hexagon = cube.part((-3, 2, 2, 2), 0)
    assert hexagon is not None and hexagon.dimension == 2
    assert set(hexagon.points) == set(itertools.permutations((Fraction(0), HALF, Fraction(1))))
    assert len(hexagon.facets) == 6
    corner = cube.part((-1, 2, 2, 2), -1)
    assert corner is not None and len(corner.points) == 4 and len(corner.facets) == 4
    assert sum(corner.inside()) < HALF and min(corner.inside()) > 0
    assert cube.part((-3, 1, 1, 1), 1) is None  # it is 0 in a corner only
    assert cube.part((-3, 1, 1, 1), 0) is None


def test_points_inside_avoid_halves_and_quarters() -> None:
    """Conditions meet there; boxes have more corners than their dimension takes, others not."""
    for size in (1, 2, 3):
        box = Polytope.box([(Fraction(0), Fraction(1))] * size)
        simplex = box.part((-1, *[1] * size), -1) or box
        for shape in (box, simplex):
            point = shape.inside()
            assert all(0 < x < 1 and x.denominator % 2 for x in point), (shape.corners, point)
