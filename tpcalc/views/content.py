"""What a report says, section by section, before it is set as a page or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tpcalc.results import Formula, ScalarRow, VectorRow
from tpcalc.views.answers.check import judged
from tpcalc.views.answers.limits import compared
from tpcalc.views.panels import Figure, error_figure, feature_figure, output_figure
from tpcalc.views.pivots import FEATURES, GRADIENTS, features, others, outputs, provenance
from tpcalc.views.record import KINDS, ReportInput
from tpcalc.views.tables import (
    Cell,
    Table,
    uncovered_table,
)
from tpcalc.views.traces import Trace, gather
from tpcalc.views.verdict import judge, summary
from tpcalc.views.view import Judgement, Part, View, view

PROGRAM_LINES = 400
"""Lines of a program text that a report shows."""

_FOLDED = 8
_FORMULAS = 40
_NUMERIC = ("limit", "finite", "comparison")
# The first of these that has something to say in a few words has the head of the page.
_ORDER = tuple(key for key in KINDS if key not in _NUMERIC)
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
    """A heading with its tables and its figure; ``key`` names it for links."""

    key: str
    title: str
    lead: str
    tables: tuple[Shown, ...]
    figure: Figure | None


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that both kinds of report show."""

    title: str
    summary: str
    verdict: Judgement | None
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    model: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    program: str = ""
    program_left_out: int = 0
    formulas: tuple[tuple[str, Formula], ...] = ()
    formulas_left_out: int = 0

    @property
    def picture(self) -> Section | None:
        """The section whose figure opens the page: outputs of a training run, else the first."""
        drawn = [part for part in self.sections if part.figure is not None]
        return next((part for part in drawn if part.key == "outputs"), next(iter(drawn), None))


def content_of(shown: View, most_rows: int) -> Content:
    """Lay out an answer alone."""
    sections = _laid(shown.parts, most_rows)
    return Content(
        shown.title, shown.summary, shown.said, sections, shown.notes, program=shown.text
    )


def compose(report: ReportInput, most_rows: int) -> Content:
    """Lay out a report."""
    traces = gather(report.limit, report.finite, report.comparison)
    views = [view(found) for key in _ORDER if (found := getattr(report, key)) is not None]
    numeric = tuple(found for key in _NUMERIC if (found := getattr(report, key)) is not None)
    head = next((one for one in views if one.said is not None), None)
    said = head.said if head is not None else None
    if numeric:
        said = _joint(report, said, traces)
    parts = [part for one in views for part in (one if one is head else one.below()).parts]
    summaries = [head.summary] if head is not None else []
    if numeric:
        parts += _numeric(report, traces)
        summaries.append(summary(report, traces))
    origin = provenance(report, [(one.title, one.provenance) for one in views if one.provenance])
    parts.append(Part("provenance", "Provenance", "", (origin,)))
    lines = report.program_text.rstrip().splitlines()
    formulas = _formulas(report)
    notes = (note for one in (*views, *numeric) for note in one.notes)
    return Content(
        title=report.title,
        summary=" ".join(filter(None, summaries)),
        verdict=said,
        sections=_laid(parts, most_rows),
        notes=tuple(dict.fromkeys(notes)),
        model=tuple((str(key), str(value)) for key, value in report.model.items()),
        words=report.program_words,
        program="\n".join(lines[:PROGRAM_LINES]),
        program_left_out=max(0, len(lines) - PROGRAM_LINES),
        formulas=formulas[:_FORMULAS],
        formulas_left_out=max(0, len(formulas) - _FORMULAS),
    )


def _joint(report: ReportInput, said: Judgement | None, traces: tuple[Trace, ...]) -> Judgement:
    """What the box at the head says: the verdict where there is one, and the agreement below it."""
    agreement = judge(report, traces)
    if report.check is None or said is None:
        return agreement if "Verdict" not in report.model else _without(report, agreement)
    beside = []
    if report.check.exploded is not None:
        beside.append(report.check.exploded.text)
    if report.versus is not None:
        other = report.versus.right
        beside.append(f"{other.name}, beside it: {judged(other.check).headline}.")
    headline, level = said.headline, said.level
    if agreement.level == "bad":  # what finite networks contradict is no good news
        headline = f"{headline}; but {agreement.headline[0].lower()}{agreement.headline[1:]}"
        level = "bad" if level == "bad" else "warn"
    beside += [f"{agreement.headline}.", *agreement.reasons]
    return Judgement(level, headline, (*said.reasons, *beside))


def _without(report: ReportInput, agreement: Judgement) -> Judgement:
    """The box of a network that is trained and has no verdict."""
    level = agreement.level if agreement.level in ("bad", "warn") else "info"
    reasons = (f"{agreement.headline}.", *agreement.reasons)
    return Judgement(level, f"No verdict: {report.model['Verdict']}", reasons)


def _numeric(report: ReportInput, traces: tuple[Trace, ...]) -> list[Part]:
    """Limits and finite networks together: outputs, features, differences, what has no limit."""
    end = report.limit.exploded if report.limit is not None else None
    # Numbers of later steps leave no room for earlier ones.
    drawn = tuple(t for t in traces if end is None or not end.precedes(t.name))
    inputs, found = report.input_names, report.comparison
    wide = (
        features(traces, FEATURES, "Features", inputs),
        features(traces, GRADIENTS, "Gradients and updates", inputs),
    )
    parts = [
        Part(
            "outputs",
            "Outputs",
            "",
            _there(outputs(traces, inputs), *others(traces, inputs)),
            output_figure(drawn, inputs),
        ),
        Part(
            "features",
            "Features and gradients",
            "A mean square is the average of the squared coordinates of a vector: of h before the "
            "activation, of x after it.",
            _there(*wide),
            feature_figure(drawn, inputs),
        ),
    ]
    figure = error_figure(drawn, found, inputs)
    title = "Limit against finite networks"
    beside = Part("comparison", title) if found is None else compared(found)
    parts.append(replace(beside, figure=figure))
    if report.limit is not None and report.limit.uncovered:
        lost = uncovered_table(report.limit)
        parts.append(Part("uncovered", "Not covered", _UNCOVERED, (lost,)))
    return parts


def _there(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None and table.rows)


def _laid(parts: Iterable[Part], most_rows: int) -> tuple[Section, ...]:
    return tuple(
        Section(part.key, part.title, part.lead, shown, part.figure)
        for part in parts
        if (shown := _fitted(part.tables, most_rows)) or part.figure is not None or part.lead
    )


def _fitted(tables: Iterable[Table], most_rows: int) -> tuple[Shown, ...]:
    return tuple(
        Shown(table, table.rows[:most_rows], len(table.rows) > _FOLDED)
        for table in tables
        if table.rows
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
