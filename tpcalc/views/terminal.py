"""Views in the terminal, as rich tables.

``rich`` is imported when a table is made, so that importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
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
    if sum(len(table.rows) for table in shown.tables) <= lines:
        whole = _printed(group(shown, lines), columns)
        if len(whole) <= lines:
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
    """A table that takes the room it is given, and cuts nothing that it shows."""

    table: Table
    most: int | None  # rows shown; all if None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        table, width = self.table, options.max_width
        rows, left = table.cut(self.most)
        shown = len(table.head)
        # A matrix is shown in as many columns as fit; of other tables each column is needed.
        if all(cell.kind == "number" for cell in table.head):
            while shown > 2 and _needed(_widths(table.head[:shown], rows)) > width:
                shown -= 1
        yield Text(table.caption, style="bold")
        yield _rich(table.head[:shown], rows, width)
        hidden = ((left, "row"), (len(table.head) - shown, "column"))
        below = [f"{many} more {what}{'s' * (many > 1)}." for many, what in hidden if many]
        yield from (Text(line) for line in (" ".join(below), table.note) if line)


def _widths(head: tuple[Cell, ...], rows: tuple[tuple[Cell, ...], ...]) -> list[int]:
    """The least width of each column: numbers stay on one line, words and titles are broken."""
    from rich.cells import cell_len

    widths = []
    for index, title in enumerate(head):
        words = title.text.split()
        for row in rows:
            words += [row[index].text] if _kept(title) else row[index].text.split()
        widths.append(max(map(cell_len, words), default=0))
    return widths


def _needed(widths: Sequence[int]) -> int:
    """Columns of a terminal that a table takes."""
    return sum(widths) + _GAP * (len(widths) - 1) + 2 * _EDGE


def _long(widths: Sequence[int], width: int) -> set[int]:
    """The columns whose longest word is more than an equal share of the room, the others' share."""
    room, rest = width - _needed([0] * len(widths)), dict(enumerate(widths))
    while rest and max(rest.values()) * len(rest) > room:
        longest = max(rest, key=lambda index: rest[index])
        room -= rest.pop(longest)
    return set(range(len(widths))) - set(rest)


def _kept(title: Cell) -> bool:
    return title.kind == "number" and title.text not in _WRAPPED


def _rich(head: tuple[Cell, ...], rows: tuple[tuple[Cell, ...], ...], width: int) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = _widths(head, rows)
    whole = _needed(widths) <= width
    titles = [cell.text for cell in head]
    if whole and _needed([max(own, len(t)) for own, t in zip(widths, titles, strict=True)]) > width:
        titles = [fill(t, max(own, 1)) for own, t in zip(widths, titles, strict=True)]
    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [max(len(row[index].text) for row in (head, *rows)) for index in range(len(head))]
    fixed = _long(widths, width) if whole and _needed(cells) > width else set()
    for index, (cell, title, own) in enumerate(zip(head, titles, widths, strict=True)):
        # Numbers stay whole while they fit; where the terminal is narrow, words give way first.
        made.add_column(
            Text(title),
            justify="right" if cell.kind == "number" else "left",
            min_width=own if whole else None,
            width=own if index in fixed else None,
            no_wrap=whole and _kept(cell),
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(_text, row[: len(head)]))
    return made


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, style=_TONES[cell.tone])
