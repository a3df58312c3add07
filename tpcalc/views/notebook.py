"""Views as HTML for notebooks, which have no style sheet of ours."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterator

from tpcalc.views.numbers import typeset
from tpcalc.views.panels import Figure
from tpcalc.views.tables import Cell, Table, spelled
from tpcalc.views.view import View

_ROWS = 39
# A notebook brings its own colours; these can be read on white and on black.
_TONES = {"": "", "warn": "color:#b8710a;font-weight:600", "bad": "color:#e0483e;font-weight:700"}
_LEVELS = {"good": "#2f8f4e", "limit": "#3d7fe0", "warn": "#b8710a", "bad": "#e0483e", "info": ""}


def fragment(shown: View) -> str:
    """What a notebook shows: the answer in its colour, the pictures, the tables.

    Example:
        >>> from tpcalc.views.view import Judgement
        >>> fragment(View("Verdict", Judgement("info", "It learns")))
        '<p><strong>It learns</strong></p>'
    """
    return "".join(_pieces(shown))


def _pieces(shown: View) -> Iterator[str]:
    if shown.said is not None:
        colour = _LEVELS[shown.said.level]
        style = f' style="color:{colour}"' if colour else ""
        yield f"<p><strong{style}>{html.escape(shown.said.headline)}</strong></p>"
    if shown.text:
        yield f"<pre>{html.escape(shown.text)}</pre>"
    yield _lines((shown.summary, *(shown.said.reasons if shown.said else ())))
    for part in shown.parts:
        yield _lines((part.lead,))
        if part.figure is not None:
            yield _image(part.figure)
        yield from map(_html, part.tables)
    yield _lines(shown.notes)


def _image(figure: Figure) -> str:
    from tpcalc.views.plots import picture

    words = " ".join(panel.words for panel in figure.panels)
    data = b64encode(picture(figure, words).encode("utf-8")).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    return f'<p><img alt="{html.escape(words)}" style="max-width:100%" src="{source}"></p>'


def _lines(lines: tuple[str, ...]) -> str:
    return "".join(f"<p>{typeset(html.escape(line))}</p>" for line in lines if line)


def _html(table: Table) -> str:
    head = "".join(_cell("th", cell) for cell in table.head)
    rows, left = table.cut(_ROWS)
    body = "".join(f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>" for row in rows)
    after = [f"{left} more rows: .to_dataframe() has them."] if left else []
    after += [table.note] if table.note else []
    note = f"<p>{html.escape(' '.join(after))}</p>" if after else ""
    return (
        f'<div style="overflow-x:auto"><table><caption style="text-align:left">'
        f"{html.escape(table.caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def _cell(tag: str, cell: Cell) -> str:
    side = "right" if cell.kind == "number" else "left"
    style = ";".join(part for part in (f"text-align:{side}", _TONES[cell.tone]) if part)
    return f'<{tag} style="{style}">{spelled(cell)}</{tag}>'
