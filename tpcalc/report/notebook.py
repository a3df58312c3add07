"""Small HTML tables for notebooks: what ``_repr_html_`` of a result shows."""

from __future__ import annotations

import html
from typing import Any

from tpcalc.report.numbers import typeset
from tpcalc.report.tables import (
    Cell,
    Table,
    comparison_table,
    finite_table,
    limit_tables,
    slope_table,
)
from tpcalc.results import Comparison, FiniteTable, LimitTable

__all__ = ["comparison_html", "finite_html", "limit_html", "notebook_html"]

_ROWS = 40
# A notebook brings its own colours; these two can be read on white and on black.
_TONES = {"": "", "warn": "color:#b8710a;font-weight:600", "bad": "color:#e0483e;font-weight:700"}


def limit_html(table: LimitTable) -> str:
    """Limits as HTML tables.

    Args:
        table: The limits.

    Example:
        >>> from tpcalc.results import Estimate, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.0, 1e-4, Method.PARTICLES))
        >>> "0 ± 1×10<sup>−4</sup>" in limit_html(LimitTable((row,), (), Provenance("0", "ab")))
        True
    """
    return "".join(map(_html, limit_tables(table)))


def finite_html(table: FiniteTable) -> str:
    """Averages at finite widths as an HTML table.

    Args:
        table: The finite networks.
    """
    return _html(finite_table(table))


def comparison_html(comparison: Comparison, limit: LimitTable | None = None) -> str:
    """A comparison as HTML tables: z-scores, then slopes.

    Args:
        comparison: The comparison.
        limit: The limits, whose methods tell a sampled zero from an exact one.
    """
    text = _html(comparison_table(comparison.rows, "Limit and finite networks", limit))
    return text + (_html(slope_table(comparison.slopes)) if comparison.slopes else "")


def notebook_html(result: Any) -> str:
    """What a notebook shows for a result.

    Args:
        result: What ``tp.limit``, ``tp.simulate`` or ``tp.compare`` returns.
    """
    table = getattr(result, "table", result)
    if isinstance(table, LimitTable):
        return limit_html(table)
    return finite_html(table) if isinstance(table, FiniteTable) else comparison_html(table)


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
