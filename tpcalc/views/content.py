"""What a report says, section by section, before it is set as a page or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tpcalc.results import Comparison, Formula, LimitTable, ScalarRow, VectorRow
from tpcalc.views.exponents import exponent_parts, judge_exponents, summarize_exponents
from tpcalc.views.pivots import FEATURES, GRADIENTS, features, others, outputs, provenance
from tpcalc.views.record import ReportInput
from tpcalc.views.regimes import judged
from tpcalc.views.tables import (
    Cell,
    Table,
    comparison_table,
    slope_tables,
    uncovered_table,
    unfitted,
    worst,
)
from tpcalc.views.traces import Trace
from tpcalc.views.verdict import Verdict, judge, summary

PROGRAM_LINES = 400
"""Lines of a program text that a report shows."""

_FOLDED = 24
_WORST = 8
_FORMULAS = 40
_UNCOVERED = "These outputs have no limit in this calculus; finite networks are shown all the same."


@dataclass(frozen=True, slots=True)
class Shown:
    """A table with the rows that a report has room for; long ones are folded on a page."""

    table: Table
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool

    @property
    def left_out(self) -> int:
        """Rows without room."""
        return len(self.table.rows) - len(self.rows)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its tables; ``key`` names it for links and figures."""

    key: str
    title: str
    lead: str
    tables: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that both kinds of report show."""

    title: str
    summary: str
    verdict: Verdict
    model: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    program: str
    program_left_out: int
    formulas: tuple[tuple[str, Formula], ...]
    formulas_left_out: int
    sections: tuple[Section, ...]
    notes: tuple[str, ...]


def compose(
    report: ReportInput,
    traces: tuple[Trace, ...],
    most_rows: int,
    drawn: frozenset[str] = frozenset(),
) -> Content:
    """Lay out a report."""
    lines = report.program_text.rstrip().splitlines()
    formulas = _formulas(report)
    parts = [summarize_exponents(report)]
    if _numeric(report):
        parts.append(summary(report, traces))
    return Content(
        title=report.title,
        summary=" ".join(part for part in parts if part),
        verdict=_verdict(report, traces),
        model=tuple((str(key), str(value)) for key, value in report.model.items()),
        words=report.program_words,
        program="\n".join(lines[:PROGRAM_LINES]),
        program_left_out=max(0, len(lines) - PROGRAM_LINES),
        formulas=formulas[:_FORMULAS],
        formulas_left_out=max(0, len(formulas) - _FORMULAS),
        sections=_sections(report, traces, most_rows, drawn),
        notes=_notes(report),
    )


def _verdict(report: ReportInput, traces: tuple[Trace, ...]) -> Verdict:
    """What the box at the head says: the verdict where there is one, and the agreement below it."""
    if not _numeric(report):
        return judge_exponents(report)
    agreement = judge(report, traces)
    if report.check is None:
        return agreement if "Verdict" not in report.model else _without(report, agreement)
    found, beside = judge_exponents(report), []
    if report.check.exploded is not None:
        beside.append(report.check.exploded.text)
    if report.versus is not None:
        other = report.versus.right
        beside.append(f"{other.name}, beside it: {judged(other.check).headline}.")
    headline, level = found.headline, found.level
    if agreement.level == "bad":  # what finite networks contradict is no good news
        headline = f"{headline}; but {agreement.headline[0].lower()}{agreement.headline[1:]}"
        level = "bad" if level == "bad" else "warn"
    beside += [f"{agreement.headline}.", *agreement.reasons]
    return Verdict(level, headline, (*found.reasons, *beside))


def _without(report: ReportInput, agreement: Verdict) -> Verdict:
    """The box of a network that is trained and has no verdict."""
    level = agreement.level if agreement.level in ("bad", "warn") else "info"
    reasons = (f"{agreement.headline}.", *agreement.reasons)
    return Verdict(level, f"No verdict: {report.model['Verdict']}", reasons)


def _numeric(report: ReportInput) -> bool:
    """Whether there are numbers to weigh, and not exponents alone."""
    return any(part is not None for part in (report.limit, report.finite, report.comparison))


def _sections(
    report: ReportInput, traces: tuple[Trace, ...], most_rows: int, drawn: frozenset[str]
) -> tuple[Section, ...]:
    def shown(*tables: Table | None) -> tuple[Shown, ...]:
        return _fitted(tables, most_rows)

    inputs = report.input_names
    found = [
        Section(part.key, part.title, part.lead, shown(*part.tables))
        for part in exponent_parts(report)
    ]
    found += [
        Section("outputs", "Outputs", "", shown(outputs(traces, inputs), *others(traces, inputs))),
        Section(
            "features",
            "Features and gradients",
            "A mean square is the average of the squared coordinates of a vector: of h before the "
            "activation, of x after it.",
            shown(
                features(traces, FEATURES, "Features", inputs),
                features(traces, GRADIENTS, "Gradients and updates", inputs),
            ),
        ),
    ]
    compared = report.comparison
    found.append(
        Section(
            "comparison",
            "Limit against finite networks",
            _lead(compared) if compared is not None else "",
            shown(*_compared(compared, report.limit)) if compared is not None else (),
        )
    )
    if report.limit is not None and report.limit.uncovered:
        lost = uncovered_table(report.limit)
        found.append(Section("uncovered", "Not covered", _UNCOVERED, shown(lost)))
    found.append(Section("provenance", "Provenance", "", shown(provenance(report))))
    return tuple(section for section in found if section.tables or section.key in drawn)


def _compared(comparison: Comparison, limit: LimitTable | None) -> tuple[Table, ...]:
    rows = comparison.rows
    tables = list(slope_tables(comparison.slopes))
    if len(rows) > _FOLDED:
        title = f"The {_WORST} largest differences of {len(rows)}"
        tables.append(comparison_table(worst(comparison, _WORST), title, limit))
    tables.append(comparison_table(rows, "Limit and finite networks", limit))
    return tuple(tables)


def _lead(comparison: Comparison) -> str:
    drawn = any(row.limit_std is not None for row in comparison.rows)
    text = "Where the limit is random, z compares means; the standard deviations stand beside."
    return " ".join([text] * drawn + [*unfitted(comparison.slopes)])


def _fitted(tables: Iterable[Table | None], most_rows: int) -> tuple[Shown, ...]:
    return tuple(
        Shown(table, table.rows[:most_rows], len(table.rows) > _FOLDED)
        for table in tables
        if table is not None and table.rows
    )


def _formulas(report: ReportInput) -> tuple[tuple[str, Formula], ...]:
    found, shown = dict(report.formulas), set[Formula]()
    if report.limit is not None:
        rows: list[ScalarRow | VectorRow] = [*report.limit.scalars, *report.limit.vectors]
        for row in rows:
            if row.formula is not None and row.formula not in shown:  # of a block for all its cells
                shown.add(row.formula)
                found.setdefault(row.name, row.formula)
    return tuple(found.items())


def _notes(report: ReportInput) -> tuple[str, ...]:
    tables = (*exponent_parts(report), report.limit, report.finite, report.comparison)
    return tuple(dict.fromkeys(note for t in tables if t is not None for note in t.notes))
