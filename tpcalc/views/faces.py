"""What every answer can do, by its view: terminal, notebook, picture, data, files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tpcalc.doors.write import put
from tpcalc.errors import MissingBackend, StudyError, UsageError
from tpcalc.results.codec import is_record, to_json
from tpcalc.results.data import as_plain, flat, rows_of
from tpcalc.views import notebook, terminal
from tpcalc.views.page import render_html, render_markdown
from tpcalc.views.record import FIELDS, ReportInput
from tpcalc.views.view import View, view


def seen(record: Any) -> View:
    """The view of an answer, or of what carries one as ``.table``."""
    return view(_table(record))


def text(record: Any) -> str:
    """What ``print`` shows."""
    return terminal.text(seen(record))


def html(record: Any) -> str:
    """What a notebook shows."""
    return notebook.fragment(seen(record))


def plot(record: Any, part: str | None = None) -> Any:
    """The picture of an answer."""
    from tpcalc.views.plots import together

    figures = seen(record).figures
    if not figures:
        raise UsageError(
            f"a {type(record).__name__} has no picture.", hint="print() and to_dict() show it."
        )
    return together(_chosen(figures, part, "picture"))


def to_dataframe(record: Any, part: str | None = None) -> Any:
    """The rows of an answer."""
    frames = needed("pandas", "dataframe")
    rows = _chosen(rows_of(_table(record)), part, "table")
    return frames.DataFrame(rows if hasattr(rows, "ndim") else [flat(row) for row in rows])


def needed(library: str, extra: str) -> Any:
    """A library that not everybody has."""
    try:
        return import_module(library)
    except ImportError:
        raise MissingBackend(
            f"this needs {library}, and {library} is not installed.",
            hint=f"Run pip install 'tpcalc[{extra}]'.",
        ) from None


def to_dict(record: Any) -> dict[str, Any]:
    """An answer as dictionaries and lists."""
    content = as_plain(_table(record))
    return content if isinstance(content, dict) else {"text": content}


def save(record: Any, path: str | Path) -> Path:
    """Write an answer to a file."""
    target = Path(path)
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise StudyError(
            f"an answer is written as {', '.join(_WRITERS)}, "
            f"not as {target.suffix or 'a bare name'!r}.",
            where=str(target),
            hint=f"Call it {target.stem or 'answer'}.json.",
        )
    return put(target, writer(_table(record)), "table")


def _json(record: Any) -> str:
    content = to_json(record) if is_record(record) else as_plain(record)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _lines(record: Any) -> tuple[list[dict[Any, Any]], list[Any]]:
    """The rows of the first table of an answer, and the names of their columns, in their order."""
    rows = next(iter(rows_of(record).values()))
    lines = [dict(enumerate(row)) if hasattr(rows, "ndim") else flat(row) for row in rows]
    return lines, list(dict.fromkeys(name for line in lines for name in line))


def _csv(record: Any) -> str:
    text, (lines, names) = io.StringIO(), _lines(record)
    writer = csv.DictWriter(text, names)
    if not all(isinstance(name, int) for name in names):  # a matrix has no names
        writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _parquet(record: Any) -> bytes:
    arrow, sink, (lines, names) = needed("pyarrow.parquet", "parquet"), io.BytesIO(), _lines(record)
    columns = {str(name): _of_one_kind([line.get(name) for line in lines]) for name in names}
    arrow.write_table(needed("pyarrow", "parquet").table(columns), sink)
    return sink.getvalue()


def _of_one_kind(column: list[Any]) -> list[Any]:
    """A column with texts beside numbers is one of texts."""
    kinds = {type(value) for value in column if value is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return column
    return [None if value is None else str(value) for value in column]


def _document(record: Any) -> ReportInput | View:
    shown = view(record)
    kind = FIELDS.get(type(record))
    return ReportInput(shown.title, **{kind: record}) if kind else shown


_WRITERS: dict[str, Callable[[Any], str | bytes]] = {
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
    ".html": lambda record: render_html(_document(record)),
    ".md": lambda record: render_markdown(_document(record)),
}


def _chosen(parts: dict[str, Any], name: str | None, what: str) -> Any:
    """One of several by its name, the first if None."""
    if name is None:
        return next(iter(parts.values()))
    if name not in parts:
        raise UsageError(f"there is no {what} {name!r}.", hint=f"There are {', '.join(parts)}.")
    return parts[name]


def _table(record: Any) -> Any:
    """The record that an answer with questions of its own carries."""
    return getattr(record, "table", record)
