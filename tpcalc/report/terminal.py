"""Results in the terminal, as rich tables.

``rich`` is imported when a table is made, so that importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tpcalc.report.tables import (
    Cell,
    Table,
    comparison_table,
    finite_table,
    limit_tables,
    slope_table,
)
from tpcalc.results import Comparison, FiniteTable, LimitTable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["comparison_group", "finite_group", "limit_group"]

_TONES = {"": "", "warn": "yellow", "bad": "bold red"}


def limit_group(table: LimitTable) -> Group:
    """Limits for ``rich.console.Console.print``.

    Args:
        table: The limits.

    Example:
        >>> from rich.console import Console
        >>> from tpcalc.results import Estimate, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[1,0]", Estimate(0.31841, 0.0012, Method.PARTICLES))
        >>> console = Console(width=60, color_system=None)
        >>> with console.capture() as capture:
        ...     console.print(limit_group(LimitTable((row,), (), Provenance("0", "ab"))))
        >>> "f[1,0]   0.3184 ± 0.0012   particles" in capture.get()
        True
    """
    return _group(limit_tables(table), table.notes)


def finite_group(table: FiniteTable) -> Group:
    """Averages at finite widths for ``rich.console.Console.print``.

    Args:
        table: The finite networks.
    """
    return _group((finite_table(table),), table.notes)


def comparison_group(comparison: Comparison, limit: LimitTable | None = None) -> Group:
    """A comparison for ``rich.console.Console.print``; z beyond 3 is yellow, beyond 5 red.

    Args:
        comparison: The comparison.
        limit: The limits, whose methods tell a sampled zero from an exact one.
    """
    tables = [comparison_table(comparison.rows, "Limit and finite networks", limit)]
    if comparison.slopes:
        tables.append(slope_table(comparison.slopes))
    return _group(tables, comparison.notes)


def _group(tables: Iterable[Table], notes: tuple[str, ...]) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(*map(_rich, tables), *(Text(note, style="dim") for note in notes))


def _rich(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(
        title=Text(table.caption),
        title_justify="left",
        title_style="bold",
        caption=Text(table.note) if table.note else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for cell in table.head:
        right = cell.kind == "number"
        # Numbers stay whole; where the terminal is narrow, words give way first.
        made.add_column(
            Text(cell.text),
            justify="right" if right else "left",
            no_wrap=right and cell.text not in ("Limit", "Finite, mean over seeds"),
            overflow="fold",
        )
    for row in table.rows:
        made.add_row(*map(_text, row))
    return made


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, style=_TONES[cell.tone])
