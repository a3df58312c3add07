"""Small HTML tables for notebooks: what ``_repr_html_`` of a result shows."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterable
from typing import Any

from tpcalc.results import (
    Comparison,
    Contrast,
    FiniteTable,
    Kernel,
    LimitTable,
    Nonlinearity,
    OrderTable,
    PhaseDiagram,
    Sheet,
    Sheets,
    Signal,
    Solution,
    Theorems,
    Verdict,
)
from tpcalc.views.kernel import kernel_lines, kernel_summary, kernel_tables
from tpcalc.views.kernel_plot import kernel_svgs
from tpcalc.views.nonlinearity import (
    ends_of,
    judge_nonlinearity,
    nonlinearity_summary,
    nonlinearity_tables,
)
from tpcalc.views.numbers import ERRORS, typeset
from tpcalc.views.orders import order_lines, order_tables, region_lines, solution_tables
from tpcalc.views.phase_plot import drawable, phase_svg
from tpcalc.views.ranges import readable
from tpcalc.views.regimes import check_tables, judged, phase_lead, phase_tables
from tpcalc.views.sheet import judge_sheets, sheet_summary, sheet_tables
from tpcalc.views.signal import judge_signal, signal_sections, signal_summary, signal_tables
from tpcalc.views.tables import (
    Cell,
    Table,
    alone_tables,
    bounded,
    comparison_table,
    exploded_line,
    finite_table,
    slope_tables,
    unfitted,
)
from tpcalc.views.theorems import theorem_lead, theorem_tables
from tpcalc.views.traces import gather
from tpcalc.views.verdict import Verdict as Judgement
from tpcalc.views.versus import versus_lead, versus_tables

_ROWS = 40
_ENDS = 19  # of the layers of a deep network
# A notebook brings its own colours; these two can be read on white and on black.
_TONES = {"": "", "warn": "color:#b8710a;font-weight:600", "bad": "color:#e0483e;font-weight:700"}


def limit_html(table: LimitTable) -> str:
    """Limits as HTML tables.

    Example:
        >>> from tpcalc.results import Estimate, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.0, 1e-4, Method.PARTICLES))
        >>> "0 ± 1×10<sup>−4</sup>" in limit_html(LimitTable((row,), (), Provenance("0", "ab")))
        True
    """
    errors = (ERRORS,) if bounded(gather(table, None, None)) else ()
    return _shown(exploded_line(table.exploded), readable(table), errors)


def finite_html(table: FiniteTable) -> str:
    """Averages at finite widths as an HTML table."""
    return _shown((), (finite_table(table),), table.notes)


def comparison_html(comparison: Comparison, limit: LimitTable | None = None) -> str:
    """A comparison as HTML tables: z-scores, then slopes."""
    tables = [comparison_table(comparison.rows, "Limit and finite networks", limit)]
    tables += [*slope_tables(comparison.slopes), *alone_tables(comparison)]
    return _shown(exploded_line(comparison.exploded), tables, unfitted(comparison.slopes))


def orders_html(table: OrderTable) -> str:
    """Orders as HTML tables, with the region where they hold."""
    return _shown((), order_tables(table), order_lines(table))


def check_html(found: Verdict) -> str:
    """A verdict: its headline, what decides, the tables."""
    said, notes = judged(found), (*region_lines(found.region, ()), *found.notes)
    return _headline(said) + _shown(said.reasons, check_tables(found), notes)


def theorems_html(found: Theorems) -> str:
    """What theorems say of a network: the answers, and the statements beside what is derived."""
    return _shown((theorem_lead(found),), theorem_tables(found))


def versus_html(found: Contrast) -> str:
    """Two parameterizations side by side."""
    return _shown((versus_lead(found),), versus_tables(found))


def solution_html(solution: Solution) -> str:
    """Learning-rate exponents as HTML tables."""
    lines = region_lines(solution.region, solution.point)
    return _shown((), solution_tables(solution), lines)


def phases_html(diagram: PhaseDiagram) -> str:
    """A phase diagram: the picture where there are two symbols, then the cells."""
    picture = ""
    if drawable(diagram):
        picture = f"<p>{_image(phase_svg(diagram), phase_lead(diagram))}</p>"
    return picture + _shown((phase_lead(diagram),), phase_tables(diagram))


def kernel_html(kernel: Kernel) -> str:
    """Kernels: how sure they are, the spectrum and the maps, the tables."""
    pictures = "".join(_image(svg, words) for svg, words in kernel_svgs(kernel))
    lines = (kernel_summary(kernel), *kernel_lines(kernel))
    tables = _shown((), kernel_tables(kernel), kernel.notes)
    return f"{_lines(lines)}<p>{pictures}</p>{tables}"


def signal_html(found: Signal) -> str:
    """Signals in a deep network: the phase, what it means for the depth, the tables."""
    leads = tuple(part.lead for part in signal_sections(found) if part.lead)
    notes = (*leads, *found.notes)
    return _told(judge_signal(found), signal_summary(found), signal_tables(found), notes)


def sheet_html(found: Sheet | Sheets) -> str:
    """Activation sheets, side by side."""
    sheets = Sheets((found,)) if isinstance(found, Sheet) else found
    return _told(judge_sheets(sheets), sheet_summary(sheets), sheet_tables(sheets), ())


def nonlinearity_html(found: Nonlinearity) -> str:
    """The nonlinearity coefficient of a network, layer by layer."""
    tables = tuple(ends_of(table, _ENDS) for table in nonlinearity_tables(found))
    return _told(judge_nonlinearity(found), nonlinearity_summary(found), tables, found.notes)


def _told(said: Judgement, summary: str, tables: tuple[Table, ...], notes: tuple[str, ...]) -> str:
    return _headline(said) + _shown((summary, *said.reasons), tables, notes)


def _headline(said: Judgement) -> str:
    return f"<p><strong>{html.escape(said.headline)}</strong></p>"


def _shown(above: tuple[str, ...], tables: Iterable[Table], below: tuple[str, ...] = ()) -> str:
    """Tables with lines above and below them."""
    return _lines(above) + "".join(map(_html, tables)) + _lines(below)


_SHOWN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (LimitTable, limit_html),
    (FiniteTable, finite_html),
    (Comparison, comparison_html),
    (OrderTable, orders_html),
    (Verdict, check_html),
    (Solution, solution_html),
    (Theorems, theorems_html),
    (Contrast, versus_html),
    (PhaseDiagram, phases_html),
    (Kernel, kernel_html),
    (Signal, signal_html),
    (Sheet, sheet_html),
    (Sheets, sheet_html),
    (Nonlinearity, nonlinearity_html),
)


def notebook_html(result: Any) -> str:
    """What a notebook shows for a result."""
    table = getattr(result, "table", result)
    return next(show(table) for kind, show in _SHOWN if isinstance(table, kind))


def _image(svg: str, words: str) -> str:
    """An image of its own: a notebook has no style sheet of ours."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<img alt="{html.escape(words)}" src="data:image/svg+xml;base64,{data}">'


def _lines(lines: tuple[str, ...]) -> str:
    return "".join(f"<p>{typeset(html.escape(line))}</p>" for line in lines)


def _html(table: Table) -> str:
    head = "".join(_cell("th", cell) for cell in table.head)
    body = "".join(
        f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>" for row in table.rows[:_ROWS]
    )
    left = len(table.rows) - _ROWS
    after = [f"{left} more rows."] if left > 0 else []
    after += [table.note] if table.note else []
    note = f"<p>{html.escape(' '.join(after))}</p>" if after else ""
    return (
        f'<div style="overflow-x:auto"><table><caption style="text-align:left">'
        f"{html.escape(table.caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def _cell(tag: str, cell: Cell) -> str:
    text = html.escape(cell.text)
    if cell.kind == "number":
        text = typeset(text)
    elif cell.kind == "name" and text:
        text = f"<code>{text}</code>"
    side = "right" if cell.kind == "number" else "left"
    style = ";".join(part for part in (f"text-align:{side}", _TONES[cell.tone]) if part)
    return f'<{tag} style="{style}">{text}</{tag}>'
