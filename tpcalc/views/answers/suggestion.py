"""What to change in a module and its optimizer, as a diff of lines, and which groups are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from tpcalc.results import Exponent, Suggestion
from tpcalc.results.data import grouped
from tpcalc.results.first_order import FINE, kind_of
from tpcalc.views.numbers import count, plain
from tpcalc.views.tables import Table, numbers, sentence, texts
from tpcalc.views.view import Judgement, Part, View, view

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
    head = (*texts("", "Where", "What"), *numbers("Power", f"At {count(found.width)}"))
    body = [row for line, names in lines.items() for row in _diff(found, line, names)]
    tables = [Table.of("Lines to change", (*head, *texts("As it is")), body, _APPLY)] * bool(lines)
    wrong = [row for row in found.rows if row.given != row.rate and row.group]
    if wrong:
        head = (*texts("Group", "Rate"), *numbers("Right for"), *texts("Wrong for"))
        groups = dict.fromkeys((row.group, row.given) for row in wrong)
        rows = (_group(found, *group) for group in groups)
        tables.append(Table.of("Groups of the optimizer", head, rows))
    if found.others:
        others = ((sentence("; ".join(own.lines)),) for own in found.others)
        tables.append(Table.of("What else would do", texts("Lines"), others))
    lead = f"Factors are from n = {count(found.base)}, where nothing changes."
    part = Part("suggestion", "What to change", lead, tuple(tables))
    parts = (part,) if tables else ()
    said = Judgement(level, headline)
    return View("Suggestion", said, "", parts, found.notes, found.provenance)


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
