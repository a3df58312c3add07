"""A parameterization of a network, and two of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tpcalc.names import Name
from tpcalc.results import Card, Contrast, OrderRow
from tpcalc.views.answers.check import ANSWERS, at_start, judged
from tpcalc.views.answers.orders import size
from tpcalc.views.labels import symbol
from tpcalc.views.numbers import count, measured, with_power
from tpcalc.views.tables import Cell, Table
from tpcalc.views.traces import gather
from tpcalc.views.view import Judgement, Part, View, view

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


def card_tables(*cards: Card) -> tuple[Table, ...]:
    """Definitions, verdicts, limits, networks, theorems, orders, a column for each card."""
    made = (_table(caption, cards, *how) for caption, how in _TABLES.items())
    return tuple(table for table in made if table.rows)


def _table(
    caption: str,
    cards: Sequence[Card],
    read: Callable[[Card], dict[str, str]],
    kind: str,
    note: str,
) -> Table:
    """A row for each entry of any card; what only one of them has stays open in the other."""
    sides = [read(card) for card in cards]
    rows: list[tuple[Cell | str, ...]] = []
    for key in dict.fromkeys(key for side in sides for key in side):
        values = [side.get(key, "–") for side in sides]
        same = "same" if len(cards) > 1 and len(set(values)) == 1 else ""
        broken = "sentence" if max(map(len, values)) > _LONG else "text"
        rows.append((key, *(Cell(value, broken) for value in values), same))
    columns = (Cell(card.name) for card in cards)
    head = (Cell("", kind), *columns, len(cards) > 1 and "")
    return Table.of(caption, head, rows, note)


def _facts(card: Card) -> dict[str, str]:
    found = card.check
    return {
        "Verdict": found.verdict + (f" ({found.status})" if found.status else ""),
        "Valid for": found.valid_for,
        "Network at the start": at_start(found),
        "Stationary start": "yes" if found.stationary_start else "no",
        "What decides": "; ".join(found.facts),
    }


def _moves(card: Card) -> dict[str, str]:
    layers, made = card.check.layers, {}
    for layer in layers:
        made[f"Layer {layer.label}: its update is Θ(1)"] = ANSWERS[layer.moves]
        if layer is not layers[-1]:
            made[f"Layer {layer.label}: its features move"] = ANSWERS[layer.features]
    return made


def _updates(card: Card) -> dict[str, str]:
    return _sizes((*card.check.updates, *card.check.rows))


def _orders(card: Card) -> dict[str, str]:
    """Of the first input of a step."""
    rows = card.orders.rows if card.orders else ()
    return _sizes(row for row in rows if Name.tabled(row.name).input in (0, None))


def _sizes(rows: Iterable[OrderRow]) -> dict[str, str]:
    return {row.name: size(row.n, row.status) for row in rows}


def _limits(card: Card) -> dict[str, str]:
    """Of outputs; what has none comes first."""
    made = {row.name: row.text for row in card.limit.uncovered} if card.limit else {}
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
    rows = card.theorems.rows if card.theorems else ()
    return {row.name: f"{row.answered} ({row.source.item})" for row in rows}


_TABLES: dict[str, tuple[Callable[[Card], dict[str, str]], str, str]] = {
    "Powers that define them": (lambda card: dict(card.exponents), "text", ""),
    "What becomes of training": (_facts, "text", ""),
    "What moves": (_moves, "text", ""),
    "Limits": (_limits, "name", _INPUTS),
    "Finite networks": (_finite, "name", _WIDEST),
    "Theorems": (_theorems, "name", _ABOUT),
    "Orders of updates and outputs": (_updates, "name", ""),
    "Orders of features and gradients": (_orders, "name", ""),
}


@view.register
def _(found: Card) -> View:
    said = judged(found.check)
    said = Judgement(said.level, f"{found.name}: {said.headline[0].lower()}{said.headline[1:]}")
    part = Part("card", found.name, "", card_tables(found))
    return View(found.name, said, "", (part,), (), found.check.provenance)


@view.register
def _(found: Contrast) -> View:
    title = f"{found.left.name} beside {found.right.name}"
    part = Part("versus", title, versus_lead(found), card_tables(found.left, found.right))
    return View(title, None, "", (part,), (), found.right.check.provenance)
