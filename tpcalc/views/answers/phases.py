"""Verdicts over a phase diagram as sentences, tables and a picture.

Which pieces are drawn is decided in rational arithmetic: a wall or a point is left out where
everything around it has its own verdict, so that the lines of the picture are those of the phases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tpcalc.doors.numbers import count
from tpcalc.errors import StudyError
from tpcalc.results import PhaseCell, PhaseDiagram
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.plots import colour, picture
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


Corner = tuple[Fraction, Fraction]
VERDICTS = ("feature-learning", "kernel", "trivial", "unstable", "undecided")
"""In the order in which tables and legends list them."""

INKS = {
    "feature-learning": "good",
    "kernel": "limit",
    "trivial": "muted",
    "identity": "muted",
    "stationary": "good",
    "unstable": "bad",
    "undecided": "warn",
}
_SIZE = (460.0, 380.0)
_LEARNING = ("feature-learning", "kernel")
_STEPS = tuple(map(Fraction, ("1/8", "1/4", "1/2", "1")))


def by_verdict(diagram: PhaseDiagram) -> tuple[tuple[str, tuple[PhaseCell, ...]], ...]:
    """The cells of each verdict, largest dimension first."""
    names = sorted(
        {cell.verdict for cell in diagram.cells},
        key=lambda word: (VERDICTS.index(word) if word in VERDICTS else len(VERDICTS), word),
    )
    cells = sorted(diagram.cells, key=lambda cell: -cell.dimension)
    return tuple((word, tuple(c for c in cells if c.verdict == word)) for word in names)


def drawable(diagram: PhaseDiagram) -> bool:
    """Whether it has two symbols, and so a picture."""
    return len(diagram.symbols) == 2


def phase_figure(diagram: PhaseDiagram, words: str) -> Figure | None:
    """The figure of a page that the picture belongs to; None if there is no picture."""
    if not drawable(diagram):
        return None
    title = f"{diagram.symbols[1]} against {diagram.symbols[0]}"
    note = "Areas, walls and points have the colour of their own verdict."
    names, paint = _legend(diagram), _painted(diagram)
    panel = Panel(title, words, diagram.symbols[0], names, size=_SIZE, paint=paint)
    return Figure("Verdicts over the box", note, (panel,))


def _legend(diagram: PhaseDiagram) -> tuple[Series, ...]:
    """Each verdict with the sign of the largest piece that has it."""
    shapes = {2: "area", 1: "line", 0: "point"}
    return tuple(
        Series((), (), (), INKS.get(word, "ink"), shapes[min(cells[0].dimension, 2)], word)
        for word, cells in by_verdict(diagram)
    )


def _painted(diagram: PhaseDiagram) -> Callable[[Canvas], None]:
    width, height = _SIZE
    left, bottom = 58.0, 44.0
    room = left / width, bottom / height, (width - left - 16) / width, 1 - (bottom + 12) / height
    return lambda figure: _fill(figure.add_axes(room, facecolor="none"), diagram)


def _fill(axes: Axes, diagram: PhaseDiagram) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (low_x, high_x), (low_y, high_y) = box_of(diagram)
    for verdict, cells in by_verdict(diagram):
        areas = [cell.vertices for cell in cells if cell.dimension == 2]
        if areas:
            # One path for all of a verdict: no seam shows between neighbours.
            alpha = 0.55 if verdict in _LEARNING else 0.28
            path = Path.make_compound_path(*map(_outline, areas))
            axes.add_patch(PathPatch(path, facecolor=_ink(verdict), alpha=alpha, linewidth=0))
    for piece in _borders(diagram.cells):
        x, y = ([float(corner[k]) for corner in piece.vertices] for k in range(2))
        if piece.dimension == 1:
            thick = 3.5 if piece.verdict in _LEARNING else 1.4
            axes.plot(x, y, color=_ink(piece.verdict), linewidth=thick, solid_capstyle="butt")
        else:
            axes.plot(
                x,
                y,
                color=_ink(piece.verdict),
                marker="o",
                linestyle="none",
                markersize=8 if piece.verdict in _LEARNING else 4,
                markeredgewidth=1.2,
                markeredgecolor=colour("page"),
                zorder=4,
                clip_on=False,
            )
    axes.set_xlim(float(low_x), float(high_x))
    axes.set_ylim(float(low_y), float(high_y))
    axes.set_xticks(*_ticks(low_x, high_x))
    axes.set_yticks(*_ticks(low_y, high_y))
    axes.set_xlabel(_plain(diagram.symbols[0]))
    axes.set_ylabel(_plain(diagram.symbols[1]))


def box_of(diagram: PhaseDiagram) -> tuple[Corner, Corner]:
    """Two opposite corners of the picture; an error says why there is none."""
    if not drawable(diagram):
        raise StudyError(
            f"a picture shows two symbols; this diagram has {len(diagram.symbols)}.",
            where="phase diagram",
            hint="Fix the others at a value, or read the list of cells.",
        )
    sides = {name: (low, high) for name, low, high in diagram.box}
    for symbol in diagram.symbols:
        if symbol not in sides or sides[symbol][0] >= sides[symbol][1]:
            raise StudyError(f"the box gives {symbol} no interval.", where="phase diagram")
    for cell in diagram.cells:
        if len(cell.vertices) < {0: 1, 1: 2}.get(cell.dimension, 3):
            raise StudyError(
                f"a cell of dimension {cell.dimension} has {len(cell.vertices)} corners.",
                where="phase diagram",
            )
    return sides[diagram.symbols[0]], sides[diagram.symbols[1]]


def _borders(pieces: Sequence[PhaseCell]) -> list[PhaseCell]:
    """Walls, then points, that differ from something around them; what learns comes on top."""
    areas = [piece for piece in pieces if piece.dimension == 2]
    walls = [piece for piece in pieces if piece.dimension == 1]
    shown = [wall for wall in walls if not _alike(wall, areas, _middle(*wall.vertices[:2]))]
    for piece in pieces:
        at = piece.vertices[0]
        if piece.dimension == 0 and not (
            _alike(piece, [*areas, *walls], at) or _inside(piece, walls, at)
        ):
            shown.append(piece)
    return sorted(shown, key=lambda piece: (-piece.dimension, piece.verdict in _LEARNING))


def _alike(piece: PhaseCell, larger: Sequence[PhaseCell], at: Corner) -> bool:
    around = {other.verdict for other in larger if _borders_on(other, at)}
    return around == {piece.verdict}


def _inside(piece: PhaseCell, walls: Sequence[PhaseCell], at: Corner) -> bool:
    """Whether a point is where two walls go on of which all is said that is said of it."""
    near = [wall for wall in walls if _borders_on(wall, at) and wall.verdict == piece.verdict]
    return len(near) == 2 and all(wall.fact == piece.fact for wall in near)


def _borders_on(piece: PhaseCell, at: Corner) -> bool:
    """Whether a point lies on the closed segment, or on the border of the polygon."""
    corners = piece.vertices
    sides = [(corners[0], corners[1])]
    if piece.dimension == 2:
        sides = [(corners[k - 1], corners[k]) for k in range(len(corners))]
    return any(_between(a, b, at) for a, b in sides)


def _between(a: Corner, b: Corner, at: Corner) -> bool:
    along, to = (b[0] - a[0], b[1] - a[1]), (at[0] - a[0], at[1] - a[1])
    if along[0] * to[1] != along[1] * to[0]:
        return False
    return 0 <= along[0] * to[0] + along[1] * to[1] <= along[0] ** 2 + along[1] ** 2


def _middle(one: Corner, two: Corner) -> Corner:
    return (one[0] + two[0]) / 2, (one[1] + two[1]) / 2


def _outline(corners: Sequence[Corner]) -> Any:
    from matplotlib.path import Path

    points = [(float(x), float(y)) for x, y in corners]
    return Path([*points, points[0]], closed=True)


def _ticks(low: Fraction, high: Fraction) -> tuple[list[float], list[str]]:
    """Multiples of a simple fraction, written as fractions: exponents are halves and quarters."""
    gap = (high - low) / 7
    step = next((found for found in _STEPS if found >= gap), _STEPS[-1])
    if not _STEPS[0] / 2 <= gap <= _STEPS[-1]:
        tens = Fraction(10) ** math.floor(math.log10(gap))
        step = next(k * tens for k in (1, 2, 5, 10) if k * tens >= gap)
    first, last = -(-low // step), high // step
    found = [step * k for k in range(int(first), int(last) + 1)]
    return [float(tick) for tick in found], [str(tick).replace("-", "−") for tick in found]


def _ink(verdict: str) -> str:
    return colour(INKS.get(verdict, "ink"))


def _plain(symbol: str) -> str:
    """A name that matplotlib reads as it is; a dollar sign would begin a formula."""
    return symbol.replace("$", r"\$")


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
    head = ("Verdict", "Kind", "Where", "For example", "What decides")
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
    tables, figure = phase_tables(diagram), phase_figure(diagram, lead)
    part = Part("phases", "Phase diagram", "", tables, figure)
    return View.of(diagram, "Phase diagram", part, said=said, summary=lead)
