"""First steps of modules beside what is derived, with a picture; what to write instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from tpcalc.results import Exponent, ModuleCheck, ModuleRow, Suggestion
from tpcalc.results.data import grouped
from tpcalc.results.first_order import FINE, kind_of
from tpcalc.views.answers.first_order import FITS, over_widths, power_of_width, slope
from tpcalc.views.numbers import count, plain
from tpcalc.views.panels import Figure, Panel, Series, told
from tpcalc.views.tables import Cell, Table
from tpcalc.views.view import Judgement, Part, View, view

_SAID = {
    "agrees": ("good", "The code does what the recipe says"),
    "differs": ("bad", "The code differs from its recipe"),
    "open": ("warn", "Open whether the code does what the recipe says"),
}
_READ_AS = (
    "Slopes are those of geometric means over seeds, ± one standard error, last: between the two "
    "widest where the curve still bends. With Student's interval at 99% one agrees that lies "
    "between the derived powers, a quarter wider; one differs whose interval lies outside."
)
_DRAWN = (
    "Root mean squares of changes since the start, geometric means over seeds; bars: one standard "
    "error; dashed: the derived powers, through the widest."
)
_TERMS = (
    "To first order, to a linear function of all outputs, by a first step of its optimizer from "
    "the gradient that there is at a step: without history, without decay."
)
_FALLS = "falls as {} at the start, as derived: a sum of terms of mean 0, which is no fault"
_Rows = Mapping[tuple[str, int], ModuleRow]  # of one name, by what and step
_Names = Mapping[str, _Rows]


@view.register
def _(found: ModuleCheck) -> View:
    level, headline = _SAID[found.code]
    modules, parameters = _of(found, "start", "change"), _of(found, "term", "gradient", "step")
    widths = ", ".join(map(count, found.rows[0].measured.widths))
    lead = (
        f"All parameters step together on one batch, at widths {widths}, {found.seeds} seeds or "
        f"more of each, rates times {plain(found.rate, 2)}. {_READ_AS}"
    )
    start = ("Module", "#Start", "#slope", "#Change")
    outputs = _table("Sizes of outputs", start, modules)
    where = ("Parameter", "Where", "#Adds")
    terms = _table("What each step adds to the output", where, parameters)
    parts = (
        Part("modules", "Outputs of modules", lead, (outputs,), _figure(modules)),
        Part("terms", "Parameters", _TERMS, (terms,)),
    )
    words: dict[str, list[str]] = {}
    for name, rows in modules.items():
        for why in _not_flat(rows):
            words.setdefault(why, []).append(name)
    recipe = [f"The recipe, at first order: {found.recipe}."] if found.recipe else []
    summary = " ".join((*recipe, *(f"{', '.join(own)}: {why}." for why, own in words.items())))
    said = Judgement(level, headline, found.facts)
    return View.of(found, "Coordinate check", *parts, said=said, summary=summary)


def _of(found: ModuleCheck, *whats: str) -> dict[str, _Rows]:
    """By name what was measured, of equal blocks of the one that fits least."""
    names: dict[str, dict[tuple[str, int], ModuleRow]] = {}
    for row in found.rows:
        if row.what in whats:
            names.setdefault(row.label, {})[row.what, row.step] = row
    # Of modules that return what the last in them does, one is enough.
    sizes = {name: tuple(row.measured.sizes for row in own.values()) for name, own in names.items()}
    last = sorted(reversed(names), key=lambda name: _unfit(names[name]))
    kept = {sizes[name] if "start" in whats else name: name for name in last}
    kinds = grouped(
        (name for name in names if name in kept.values()),
        lambda name: (kind_of(name), *(row.powers for row in names[name].values())),
    )
    alike = Counter(kind for kind, *_ in kinds)
    least = {key: max(own, key=lambda name: _unfit(names[name])) for key, own in kinds.items()}
    return {key[0] if alike[key[0]] == 1 else name: names[name] for key, name in least.items()}


def _unfit(rows: _Rows) -> int:
    return max((FITS.index(row.word) for row in rows.values() if row.predicted), default=-1)


def _table(title: str, before: Sequence[str], names: _Names) -> Table:
    """A row for each name: what stands before, the powers, slopes of some steps, a word."""
    steps = dict.fromkeys(step for rows in names.values() for step in _shown(rows))
    head = (*before, *(f"#step {step}" for step in steps), "Code")
    body = ((name, *_before(rows), *_steps(rows)) for name, rows in names.items())
    return Table.of(title, head, body)


def _before(rows: _Rows) -> tuple[Cell | str, ...]:
    first = next(iter(rows.values()))
    at_start = first.what == "start"
    return (first.powers, _cell(first)) if at_start else (first.line or first.module,)


def _shown(rows: _Rows) -> list[int]:
    """The first step and the last; the record has all."""
    steps = [step for _, step in rows if step]
    return sorted({min(steps), max(steps)})


def _steps(rows: _Rows) -> Iterator[Cell | str]:
    """Slopes have their powers beside them where they are others than those of the first."""
    steps = _shown(rows)
    own = [row for row in rows.values() if row.what in ("change", "term") and row.step in steps]
    yield own[0].powers
    for row in own:
        more = f" ({row.powers})" if row.powers != own[0].powers and row.predicted else ""
        yield _cell(row, more)
    word = FITS[worst] if (worst := _unfit(rows)) >= 0 else ""
    yield Cell(word, tone="bad" if word == "differs" else "")


def _cell(row: ModuleRow, more: str = "") -> Cell:
    last = "" if row.last is None else f", last {row.last:.2f}"
    text = "0" if row.is_zero else slope(row.measured) + last
    return Cell(text + more, "number", "warn" if row.word == "differs" else "")


def _figure(modules: _Names) -> Figure | None:
    """A panel for each module: the change of its output against the width, step by step."""
    panels = []
    for name, rows in modules.items():
        moving = [row for row in rows.values() if row.what == "change" and row.measured.sizes[-1]]
        series = tuple(one for row in moving for one in _curves(row))
        if series:
            words = f"{name}: change of the output against the width. {told(series)}"
            panels.append(Panel(name, words, "width n", series, True, True))
    return Figure("Coordinate check: changes of outputs", _DRAWN, tuple(panels)) if panels else None


def _curves(row: ModuleRow) -> Iterator[Series]:
    own, colour = row.measured, row.step - 1
    yield over_widths(own, colour, f"after step {row.step}")
    for power in dict.fromkeys((row.low.constant, row.high.constant)):
        if power is not None:
            yield power_of_width(own, power, "derived power, through the widest")


def _not_flat(rows: _Rows) -> Iterator[str]:
    """Why curves of a right recipe are not flat."""
    still = False
    for row in rows.values():
        falls = (row.high.constant or 0) < 0
        if row.word == "agrees" and row.what == "start" and (falls or row.is_zero):
            yield _FALLS.format(row.powers) if falls else "0 at the start, as derived"
        elif row.word == "agrees" and row.what == "change" and still and not row.is_zero:
            yield f"still before step {row.step}, as derived: what reads it starts at 0"
        elif row.word == "agrees" and row.what == "change" and row.step == 1 and falls:
            yield f"its change falls as {row.powers}, as derived: the recipe, not the code"
        still = row.what == "change" and row.is_zero


_APPLY = (
    "In a script: tp.torch.init_(model, found) once, behind the init of the module, and "
    "tp.torch.param_groups(model, found, lr=...) in place of the parameters of the optimizer, with "
    "the rate of the base width. Factors before what is read are written by hand."
)
_Change = tuple[str, str, str, Exponent, Exponent, Exponent]  # where, why, what, before, after, x


@view.register
def _(found: Suggestion) -> View:
    slow = [row.name for row in found.rows if row.after not in FINE]
    learns = f"but not {_names(slow)}" if slow else "every parameter learns"
    lines = _lines(found)
    if lines:
        level, many = "warn", f"{len(lines)} change{'s' * (len(lines) > 1)}"
        headline = f"{found.before.capitalize()} as it is; with {many}: {found.after}, {learns}"
    elif found.after == "feature learning" and not slow:
        level, headline = "good", f"Nothing to change: {found.before}, {learns}"
    else:
        level, headline = "bad", f"{found.before.capitalize()}, and no change was found that helps"
    head = ("", "Where", "What", "#Power", f"#At {count(found.width)}", "As it is")
    body = [row for line, names in lines.items() for row in _diff(found, line, names)]
    wrong = [row for row in found.rows if row.given != row.rate and row.group]
    groups = dict.fromkeys((row.group, row.given) for row in wrong)
    right = ("Group", "Rate", "#Right for", "Wrong for")
    rows = (_group(found, *group) for group in groups)
    others = (("; ".join(own.lines),) for own in found.others)
    tables = (
        Table.of("Lines to change", head, body, _APPLY),
        Table.of("Groups of the optimizer", right, rows),
        Table.of("What else would do", ("~Lines",), others),
    )
    lead = f"Factors are from n = {count(found.base)}, where nothing changes."
    part = Part("suggestion", "What to change", lead, tables)
    return View.of(found, "Suggestion", part, said=Judgement(level, headline))


def _lines(found: Suggestion) -> dict[_Change, list[str]]:
    """What changes, with the parameters that it is about."""
    zero = Exponent.number(0)
    changes: list[tuple[_Change, str]] = [
        ((own.line, "", f"factor of {own.what}", zero, own.power, own.power), "")
        for own in found.factors
    ]
    for row in found.rows:
        if row.start.constant:
            known = zero if row.std.constant is None else row.std
            after = Exponent.number((known.constant or 0) + row.start.constant)
            changes.append(((row.line, row.before, "std of", known, after, row.start), row.name))
    for row in found.rows:
        if row.given != row.rate:
            own = row.script, row.before, "rate of", row.given, row.rate, row.rate
            changes.append((own, row.name))
    lines: dict[_Change, list[str]] = {}
    for change, name in changes:
        lines.setdefault(change, []).append(name)
    return lines


def _diff(found: Suggestion, line: _Change, names: list[str]) -> Iterator[tuple[str, ...]]:
    where, why, what, before, after, factor = line
    shown = f"x {_short(found.factor(factor, found.width))}"
    yield "-", where, f"{what} {_names(names)}".strip(), before.raised("n"), "", why
    yield "+", "", "", after.raised("n"), shown, ""


def _group(found: Suggestion, group: str, given: Exponent) -> tuple[str, ...]:
    own = [row for row in found.rows if (row.group, row.given) == (group, given)]
    rates = grouped(own, lambda row: row.rate)
    right = len(rates.pop(given, []))
    wrong = (
        f"{_names(row.name for row in rows)}: {rate.raised('n')}" for rate, rows in rates.items()
    )
    return group, given.raised("n"), f"{right} of {len(own)}", "; ".join(wrong)


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(map(kind_of, names)))


def _short(value: float) -> str:
    """A short fraction where it is one."""
    found = Fraction(value).limit_denominator(10_000)
    return str(found) if abs(float(found) - value) <= 1e-12 * value else plain(value, 3)
