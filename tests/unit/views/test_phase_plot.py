"""The picture of a phase diagram: right shapes, right colours, the same bytes each time."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from golden.exponents import DIAGRAM
from unit.views.rendering import drawn

from tpcalc.errors import StudyError
from tpcalc.results import PhaseCell, PhaseDiagram
from tpcalc.views.answers.phases import _ticks, phase_figure, phase_svg

SVG = "{http://www.w3.org/2000/svg}"
Shape = list[tuple[float, float]]


def shapes(svg: str, paint: str) -> list[Shape]:
    """The closed or open lines of the paths with such a style, in units of the symbols."""
    root = ElementTree.fromstring(svg)
    drawn: list[Shape] = []
    frame: Shape = []
    for path in root.iter():
        style, data = path.get("style") or "", path.get("d") or ""
        lines = [
            [(float(x), float(y)) for x, y in re.findall(r"[ML] ?(-?[\d.]+) (-?[\d.]+)", part)]
            for part in re.split(r"(?=M)", data)
            if part.strip()
        ]
        if "stroke-linecap: square" in style:  # the two axes
            frame += [point for line in lines for point in line]
        elif paint in style and path.tag.endswith("path"):
            drawn += lines
    left, right = min(x for x, _ in frame), max(x for x, _ in frame)
    top, bottom = min(y for _, y in frame), max(y for _, y in frame)
    (_, low_x, high_x), (_, low_y, high_y) = DIAGRAM.box
    wide, high = float(high_x) - float(low_x), float(high_y) - float(low_y)
    return [
        [
            (
                round(float(low_x) + wide * (x - left) / (right - left), 2),
                round(float(high_y) - high * (y - top) / (bottom - top), 2),
            )
            for x, y in line
        ]
        for line in drawn
    ]


def corners(cell: PhaseCell) -> set[tuple[float, float]]:
    return {(float(x), float(y)) for x, y in cell.vertices}


def picture() -> str:
    figure = phase_figure(DIAGRAM, "words")
    assert figure is not None
    return drawn(figure, "p")[0]


@pytest.mark.parametrize(("verdict", "name"), [("unstable", "bad"), ("trivial", "muted")])
def test_polygons_are_exact(verdict: str, name: str) -> None:
    found = shapes(picture(), f"fill: var(--{name}); opacity")
    wanted = [c for c in DIAGRAM.cells if c.verdict == verdict and c.dimension == 2]
    assert [set(shape) for shape in found] == [corners(cell) for cell in wanted]


def test_walls_that_matter_are_drawn_in_their_own_colour() -> None:
    svg = picture()
    kernel = shapes(svg, "stroke: var(--limit); stroke-width: 3.5")
    assert [set(line) for line in kernel] == [{(0.5, -1.0), (0.5, 0.0)}]
    # The trivial wall between two trivial regions is none of the picture.
    trivial = [set(line) for line in shapes(svg, "stroke: var(--muted); stroke-width: 1.4")]
    assert sorted(map(sorted, trivial)) == [[(0.5, -1.0), (1.0, -1.0)], [(0.5, 0.0), (0.5, 1.0)]]
    assert "stroke: var(--bad)" not in svg


def test_points_are_drawn() -> None:
    svg = picture()
    for name in ("good", "limit"):
        assert len(re.findall(rf"<use[^>]*fill: var\(--{name}\)", svg)) == 1


def test_a_file_stands_alone() -> None:
    svg = phase_svg(DIAGRAM)
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert "feature-learning on 1 point" in (root.get("aria-label") or "")
    words = {element.text for element in root.iter(f"{SVG}text")}
    assert {"a", "c", "feature-learning", "kernel", "trivial", "unstable", "1/2", "−1"} <= words
    assert "var(" not in svg and "#0101" not in svg and "#0202" not in svg
    assert "prefers-color-scheme: dark" in svg
    light = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg.split("</style>")[1]))
    dark = set(re.findall(r'\[style\*="(?:fill|stroke): (#[0-9a-f]{6})"\]', svg))
    assert light <= dark  # every colour has its counterpart
    outside = [u for u in re.findall(r'(?:href|src|xmlns)="([^"]+)"', svg) if u[0] != "#"]
    assert outside == ["http://www.w3.org/2000/svg"]


def test_legend_of_a_page() -> None:
    figure = phase_figure(DIAGRAM, "words")
    assert figure is not None and figure.shared
    assert {(entry.label, entry.colour, entry.shape) for entry in figure.legend} == {
        ("feature-learning", "good", "point"),
        ("kernel", "limit", "line"),
        ("trivial", "muted", "area"),
        ("unstable", "bad", "area"),
    }


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        ("0", "1", ["0", "1/4", "1/2", "3/4", "1"]),
        ("-2", "1", ["−2", "−3/2", "−1", "−1/2", "0", "1/2", "1"]),
        ("1/3", "2/3", ["7/20", "2/5", "9/20", "1/2", "11/20", "3/5", "13/20"]),
        ("0", "40", ["0", "10", "20", "30", "40"]),
        ("0", "1/50", ["0", "1/200", "1/100", "3/200", "1/50"]),
    ],
)
def test_ticks_are_fractions(low: str, high: str, labels: list[str]) -> None:
    places, words = _ticks(Fraction(low), Fraction(high))
    assert words == labels
    assert places == pytest.approx([float(Fraction(word.replace("−", "-"))) for word in labels])


def one(cell: PhaseCell, **changes: object) -> PhaseDiagram:
    return replace(DIAGRAM, cells=(cell,), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("diagram", "message"),
    [
        (replace(DIAGRAM, symbols=("a", "b", "c")), "this diagram has 3"),
        (replace(DIAGRAM, box=DIAGRAM.box[:1]), "the box gives c no interval"),
        (
            one(replace(DIAGRAM.cells[0], vertices=((Fraction(0), Fraction(0)),))),
            "dimension 2 has 1 corners",
        ),
    ],
)
def test_what_cannot_be_drawn(diagram: PhaseDiagram, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        phase_svg(diagram)


def test_all_verdicts_fit_beside_each_other() -> None:
    more = replace(DIAGRAM.cells[0], verdict="undecided")
    svg = phase_svg(replace(DIAGRAM, cells=(*DIAGRAM.cells, more)))
    root = ElementTree.fromstring(svg)
    starts = {
        text.text: float(text.get("x", "nan"))
        for text in root.iter(f"{SVG}text")
        if text.get("style", "").startswith("font-size: 11px")
    }
    assert list(starts) == ["feature-learning", "kernel", "trivial", "unstable", "undecided"]
    assert starts["feature-learning"] > 15
    assert starts["undecided"] + 7 * len("undecided") < float(root.get("width", "nan"))
