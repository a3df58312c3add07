"""What a page says of guidelines for designs: all of them, the worst first, and what would help."""

from __future__ import annotations

from collections.abc import Iterable

from tpcalc.results.practice import Advice, Effect, Grade, Guideline
from tpcalc.views.numbers import count, plain, scores, settled
from tpcalc.views.tables import Cell, Table, z_cell
from tpcalc.views.view import Judgement, Part, View, view

_BEST = 4  # changes that are shown where there is little room
_TONES = {"fail": "bad", "warn": "warn", "open": "warn"}
_SAID: dict[Grade, tuple[str, str]] = {
    "fail": ("bad", "The network breaks guidelines"),
    "warn": ("warn", "The network is near the limits of guidelines"),
    "pass": ("good", "The network follows the guidelines"),
    "open": ("info", "No guideline has a number"),
}
_LEAD = (
    "Every change is computed by itself: its numbers are those of the network that it makes. In "
    "code net is the network, act its activation, s tp.signal and p tp.signal.practice."
)
_FAILURES = {
    "Gaussian unstable": "Its architecture is Gaussian unstable",
    "biased": "Its LBIAS is above 10",
    "noise": "Its NLC is above 1,000 and its inputs come with noise",
}


@view.register
def _(found: Advice) -> View:
    level, headline = _SAID[found.grade]
    keys = {
        grade: ", ".join(own.key for own in found.guidelines if own.worst == grade)
        for grade in _TONES
    }
    if keys.get(found.grade):
        headline += f": {keys[found.grade]}"
    reasons = [f"Open: {keys['open']}."] if keys["open"] else []
    if found.failure:
        told = f"{_FAILURES[found.failure]}: such networks were not trained at any learning rate."
        reasons.append(told)
    if found.grade in ("fail", "warn") and not found.changes:
        reasons.append("Nothing that was tried helps.")
    body = [
        (each.what, *(_effects(own) for own in (each.helps, each.harms)), each.code)
        for each in found.changes
    ]
    head = ("~Change", "~Helps", "~Harms", "~Code")
    changes = (
        Table.of("What to change, the best first", head, body[:_BEST]),
        Table.of("What else helps", head, body[_BEST:], detail=True),
    )
    width = f", n = {count(max(found.widths))}" if found.widths else ""
    first, *others = _tables(found.guidelines, width, scores(found.seeds) if width else "")
    parts = (
        Part("guidelines", "Guidelines", tables=(first,)),
        Part("changes", "What to change", _LEAD, changes),
        Part("layers", "Layer by layer", tables=tuple(others)),
    )
    summary = f"Guidelines for {found.model}, the worst first."
    said = Judgement(level, headline, tuple(reasons))
    return View.of(found, "Advice", *parts, said=said, summary=summary)


@view.register
def _(found: Guideline) -> View:
    return View.of(
        found, found.title, Part("guideline", found.title, tables=tuple(_tables([found])))
    )


def _tables(guidelines: Iterable[Guideline], width: str = "", note: str = "") -> Iterable[Table]:
    """All in one table, what they know besides, and each with its layers."""
    own = tuple(guidelines)
    body = (
        (
            each.key,
            each.title,
            Cell(each.worst, tone=_TONES.get(each.worst, "")),
            each.metric,
            each.value and settled(each.value),
            "" if each.layer is None else str(each.layer),
            each.measured and settled(each.measured.mean),
            each.measured and each.value and each.measured.z and z_cell(each.measured.z),
            " / ".join(f"{limit:g}" for limit in each.limits),
        )
        for each in own
    )
    rows = ([cell or "" for cell in row] for row in body)
    head = ("", "Guideline", "Grade", "Metric", "#Limit", "?#Layer", f"?#Measured{width}", "?#z")
    said = f"A grade is the worse of the limit and of networks. {note}" if width else ""
    yield Table.of("Guidelines", (*head, "#Passes / warns to"), rows, said)
    notes = ((each.key, note) for each in own for note in each.notes)
    yield Table.of("Besides", ("", "~Number or fact"), notes, detail=True)
    for each in own:
        layers = (
            (
                str(row.layer),
                row.operation,
                settled(row.value),
                settled(row.measured.mean) if row.measured else "",
            )
            for row in each.layers
        )
        columns = ("#Layer", "Operation", "#Limit", "?#Measured")
        yield Table.of(f"{each.key}: {each.metric}", columns, layers, detail=True)


def _effects(effects: Iterable[Effect]) -> str:
    return "; ".join(
        f"{each.key} {plain(each.before.value, 4)} → {plain(each.after.value, 4)} "
        f"({' → '.join(dict.fromkeys((each.grade_before, each.grade_after)))})"
        for each in effects
    )
