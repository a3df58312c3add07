"""Views in the terminal, as rich tables.

``rich`` is imported when a table is made, so that importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpcalc.views.tables import Cell, Table
from tpcalc.views.view import View

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.table import Table as RichTable
    from rich.text import Text

LINES, COLUMNS = 60, 100
"""What is printed of an answer unless all of it is asked for."""

# Numbers with a remark, which may go on a second line.
_WRAPPED = ("Limit", "Finite, mean over seeds")
_GAP, _EDGE = 3, 1  # blanks between columns and at the sides
_MOST = (30, 21, 15, 12, 9, 6, 3)  # rows of each table, tried one after the other
_MORE = "Cut to {} lines: --all prints all rows, .to_dataframe() has them."
_TONES = {"": "", "warn": "yellow", "bad": "bold red"}
_LEVELS = {
    "good": "bold green",
    "limit": "bold blue",
    "warn": "bold yellow",
    "bad": "bold red",
    "info": "bold",
}


def group(shown: View, most: int | None = None) -> Group:
    """A view for ``rich.console.Console.print``.

    Args:
        shown: The view.
        most: Rows shown of each table; all if None.

    Example:
        >>> from rich.console import Console
        >>> from tpcalc.views.view import Judgement
        >>> console = Console(width=60, color_system=None)
        >>> with console.capture() as capture:
        ...     console.print(group(View("Verdict", Judgement("good", "It learns"))))
        >>> print(capture.get().strip())
        It learns
    """
    from rich.console import Group
    from rich.text import Text

    lead = []
    if shown.said is not None:
        lead.append(Text(shown.said.headline, style=_LEVELS[shown.said.level]))
    lead += [Text(line) for line in (shown.summary, shown.text) if line]
    if shown.said is not None:
        lead += [Text(f"- {reason}") for reason in shown.said.reasons]
    parts: list[Text | _Fitted] = []
    for part in shown.parts:
        parts += [Text(part.lead)] if part.lead else []
        parts += [_Fitted(table, most) for table in part.tables]
    return Group(*lead, *parts, *(Text(note, style="dim") for note in shown.notes))


def text(shown: View, lines: int = LINES, columns: int = COLUMNS) -> str:
    """A view as plain text of at most so many lines and columns."""
    whole = _printed(group(shown, lines), columns)
    if len(whole) <= lines and all(len(table.rows) <= lines for table in shown.tables):
        return "\n".join(whole)
    for cut, most in _smaller(shown):
        whole = _printed(group(cut, most), columns)
        if len(whole) < lines:
            break
    return "\n".join([*whole[: lines - 1], _MORE.format(lines)])


def _smaller(shown: View) -> Iterator[tuple[View, int]]:
    """Less and less of a view: fewer rows of each table, then fewer tables."""
    parts = [replace(p, tables=tuple(t for t in p.tables if not t.detail)) for p in shown.parts]
    shown = replace(shown, parts=tuple(parts))
    yield from ((shown, most) for most in (LINES, *_MOST))
    while any(part.tables for part in parts):
        last = max(index for index, part in enumerate(parts) if part.tables)
        parts[last] = replace(parts[last], tables=parts[last].tables[:-1])
        yield replace(shown, parts=tuple(parts)), _MOST[-1]


def _printed(made: Group, columns: int) -> list[str]:
    from rich.console import Console

    console = Console(width=columns, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as capture:
        console.print(made)
    return [line.rstrip() for line in capture.get().splitlines()]


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A table that takes the room it is given, and cuts nothing that it shows.

    Args:
        table: The table.
        most: Rows shown; all if None.
    """

    table: Table
    most: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows, left = self.table.cut(self.most)
        shown = len(self.table.head)
        # A matrix is shown in as many columns as fit; of other tables each column is needed.
        if all(cell.kind == "number" for cell in self.table.head):
            while shown > 2 and _needed(self.table.head[:shown], rows) > options.max_width:
                shown -= 1
        whole = _needed(self.table.head[:shown], rows) <= options.max_width
        yield _rich(self.table, rows, shown, whole, left)


def _needed(head: tuple[Cell, ...], rows: tuple[tuple[Cell, ...], ...]) -> int:
    """Columns of a terminal that a table takes where its numbers stay on one line."""
    from rich.cells import cell_len

    widths = []
    for index, title in enumerate(head):
        cells = [title, *(row[index] for row in rows)]
        parts = [[cell.text] if _kept(title) else cell.text.split() or [""] for cell in cells]
        widths.append(max(cell_len(word) for words in parts for word in words))
    return sum(widths) + _GAP * (len(widths) - 1) + 2 * _EDGE


def _kept(title: Cell) -> bool:
    return title.kind == "number" and title.text not in _WRAPPED


def _rich(
    table: Table, rows: tuple[tuple[Cell, ...], ...], shown: int, whole: bool, left: int
) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    hidden = ((left, "row"), (len(table.head) - shown, "column"))
    below = [f"{many} more {what}{'s' * (many > 1)}." for many, what in hidden if many]
    words = "\n".join(part for part in (" ".join(below), table.note) if part)
    made = RichTable(
        title=Text(table.caption, style="bold"),
        title_justify="left",
        caption=Text(words) if words else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for cell in table.head[:shown]:
        # Numbers stay whole while they fit; where the terminal is narrow, words give way first.
        made.add_column(
            Text(cell.text),
            justify="right" if cell.kind == "number" else "left",
            no_wrap=whole and _kept(cell),
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(_text, row[:shown]))
    return made


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, style=_TONES[cell.tone])
