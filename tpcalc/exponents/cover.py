"""Phase diagrams: every point of a box of exponents in exactly one cell, with its answer.

A run at a point returns the region on which its answer holds. What that region leaves of the box is
cut into disjoint polyhedra, each with all of its walls as polyhedra of their own, and another run
is made inside one of them, until nothing is left. No wall, edge or corner can be missed: each is a
piece like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

from tpcalc.errors import ScaleError
from tpcalc.exponents.chamber import Region
from tpcalc.exponents.conditions import Axes, Signs, meet, signs_of, without
from tpcalc.exponents.polytope import Form, Polytope

T = TypeVar("T")

# Pieces left to look at, not runs: a guard against arrangements that no reader could take in.
_MOST_PIECES = 200_000


@dataclass(frozen=True, eq=False)
class Cell(Generic[T]):
    """A convex part of a diagram, open in its dimension, on which one answer holds.

    Example:
        >>> from tpcalc.exponents.chamber import Chamber
        >>> from tpcalc.exponents.ex import Ex
        >>> def run(point):
        ...     chamber = Chamber(point)
        ...     answer = chamber.sign(2 * Ex.symbol("a") - 1)
        ...     return chamber.region, answer
        ...
        >>> (wall,) = (cell for cell in cover(run, {"a": (0, 1)}) if cell.answer == 0)
        >>> wall.conditions.lines, wall.dimension
        (('-1/2 + a = 0',), 0)
    """

    answer: T  # what the run returned
    region: Region  # where that answer holds, in the box and outside
    conditions: Region  # the cell itself: its equations and one inequality for each of its facets
    sample: Mapping[str, Fraction]  # a point of it
    shape: Polytope = field(repr=False)  # its exact shape
    inner: bool = True  # whether it lies off the boundary of the box

    @property
    def dimension(self) -> int:
        """2 for an area, 1 for a piece of a line, 0 for a point."""
        return self.shape.dimension

    @property
    def corners(self) -> tuple[tuple[Fraction, ...], ...]:
        """The corners, coordinates in the order of the box; of an area anticlockwise."""
        return self.shape.points

    def contains(self, point: Mapping[str, Fraction]) -> bool:
        """Whether a point lies in it."""
        return self.conditions.contains(point)


Run = Callable[[Mapping[str, Fraction]], tuple[Region, T]]


def cover(
    run: Run[T],
    box: Mapping[str, tuple[Fraction | float, Fraction | float]],
    most: int = 5000,
) -> tuple[Cell[T], ...]:
    """Disjoint cells that together are a closed box, each with its answer.

    A cell is the region of a run within one open face of the box, so a wall, an edge or a corner
    with other answers than its surroundings is a cell of its own. Where the regions of two runs
    overlap (both answers then hold), the later one is cut.

    Example:
        >>> from tpcalc.exponents.chamber import Chamber
        >>> from tpcalc.exponents.ex import Ex
        >>> def run(point):
        ...     chamber = Chamber(point)
        ...     answer = chamber.sign(Ex.symbol("a") - Ex.symbol("c"))
        ...     return chamber.region, answer
        ...
        >>> cells = cover(run, {"a": (0, 1), "c": (0, 1)})
        >>> [cell.answer for cell in cells if cell.dimension == 2]
        [1, -1]
        >>> [cell.corners for cell in cells if cell.dimension == 1 and cell.answer == 0]
        [((Fraction(0, 1), Fraction(0, 1)), (Fraction(1, 1), Fraction(1, 1)))]
    """
    axes = Axes.of(box)
    diagram = _Diagram(run, axes, most)
    stacks: list[list[_Piece]] = [[] for _ in range(len(axes.names) + 1)]
    for face in diagram.faces:
        stacks[face.dimension].append(_Piece(face, 0))
    handled = 0
    while waiting := [stack for stack in stacks if stack]:
        piece = waiting[-1].pop()  # large pieces first: their regions take in most of the small
        handled += 1
        if handled > _MOST_PIECES:
            raise _too_many(f"{_MOST_PIECES} pieces of the box", len(diagram.cells))
        k = diagram.region_of(piece)
        for rest in without(piece.shape, diagram.taken[k]):
            stacks[rest.dimension].append(_Piece(rest, k + 1))
    return tuple(sorted(diagram.cells, key=lambda cell: -cell.dimension))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the box still to be covered; the first ``clear`` taken regions do not meet it."""

    shape: Polytope
    clear: int


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    """What a run returned."""

    signs: Signs
    region: Region
    answer: T


class _Diagram(Generic[T]):
    """The cells found so far, and the disjoint regions that they take up."""

    def __init__(self, run: Run[T], axes: Axes, most: int) -> None:
        self.faces = list(axes.faces())
        self.cells: list[Cell[T]] = []
        self.taken: list[Signs] = []
        self._run = run
        self._axes = axes
        self._most = most
        self._runs = 0
        self._cut: list[_Found[T]] = []  # runs whose region is not covered in full

    def region_of(self, piece: _Piece) -> int:
        """The number of a taken region that meets a piece; if there is none, one is added."""
        for k in range(piece.clear, len(self.taken)):
            if meet(piece.shape, self.taken[k]) is not None:
                return k
        for found in self._cut:
            part = meet(piece.shape, found.signs)
            if part is not None:
                self._take(found, part)
                return len(self.taken) - 1
        found = self._look(piece.shape.inside())
        part = meet(piece.shape, found.signs)
        assert part is not None  # it contains the point
        if not self._take(found, part):
            self._cut.append(found)
        return len(self.taken) - 1

    def _look(self, coordinates: Sequence[Fraction]) -> _Found[T]:
        if self._runs == self._most:
            more = f", or allow more runs (most={2 * self._most})"
            raise _too_many(f"{self._most} runs", len(self.cells), more)
        self._runs += 1
        point = self._axes.point(coordinates)
        region, answer = self._run(point)
        signs = self._axes.signs(region)
        if not region.contains(point):
            shown = ", ".join(f"{name} = {value}" for name, value in point.items())
            raise ScaleError(
                f"the run at {shown} returned a region that does not contain this point.",
                hint="A run must record the signs that it finds at its own point.",
            )
        return _Found(signs, region, answer)

    def _take(self, found: _Found[T], part: Polytope) -> bool:
        """Add the cells of a region, cut where others are; whether it was taken in full."""
        signs = dict(found.signs)
        for other in self.taken:
            if self._overlap(signs, other):
                signs = _separated(signs, other, part)
        self.taken.append(signs)
        for face in self.faces:
            shape = meet(face, signs)
            if shape is not None:
                sample = self._axes.point(shape.inside())
                conditions = self._axes.conditions(shape)
                inner = face is self.faces[0]
                self.cells.append(
                    Cell(found.answer, found.region, conditions, sample, shape, inner)
                )
        return signs == found.signs

    def _overlap(self, signs: Signs, other: Signs) -> bool:
        if any(other.get(form, sign) != sign for form, sign in signs.items()):
            return False  # two runs that part ways do so at an opposite answer
        shapes = (meet(face, signs) for face in self.faces)
        return any(shape is not None and meet(shape, other) is not None for shape in shapes)


def _separated(signs: Signs, other: Signs, part: Polytope) -> dict[Form, int]:
    """Stronger conditions that hold on a part of a region and nowhere on another region."""
    for form, sign in other.items():
        if part.part(form, sign) is None:
            instead = next(s for s in (-1, 0, 1) if part.part(form, s) is not None)
            return {**signs, form: instead}
    return signs_of(part)


def _too_many(what: str, cells: int, instead: str = "") -> ScaleError:
    return ScaleError(
        f"the diagram is not complete after {what}: {cells} cells were found.",
        hint=f"Choose a smaller box or fewer symbols{instead}.",
    )
