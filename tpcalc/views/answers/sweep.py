"""What the answers of a grid of settings say, cell by cell and as small multiples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tpcalc.results import Exponent, Sweep
from tpcalc.results.data import grouped
from tpcalc.results.sweep import PROBLEM, QUANTITY, SHOWN
from tpcalc.views.answers.phases import INKS
from tpcalc.views.numbers import Measure, count, counted, measured, plain, with_power
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.plots import AREA, colour, framed
from tpcalc.views.tables import Cell, Table, number, texts
from tpcalc.views.terminal import COLUMNS
from tpcalc.views.traces import spread_out
from tpcalc.views.view import Judgement, Part, View, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Records = list[dict[str, Any]]
_PANELS = 12


@view.register
def _(found: Sweep) -> View:
    failed = [record for record in found.rows if record[PROBLEM]]
    records = [record for record in found.rows if not record[PROBLEM]]
    said = Judgement("info", f"{found.question} of {counted(found.cells, 'cell')}")
    if failed:
        said = Judgement("warn", f"{said.headline}, {count(len(failed))} without an answer")
    words = Counter(record["verdict"] for record in records if "verdict" in record)
    summary = ", ".join(f"{word}: {count(many)}" for word, many in words.most_common())
    panels = list((_verdicts if words else _curves)(found, records)) if records else []
    note = f"{min(len(panels), _PANELS)} of {counted(len(panels), 'panel')} are drawn."
    figure = Figure("Answers over the grid", note, tuple(panels[:_PANELS])) if panels else None
    part = Part("cells", "Cells", "", tuple(_answers(found, records)), figure)
    why = Counter(record[PROBLEM] for record in failed)
    notes = (*(f"{counted(many, 'cell')}: {text}" for text, many in why.items()), *found.notes)
    title = f"Sweep: {found.question}"
    return View(title, said, summary, (part,), notes, found.provenance)


def _answers(found: Sweep, records: Records) -> Iterator[Table]:
    """A row for each combination of outer axes and each quantity; inner values lie across."""
    *outer, inner = found.axes
    across = {record[inner]: f"{inner} = {record[inner]}" for record in records}
    for keys, heads in ((outer, across), (found.axes, {None: _shown(found)} if records else {})):
        names, rows = [*keys, *_quantity(records)], []
        for own, cells in _grouped(records, names).items():
            by = {cell[inner] if keys is outer else None: _text(found, cell) for cell in cells}
            rows.append((*map(_said, own), *(by.get(value, "") for value in heads)))
        lines = zip([*names, *heads.values()], *rows, strict=True)
        longest = (max(map(len, column)) for column in lines)
        if sum(longest) + 3 * len(names) + 3 * len(heads) < COLUMNS or keys is not outer:
            break
    if rows:
        kind = Cell if "verdict" in found.rows[0] else number
        yield Table.of("Answers", (*texts(*names), *map(kind, heads.values())), rows)


def _text(found: Sweep, record: dict[str, Any]) -> str:
    value, error = record[_shown(found)], record.get("error")
    if not isinstance(value, float) or error is None:
        return plain(value, 4) if isinstance(value, float) else _said(value)
    text = measured(Measure(value, error, record["method"], record.get("std")))
    return text if text == "0" else with_power(text, Exponent.of(record.get("power") or "0"))


def _verdicts(found: Sweep, records: Records) -> Iterator[Panel]:
    """A square of the colour of its verdict for each cell, over the last two axes."""
    *outer, up, across = ("", *found.axes) if len(found.axes) == 1 else found.axes
    words = dict.fromkeys(record["verdict"] for record in records)
    legend = tuple(Series((), (), (), INKS.get(word, "ink"), "area", word) for word in words)
    for cells in _grouped(records, outer).values():
        title = ", ".join(filter(None, (_place(cells[0], outer), up and f"{up} upwards")))
        text = "; ".join(f"{_place(cell, found.axes)}: {cell['verdict']}" for cell in cells)
        panel = Panel(title or "Verdict", text, across, legend)
        fill = partial(_squares, cells=cells, across=across, up=up)
        yield replace(panel, paint=framed(panel, fill))


def _squares(axes: Axes, cells: Records, across: str, up: str) -> None:
    x, y = ([str(cell.get(key, "")) for cell in cells] for key in (across, up))
    inks = [colour(INKS.get(cell["verdict"], "ink")) for cell in cells]
    size = 120 / max(len(set(x)), len(set(y)))
    axes.scatter(x, y, s=size**2, c=inks, marker="s", alpha=2 * AREA)
    axes.margins(0.3)


def _curves(found: Sweep, records: Records) -> Iterator[Panel]:
    """Numbers against what has most of them, a line for each value of the next axis."""
    known = [record for record in records if isinstance(record[_shown(found)], float)]
    names = _quantity(known)
    ticks = {
        key: sorted({one[key] for one in known if type(one[key]) in (int, float)})
        for key in (*found.axes, *names)
    }
    x = max(ticks, key=lambda key: len(ticks[key]))
    inner, *outer = [axis for axis in found.axes if axis != x] or [PROBLEM]
    if len(ticks[x]) < 2:
        return
    known = [record for record in known if record[x] in ticks[x]]
    log_x = ticks[x][0] > 0 and ticks[x][-1] >= 100 * ticks[x][0]
    for name, own in _grouped(known, [key for key in names if key != x]).items():
        if len({record[_shown(found)] for record in own}) > 1:  # it depends on the settings
            for cells in _grouped(own, outer).values():
                series = _lines(found, cells, x, inner)
                title = ", ".join(filter(None, (*map(_said, name), _place(cells[0], outer))))
                yield Panel.of(title, x, series, log_x=log_x, numbers=True)


def _lines(found: Sweep, cells: Records, x: str, inner: str) -> Iterator[Series]:
    groups = spread_out(_grouped(cells, [inner]).values(), COLOURS)
    for index, own in enumerate(groups):
        points = [(one[x], one[_shown(found)], one.get("error") or 0.0) for one in own]
        for shape in ("line", "dots"):
            yield Series.of(points, index, shape, _place(own[0], [inner]))


def _quantity(records: Records) -> list[str]:
    """What tells the answers of one cell apart."""
    return [key for key in QUANTITY if len({record.get(key) for record in records}) > 1]


def _shown(found: Sweep) -> str:
    return next((name for name in SHOWN if name in found.rows[0]), PROBLEM)


def _grouped(records: Records, keys: Sequence[str]) -> dict[tuple[Any, ...], Records]:
    return grouped(records, lambda record: tuple(record[key] for key in keys))


def _place(record: dict[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} = {record[key]}" for key in keys)


def _said(value: Any) -> str:
    return "" if value is None else str(value)
