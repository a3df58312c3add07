"""Verdicts over a phase diagram as sentences and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tpcalc.doors.numbers import count
from tpcalc.results import PhaseCell, PhaseDiagram
from tpcalc.views.answers.phase_plot import box_of, by_verdict, phase_figure
from tpcalc.views.plots import picture
from tpcalc.views.tables import Table, texts
from tpcalc.views.view import Judgement, Part, View, view


def phase_lead(diagram: PhaseDiagram) -> str:
    """A phase diagram in a sentence or two."""
    box = ", ".join(f"{low} <= {symbol} <= {high}" for symbol, low, high in diagram.box)
    parts = [
        f"{word} on {_counted(cells, len(diagram.symbols))}" for word, cells in by_verdict(diagram)
    ]
    text = f"For {box}: {'; '.join(parts) or 'no cell'}."
    runs = f" {diagram.runs} points were decided"
    if diagram.complete:
        return f"{text}{runs}; the cells cover the whole box."
    return f"{text}{runs}; the list is not exhaustive."


def _counted(cells: Sequence[PhaseCell], symbols: int) -> str:
    found = Counter(cell.dimension for cell in cells)
    parts = []
    for dimension in sorted(found, reverse=True):
        word = _kind(dimension, symbols)
        parts.append(count(found[dimension], word))
    return ", ".join(parts)


def _kind(dimension: int, symbols: int) -> str:
    if dimension == symbols:
        return "region"
    if dimension == 0:
        return "point"
    return "wall" if dimension == symbols - 1 else f"{dimension}-dimensional wall"


def phase_tables(diagram: PhaseDiagram) -> tuple[Table, ...]:
    """The cells of a phase diagram, those of one verdict together."""
    body = (
        (
            word,
            _kind(cell.dimension, len(diagram.symbols)),
            ", ".join(cell.conditions) or "everywhere",
            ", ".join(f"{symbol} = {value}" for symbol, value in cell.sample),
            cell.fact,
        )
        for word, cells in by_verdict(diagram)
        for cell in cells
    )
    head = texts("Verdict", "Kind", "Where", "For example", "What decides")
    return (Table.of("Cells", head, body),)


def phase_svg(diagram: PhaseDiagram) -> str:
    """A phase diagram as the text of an SVG file, with its legend.

    Example:
        >>> from fractions import Fraction
        >>> from tpcalc.results import PhaseCell, Provenance
        >>> zero, one = Fraction(0), Fraction(1)
        >>> point = PhaseCell(0, "kernel", ("a = 0", "c = 0"), ((zero, zero),), (), "")
        >>> box = (("a", -one, one), ("c", -one, one))
        >>> diagram = PhaseDiagram(("a", "c"), box, (point,), False, 1, Provenance("0", "ab"))
        >>> phase_svg(diagram).splitlines()[0]
        '<?xml version="1.0" encoding="utf-8"?>'
    """
    box_of(diagram)
    words = phase_lead(diagram)
    figure = phase_figure(diagram, words)
    assert figure is not None  # it has two symbols
    return picture(figure, words)


@view.register
def _(diagram: PhaseDiagram) -> View:
    lead = phase_lead(diagram)
    said = Judgement("good", "The verdict of every point of the box is known")
    if any(cell.verdict == "undecided" for cell in diagram.cells):
        said = Judgement("warn", "The verdict of some points of the box is not decided")
    if not diagram.complete:
        said = Judgement("warn", "The phase diagram is not exhaustive")
    figure = phase_figure(diagram, lead)
    part = Part("phases", "Phase diagram", "", phase_tables(diagram), figure)
    return View("Phase diagram", said, lead, (part,), diagram.notes, diagram.provenance)
