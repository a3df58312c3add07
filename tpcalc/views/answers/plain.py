"""Answers without a page of their own: their fields as tables, their rows as rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from math import isfinite
from typing import Any

from tpcalc.errors import short
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown
from tpcalc.views.numbers import settled
from tpcalc.views.tables import Cell, Table, name, number, sentence, texts
from tpcalc.views.view import Part, View, view

_LETTERS = 60  # of a value in a cell
_NAMES = ("provenance", "notes")  # what a view has a place for


@view.register
def _(rows: Rows) -> View:  # type: ignore[type-arg]
    if not rows:
        return View("Nothing", text="Nothing.")
    title = _title(type(rows[0]))
    return View(title, parts=(Part("record", title, "", (_listed(title, rows),)),))


@view.register
def _(record: Shown) -> View:
    made = getattr(record, "provenance", None)
    title = _title(type(record))
    text = record.as_text() if type(record).__str__ is Shown.__str__ else str(record)
    if text is not None:
        return View(title, text=text, provenance=made)
    alone = [(key, value) for key, value in _fields(record) if not _is_rows(value)]
    meanings = _meanings(type(record))
    body = ((name(key), _cell(value), sentence(meanings.get(key, ""))) for key, value in alone)
    tables = [Table.of(title, (*texts("Field"), number("Value"), *texts("Meaning")), body)]
    tables += [
        _listed(key.capitalize(), rows) for key, rows in rows_of(record).items() if _is_rows(rows)
    ]
    notes = tuple(getattr(record, "notes", ()))
    part = Part("record", title, "", tuple(tables))
    return View(title, parts=(part,), notes=notes, provenance=made)


def rows_of(record: Any) -> dict[str, Any]:
    """The rows of an answer by the name of their table; of one without rows its fields are one."""
    if isinstance(record, Rows):
        return {"rows": record}
    found = {key: value for key, value in _fields(record) if _is_rows(value) or _is_matrix(value)}
    return found or {"fields": (record,)}


def flat(row: Any) -> dict[str, Any]:
    """A row with numbers as they are: an estimate is its value beside its error and method."""
    cells: dict[str, Any] = {}
    for key, value in _fields(row):
        if isinstance(value, Estimate):
            cells |= {key: value.value, f"{key}_error": value.stderr}
            cells[f"{key}_method"] = value.method.value
        elif isinstance(value, Enum):
            cells[key] = value.value
        else:
            cells[key] = value if isinstance(value, bool | int | float | None) else str(value)
    return cells


def as_plain(value: Any) -> Any:
    """A record as dictionaries and lists of what JSON knows; exact numbers as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: as_plain(part) for key, part in _fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [as_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return as_plain(value.tolist())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(record):
        for one in fields(record):
            if one.repr and not one.name.startswith("_"):
                yield one.name, getattr(record, one.name)


def _is_rows(value: Any) -> bool:
    rows = isinstance(value, tuple) and bool(value)
    return rows and all(is_dataclass(row) and type(row) is type(value[0]) for row in value)


def _is_matrix(value: Any) -> bool:
    return getattr(value, "ndim", 0) in (1, 2)


def _title(kind: type) -> str:
    lines = (kind.__doc__ or kind.__name__).splitlines()
    return lines[0].rstrip(".")


def _meanings(kind: type) -> dict[str, str]:
    """What the docstring of a class says of its fields."""
    text = kind.__doc__ or ""
    found = re.findall(r"^ {8}(\w+): (.+(?:\n {9,}.+)*)", text, re.MULTILINE)
    return {key: " ".join(said.split()) for key, said in found}


def _listed(key: str, rows: Sequence[Any]) -> Table:
    head = [key for key, _ in _fields(rows[0])]
    body = ([_cell(value) for _, value in _fields(row)] for row in rows)
    return Table.of(key.replace("_", " "), texts(*head), body)


def _cell(value: Any) -> Cell:
    if hasattr(value, "estimate"):  # a number that carries its error
        value = value.estimate()
    if isinstance(value, Estimate):
        return number(settled(value))
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, float):
        return number(f"{value:.6g}")
    if isinstance(value, int | Fraction):
        return number(str(value))
    if hasattr(value, "shape"):
        return Cell(" x ".join(map(str, value.shape)) + " numbers")
    if value is None or value == ():
        return Cell("–")
    if isinstance(value, Enum):
        return Cell(str(value.value))
    return Cell(short(str(value), _LETTERS))
