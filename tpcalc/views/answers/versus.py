"""Two parameterizations of one network side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tpcalc.names import Name
from tpcalc.results import Card, Contrast, OrderRow, Verdict
from tpcalc.views.answers.check import at_start
from tpcalc.views.answers.orders import size
from tpcalc.views.labels import symbol
from tpcalc.views.numbers import count, measured, with_power
from tpcalc.views.tables import Cell, Table, name
from tpcalc.views.traces import gather
from tpcalc.views.view import Part, View, view

_LONG = 60  # letters from which on the cells of a row are broken into lines
_INPUTS = "f[t,i]: after t steps, at the i-th input of that step; inputs are counted from 0."
_WIDEST = "At the largest width that has finite numbers: mean over seeds ± one standard error."
_ABOUT = "–: the theorem is not about this parameterization."


def versus_lead(found: Contrast) -> str:
    """The two verdicts in a sentence."""
    left, right = found.left, found.right
    ended = [
        f" {card.name}: {card.check.exploded.text}" for card in (left, right) if card.check.exploded
    ]
    return (
        f"{left.name}: {left.check.verdict}. {right.name}: {right.check.verdict}. Both are trained "
        "on the same data with the same factors of the learning rates." + "".join(ended)
    )


def versus_tables(found: Contrast) -> tuple[Table, ...]:
    """Definitions, verdicts, orders, limits, networks, theorems, a column for each of the two."""
    left, right = found.left, found.right
    parts = (
        ("Powers that define them", dict(left.exponents), dict(right.exponents), False),
        ("What becomes of training", _facts(left.check), _facts(right.check), False),
        ("What moves", _moves(left.check), _moves(right.check), False),
        ("Orders of updates and outputs", _updates(left.check), _updates(right.check), True),
        ("Orders of features and gradients", _orders(left), _orders(right), True),
        ("Limits", _limits(left), _limits(right), True),
        ("Finite networks", _finite(left), _finite(right), True),
        ("Theorems", _theorems(left), _theorems(right), True),
    )
    notes = {"Limits": _INPUTS, "Finite networks": _WIDEST, "Theorems": _ABOUT}
    made = [
        replace(
            _table(caption, (found.left.name, found.right.name), (mine, other), names),
            note=notes.get(caption, ""),
        )
        for caption, mine, other, names in parts
    ]
    return tuple(table for table in made if table.rows)


def _table(
    caption: str,
    heads: tuple[str, str],
    sides: tuple[Mapping[str, str], Mapping[str, str]],
    names: bool,
) -> Table:
    """A row for each entry of either side; what only one of them has stays open in the other."""
    mine, other = sides
    rows = []
    for key in dict.fromkeys((*mine, *other)):
        values = mine.get(key, "–"), other.get(key, "–")
        label = name(key) if names else Cell(key)
        same = "same" if values[0] == values[1] else ""
        kind = "sentence" if max(map(len, values)) > _LONG else "text"
        cells = [Cell(value, kind) for value in values]
        rows.append((label, *cells, Cell(same)))
    return Table(caption, (Cell(""), *map(Cell, heads), Cell("")), tuple(rows))


def _facts(found: Verdict) -> dict[str, str]:
    return {
        "Verdict": found.verdict + (f" ({found.status})" if found.status else ""),
        "Valid for": found.valid_for,
        "Network at the start": at_start(found),
        "Stationary start": "yes" if found.stationary_start else "no",
        "What decides": "; ".join(found.facts[:2]),
    }


def _moves(found: Verdict) -> dict[str, str]:
    words = {True: "yes", False: "no", None: "not known"}
    made = {}
    for layer in found.layers:
        made[f"Layer {layer.label}: its update is Θ(1)"] = words[layer.moves]
        if layer is not found.layers[-1]:
            made[f"Layer {layer.label}: its features move"] = words[layer.features]
    return made


def _rows(rows: Iterable[OrderRow]) -> dict[str, str]:
    return {row.name: size(row.n, row.status) for row in rows}


def _updates(found: Verdict) -> dict[str, str]:
    return _rows((*found.updates, *found.outputs))


def _orders(card: Card) -> dict[str, str]:
    """Of the first input of a step."""
    if card.orders is None:
        return {}
    return _rows(row for row in card.orders.rows if Name.tabled(row.name).input in (0, None))


def _limits(card: Card) -> dict[str, str]:
    if card.limit is None:
        return {}
    made = {}
    for trace in gather(card.limit, None, None):
        if trace.key.word == "f" and trace.limit is not None:
            text = measured(trace.limit, symbol(trace.key))
            made[trace.name] = text if text == "0" else with_power(text, trace.n_power)
    return made


def _finite(card: Card) -> dict[str, str]:
    """Outputs of the widest networks, before any power of n is taken out."""
    made = {}
    for trace in gather(None, card.finite, None):
        if trace.key.word == "f" and trace.points:
            widest = trace.points[-1]
            text = measured(widest.mean, symbol(trace.key))
            made[trace.name] = f"{text} (n = {count(widest.width)})"
    return made


def _theorems(card: Card) -> dict[str, str]:
    if card.theorems is None:
        return {}
    return {row.name: row.answered for row in card.theorems.rows}


@view.register
def _(found: Contrast) -> View:
    title = f"{found.left.name} beside {found.right.name}"
    part = Part("versus", title, versus_lead(found), versus_tables(found))
    return View(title, None, "", (part,), (), found.right.check.provenance)
