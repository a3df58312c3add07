"""Answers without a page of their own, fields as tables and rows as rows; recipes, regularity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import reduce
from typing import Any

from tpcalc.errors import short
from tpcalc.results import Estimate, Provenance, Recipe, Regularity, Theorem, Theorems
from tpcalc.results.data import as_number, fields_of, is_rows
from tpcalc.shown import Rows, Shown
from tpcalc.views.numbers import SETTLED, count, plain, settled
from tpcalc.views.tables import Cell, Table, number, sentence
from tpcalc.views.view import Judgement, Part, View, view

_LETTERS = 60  # of a value that is no text
_SMOOTH = "numbers m blocks apart differ by m^s, m small"
_NAMES = ("provenance", "notes")  # what a view has a place for


@view.register
def _(rows: Rows) -> View:  # type: ignore[type-arg]
    if not rows:
        return View("Nothing", text="Nothing.")
    if isinstance(rows[0], Theorem):
        return replace(view(Theorems(rows, Provenance("", ""))), provenance=None)
    if view.dispatch(type(rows[0])) is not view.dispatch(Shown):  # one has a view of its own
        return reduce(View.beside, map(view, rows))
    title = _title(type(rows[0]))
    return View(title, parts=(Part("record", title, "", (_listed(title, rows),)),))


@view.register
def _(record: Shown) -> View:
    title = _title(type(record))
    if type(record).__str__ is not Shown.__str__:  # a number, or a program, which is its text
        return replace(View.of(record, title), notes=(), text=str(record))
    alone = [
        (key, value) for key, value in fields_of(record) if key not in _NAMES and not is_rows(value)
    ]
    meanings = _meanings(type(record))
    body = ((key, _cell(value), meanings.get(key, "")) for key, value in alone)
    head = ("`Field", "Value", "~Meaning")
    tables = [Table.of(title, head, body, _note(value for _, value in alone))]
    tables += [_listed(key.capitalize(), rows) for key, rows in fields_of(record) if is_rows(rows)]
    return View.of(record, title, Part("record", title, "", tuple(tables)))


def _title(kind: type) -> str:
    return (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")


def _meanings(kind: type) -> dict[str, str]:
    """What the docstring of a class says of its fields."""
    text = kind.__doc__ or ""
    found = re.findall(r"^ {8}(\w+): (.+(?:\n {9,}.+)*)", text, re.MULTILINE)
    return {key: " ".join(said.split()) for key, said in found}


def _listed(key: str, rows: Sequence[Any]) -> Table:
    head = [key for key, _ in fields_of(rows[0])]
    body = ([_cell(value) for _, value in fields_of(row)] for row in rows)
    cells = (value for row in rows for _, value in fields_of(row))
    return Table.of(key.replace("_", " "), head, body, _note(cells))


def _note(values: Iterable[Any]) -> str:
    """What a number without an error is, where a table has numbers that carry theirs."""
    return SETTLED if any(isinstance(as_number(value), Estimate) for value in values) else ""


def _cell(value: Any) -> Cell:
    value = as_number(value)
    if isinstance(value, Estimate):
        return number(settled(value))
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float | Fraction):
        return number(f"{value:.6g}" if isinstance(value, float) else str(value))
    if is_rows(value):
        return number(f"{len(value)} of them")
    if hasattr(value, "shape"):
        return Cell(" x ".join(map(str, value.shape)) + " numbers")
    if value is None or value == ():
        return Cell("–")
    if isinstance(value, Enum):
        return Cell(str(value.value))
    if is_dataclass(value) and type(value).__str__ in (object.__str__, Shown.__str__):
        return sentence("; ".join(f"{key}: {_cell(own).text}" for key, own in fields_of(value)))
    return sentence(value if isinstance(value, str) else short(str(value), _LETTERS))


@view.register
def _(found: Recipe) -> View:
    said = f"{found.name} (alpha = {found.alpha}, gamma = {found.gamma}), {found.optimizer}"
    rows = (
        (row.what, plain(row.at_base), plain(row.value), f"(L/{found.base})^({row.power})")
        for row in found.rows
    )
    head = ("Number", f"#L = {found.base}", f"#L = {found.depth}", "#Factor")
    part = Part("recipe", "Recipe", "", (Table.of("What to type", head, rows),))
    return View.of(found, "Recipe", part, said=Judgement("info", said))


@view.register
def _(found: Regularity) -> View:
    said = f"{found.kind.capitalize()} along {count(found.depth)} blocks: L^(-{found.alpha}) suits"
    facts = (
        ("H", settled(found.hurst), "sums over m blocks are of size m^H"),
        ("H, coarse", settled(found.coarse), "the same between the two longest sums alone"),
        ("Smoothness s", settled(found.smoothness), _SMOOTH),
        ("Nearest law", found.law, "as along= of a network takes it"),
        ("Critical for outputs", f"L^(-{found.critical[0]})", "outputs stay of order one"),
        ("Critical for gradients", f"L^(-{found.critical[1]})", "gradients stay of order one"),
    )
    local = ((str(m), settled(own)) for m, own in found.scales)
    rows = (
        (
            f"L^(-{row.alpha})",
            row.outputs,
            row.gradients,
            *("" if own is None else settled(own) for own in (row.D, row.Dp)),
        )
        for row in found.rows
    )
    columns = ("Power", "Outputs", "Gradients", "#D at this depth", "#Dp")
    tables = (
        Table.of("What was measured", ("Quantity", "#Value", "~Meaning"), facts),
        Table.of("Powers in front of a block", columns, rows, SETTLED),
        Table.of("H by the length of sums", ("#m", "#H between m and 2 m blocks"), local),
    )
    part = Part("regularity", "Weights along the depth", "", tables)
    return View.of(found, "Regularity along the depth", part, said=Judgement("info", said))
