"""What a page says of guidelines for designs: all of them, the worst first, and what would help."""

from __future__ import annotations

from collections.abc import Iterable

from tpcalc.results.practice import GRADES, Advice, Change, Effect, Grade, Guideline, Thresholds
from tpcalc.views.numbers import count, plain, scores, settled
from tpcalc.views.tables import Cell, Table, z_cell
from tpcalc.views.view import Judgement, Part, View, view

_TONES = {"fail": "bad", "warn": "warn", "open": "warn"}
_SAID: dict[Grade, tuple[str, str]] = {
    "fail": ("bad", "The network breaks guidelines"),
    "warn": ("warn", "The network is near the limits of guidelines"),
    "pass": ("good", "The network follows the guidelines"),
    "open": ("info", "No guideline has a number"),
    "report": ("info", "No guideline has a number"),
}
_LEAD = (
    "Every change is computed by itself: its numbers are those of the network that it makes. Names "
    "are of tp.signal.practice; net is the network."
)
_FAILURES = {
    "Gaussian unstable": "Its architecture is Gaussian unstable",
    "biased": "Its LBIAS is above 10",
    "noise": "Its NLC is above 1,000 and its inputs come with noise",
}


@view.register
def _(found: Advice) -> View:
    level, headline = _SAID[found.grade]
    reasons = [_reason(each) for each in found.guidelines if _worst(each) in ("fail", "warn")]
    if found.failure:
        told = f"{_FAILURES[found.failure]}: such networks were not trained at any learning rate."
        reasons.append(told)
    if found.grade == "fail":
        broken = [each.key for each in found.guidelines if _worst(each) == "fail"]
        headline += f": {', '.join(broken)}"
    still = [each.key for each in found.guidelines if _worst(each) == "open"]
    reasons += [f"Open: {', '.join(still)}."] if still else []
    if found.grade in ("fail", "warn") and not found.changes:
        reasons.append("Nothing that was tried helps.")
    changes = Part("changes", "What to change", _LEAD, (_changes(found.changes),))
    tables = (_notes(found.guidelines), *_layers(found.guidelines))
    layers = Part("layers", "Layer by layer", tables=tables)
    parts = Part("guidelines", "Guidelines", tables=(_guidelines(found),)), changes, layers
    summary = f"Guidelines for {found.model}, the worst first."
    said = Judgement(level, headline, tuple(reasons))
    return View.of(found, "Advice", *parts, said=said, summary=summary)


@view.register
def _(found: Guideline) -> View:
    tables = (_rows([found], ""), _notes([found]), *_layers([found]))
    return View.of(found, found.title, Part("guideline", found.title, tables=tables))


@view.register
def _(found: Change) -> View:
    return View.of(found, "Change", Part("change", found.what, tables=(_changes([found]),)))


@view.register
def _(found: Thresholds) -> View:
    pairs = ((name, getattr(found, name)) for name in found.__slots__ if name != "linear")
    rows = ((name, plain(limits[0]), plain(limits[1])) for name, limits in pairs)
    note = f"A coefficient below {found.linear:g} warns."
    table = Table.of("Thresholds", ("Name", "#Passes up to", "#Warns up to"), rows, note)
    return View.of(found, "Thresholds", Part("thresholds", "Thresholds", tables=(table,)))


def _worst(own: Guideline) -> Grade:
    grades = (own.grade, own.measured_grade) if own.measured else (own.grade,)
    return min(grades, key=GRADES.index)


def _reason(own: Guideline) -> str:
    value = own.value if _worst(own) == own.grade or own.measured is None else own.measured.mean
    said = "" if value is None else f" {plain(value.value, 4)}"
    where = "" if own.layer is None else f" at layer {own.layer}"
    return f"{own.key} ({own.title}): {own.metric}{said}{where}, {_limits(own)}."


def _limits(own: Guideline) -> str:
    if not own.limits:
        return ""
    word = "from" if own.limits[0] > own.limits[1] else "up to"
    return f"passes {word} {own.limits[0]:g}, warns {word} {own.limits[1]:g}"


def _guidelines(found: Advice) -> Table:
    seeds = scores(found.seeds) if found.widths else ""
    note = f"A grade is that of the limit, and of networks where they are measured. {seeds}"
    return _rows(
        found.guidelines, note, f", n = {count(max(found.widths))}" if found.widths else ""
    )


def _rows(guidelines: Iterable[Guideline], note: str, width: str = "") -> Table:
    rows = (
        (
            each.key,
            each.title,
            Cell(_worst(each), tone=_TONES.get(_worst(each), "")),
            each.metric,
            "" if each.value is None else settled(each.value),
            "" if each.layer is None else str(each.layer),
            "" if each.measured is None else settled(each.measured.mean),
            "" if each.measured is None or each.value is None or each.measured.z is None
            else z_cell(each.measured.z),
            *([f"{limit:g}" for limit in each.limits] or ["", ""]),
        )
        for each in guidelines
    )  # fmt: skip
    head = ("", "Guideline", "Grade", "Metric", "#Limit", "?#Layer", f"?#Measured{width}", "?#z")
    return Table.of("Guidelines", (*head, "#Passes to", "#Warns to"), rows, note)


def _notes(guidelines: Iterable[Guideline]) -> Table:
    rows = ((each.key, note) for each in guidelines for note in each.notes)
    return Table.of("Besides", ("", "~Number or fact"), rows)


def _changes(changes: Iterable[Change]) -> Table:
    rows = (
        (each.what, _effects(each.helps), Cell(_effects(each.harms), tone="warn"), each.code)
        for each in changes
    )
    head = ("~Change", "~Helps", "~Harms", "~Code")
    return Table.of("What to change, the best first", head, rows)


def _effects(effects: Iterable[Effect]) -> str:
    return "; ".join(
        f"{each.key} {plain(each.before.value, 4)} → {plain(each.after.value, 4)} ({_graded(each)})"
        for each in effects
    )


def _graded(effect: Effect) -> str:
    same = effect.grade_before == effect.grade_after
    return effect.grade_after if same else f"{effect.grade_before} → {effect.grade_after}"


def _layers(guidelines: Iterable[Guideline]) -> Iterable[Table]:
    for own in guidelines:
        rows = (
            (
                str(each.layer),
                each.operation,
                settled(each.value),
                "" if each.measured is None else settled(each.measured.mean),
            )
            for each in own.layers
        )
        head = ("#Layer", "Operation", "#Limit", "?#Measured")
        yield Table.of(f"{own.key}: {own.metric}", head, rows, detail=True)
