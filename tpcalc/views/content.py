"""What a report says, section by section and in sentences, before it is set as a page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace

from tpcalc.names import Name
from tpcalc.results import Comparison, ComparisonRow, Formula, ScalarRow, SlopeRow, VectorRow
from tpcalc.views.answers.check import judged
from tpcalc.views.answers.limits import compared
from tpcalc.views.labels import place, sentence, symbol
from tpcalc.views.numbers import count, counted, mean_of, measured, score, spread, with_power
from tpcalc.views.panels import error_figure, feature_figure, output_figure
from tpcalc.views.pivots import FEATURES, GRADIENTS, features, others, outputs, provenance
from tpcalc.views.record import KINDS, ReportInput
from tpcalc.views.tables import (
    Table,
    uncovered_table,
)
from tpcalc.views.traces import Trace, gather
from tpcalc.views.view import Judgement, Part, View, view

_AGREE = 5.0
_NAMED = 3


def summary(report: ReportInput, traces: tuple[Trace, ...]) -> str:
    """One paragraph: what comes out, and how finite networks compare."""
    sentences = [_answer(report, traces)]
    if report.comparison is not None and report.comparison.rows:
        sentences.append(_agreement(report.comparison, report.input_names))
    elif report.finite is None:
        sentences.append("No finite networks were run beside it.")
    elif report.limit is not None:
        sentences.append("Networks of finite width were run, but not compared with the limit.")
    return " ".join(part for part in sentences if part)


def judge(report: ReportInput, traces: tuple[Trace, ...]) -> Judgement:
    """Weigh the comparison, the error targets and the origin of the tables."""
    doubts = _doubts(report, traces)
    comparison = report.comparison
    if comparison is None or not comparison.rows:
        headline = "Not compared with finite networks" if report.limit else "Finite networks only"
        return Judgement("warn" if doubts else "info", headline, doubts)
    rows = _widest(comparison)
    width, seeds = rows[0].width, rows[0].seeds
    largest = max(_size(row) for row in rows)
    beyond = [row for row in rows if not _size(row) <= _AGREE]
    reasons = [
        f"{counted(len(rows), 'comparison')} at the largest width, {count(width)}, with "
        f"{counted(seeds, 'seed')}: the largest |z| is {score(largest)}"
        + (
            f"; by chance alone about {_by_chance(len(rows)):.1f} is expected."
            if not beyond
            else "."
        )
    ]
    if not beyond:
        level, headline = "good", "Finite networks agree with the limit"
    elif all(_shrinks(comparison, row) for row in beyond):
        level, headline = "warn", "Finite networks approach the limit, but have not reached it"
        reasons.append(
            f"{_exceeding(len(beyond))} at width {count(width)}, but clearly less than at smaller "
            "widths: an effect of the finite width."
        )
    else:
        level, headline = "bad", "Finite networks disagree with the limit"
        staying = sum(not _shrinks(comparison, row) for row in beyond)
        reasons.append(
            f"{_exceeding(len(beyond))} at width {count(width)}, {count(staying)} of them no less "
            "than at smaller widths: widths too small, or an error in the program or the limit."
        )
    smaller = [r for r in comparison.rows if r.width < width and not _size(r) <= _AGREE]
    if smaller and level == "good":
        reasons.append(
            f"{_exceeding(len(smaller))} at smaller widths: there the effect of the finite width "
            "is larger than the noise."
        )
    if text := _slopes(comparison.slopes):
        reasons.append(text)
    if doubts and level == "good":
        level = "warn"
    return Judgement(level, headline, (*reasons, *doubts))


def _answer(report: ReportInput, traces: tuple[Trace, ...]) -> str:
    outputs = [t for t in traces if t.key.word == "f" and t.key.step is not None]
    limits = [t for t in outputs if t.limit is not None]
    if not limits and not any(t.points for t in outputs):
        return _named(traces)
    last = max(t.key.step or 0 for t in limits or outputs)
    final, inputs = [t for t in limits or outputs if t.key.step == last], report.input_names
    if any(t.limit is not None and t.limit.sd is not None for t in limits):
        said = "; ".join(_few([f"{_random_text(t)} ({place(t.key, inputs)})" for t in final]))
        return f"{_after(last)} the output f of the infinite-width network is random: {said}."
    subject, texts = "the infinite-width network outputs", [*map(_limit_text, final)]
    if not limits:
        width = max(p.width for t in outputs for p in t.points)
        known = [(t, p) for t in final if (p := t.at(width))]
        final, texts = [t for t, _ in known], [measured(p.mean, "f") for _, p in known]
        subject = f"networks of width {count(width)} output on average"
    several = len(final) > 1 or bool(inputs)
    parts = [
        f"f = {text}" + (f" ({place(t.key, inputs)})" if several else "")
        for t, text in zip(final, texts, strict=True)
    ]
    return f"{_after(last)} {subject} {_listed(_few(parts))}."


def _few(parts: list[str], where: str = " (see the table)") -> list[str]:
    """The first parts, and how many more there are."""
    more = len(parts) - _NAMED
    return [*parts[:_NAMED], *([f"{more} more{where}"] if more > 0 else [])]


def _random_text(trace: Trace) -> str:
    measure = trace.limit
    if measure is None or measure.sd is None:
        return _limit_text(trace)
    centre = with_power(mean_of(measure), trace.n_power)
    sd = with_power(spread(measure.sd, measure.sd_error), trace.n_power)
    return f"mean {centre} and standard deviation {sd}"


def _after(step: int) -> str:
    return {0: "Before the first step", 1: "After 1 step"}.get(step, f"After {step} steps")


def _limit_text(trace: Trace) -> str:
    return (
        with_power(measured(trace.limit, symbol(trace.key)), trace.n_power) if trace.limit else ""
    )


def _named(traces: tuple[Trace, ...]) -> str:
    shown = [t for t in traces if t.limit is not None]
    shown.sort(key=lambda t: t.statistic != "value")
    if not shown:
        widths = {p.width for t in traces for p in t.points}
        return f"{counted(len(traces), 'result')} at {counted(len(widths), 'width')}."
    parts = [f"{sentence(t.key, t.statistic)} → {_limit_text(t)}" for t in shown]
    return f"As n → ∞: {_listed(_few(parts, ''))}."


def _agreement(comparison: Comparison, inputs: tuple[str, ...]) -> str:
    rows = _widest(comparison)
    top = max(rows, key=_size)
    where = sentence(Name.tabled(top.name), top.statistic, inputs)
    width = f"Networks of width {count(top.width)}"
    scope = f"over {counted(len(rows), 'comparison')}: {where}"
    if _size(top) <= _AGREE:
        return f"{width} agree with the limit within z = {score(_size(top))} ({scope})."
    return f"{width} differ from the limit by up to z = {score(_size(top))} ({scope})."


def _doubts(report: ReportInput, traces: tuple[Trace, ...]) -> tuple[str, ...]:
    found = []
    missed = sum(1 for t in traces if t.limit and t.limit.missed)
    if missed:
        found.append(
            f"{counted(missed, 'limit')} did not meet the error target (marked †): raise "
            "max_samples or rel_error."
        )
    if report.limit is not None and report.limit.uncovered:
        lost = [row.name for row in report.limit.uncovered]
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        found.append(f"Not covered: {', '.join(lost[:_NAMED])}{more}; the table says why.")
    tables = (report.limit, report.finite)
    digests = {table.provenance.program_digest for table in tables if table is not None}
    if len(digests) > 1:
        found.append("Limit and finite networks come from different programs: see Provenance.")
    exploded = {p.width for t in traces for p in t.points if not p.mean.finite}
    if exploded:
        widths = ", ".join(count(width) for width in sorted(exploded))
        found.append(f"Some results at width {widths} are not finite numbers: the run exploded.")
    return tuple(found)


def _widest(comparison: Comparison) -> list[ComparisonRow]:
    width = max(row.width for row in comparison.rows)
    return [row for row in comparison.rows if row.width == width]


def _size(row: ComparisonRow) -> float:
    return math.inf if math.isnan(row.z) else abs(row.z)


def _shrinks(comparison: Comparison, row: ComparisonRow) -> bool:
    """Whether the difference was clearly larger at some smaller width.

    A wrong limit leaves a difference that stays; the slope of the root mean square would not
    tell, because the scatter between seeds falls with n in any case.
    """
    here = abs(row.mean - row.limit)
    return any(
        abs(other.mean - other.limit) - here > 3 * math.hypot(other.stderr, row.stderr)
        for other in comparison.rows
        if (other.name, other.statistic) == (row.name, row.statistic) and other.width < row.width
    )


def _by_chance(number: int) -> float:
    # Median of the largest of so many independent |N(0, 1)|.
    return statistics.NormalDist().inv_cdf((1 + 0.5 ** (1 / number)) / 2)


def _slopes(slopes: tuple[SlopeRow, ...]) -> str:
    fitted = [slope.slope for slope in slopes if slope.slope is not None]
    if not fitted:
        return ""
    middle = f"{statistics.median(fitted):.2f}"
    if len(fitted) == 1:
        return f"The error changes with the width as n^{middle}."
    return (
        f"The error changes with the width as n^s: median s = {middle} over {len(fitted)} "
        f"quantities, from {min(fitted):.2f} to {max(fitted):.2f}."
    )


def _exceeding(number: int) -> str:
    verb = "exceeds" if number == 1 else "exceed"
    return f"{counted(number, 'difference')} {verb} z = 5"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_NUMERIC = ("limit", "finite", "comparison")
# The first of these that has something to say in a few words has the head of the page.
_ORDER = tuple(key for key in KINDS if key not in _NUMERIC)
_UNCOVERED = "These outputs have no limit in this calculus; finite networks are shown all the same."
_SQUARES = (
    "A mean square is the average of the squared coordinates of a vector: of h before the "
    "activation, of x after it."
)


def compose(report: ReportInput) -> View:
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
    notes = (note for one in (*views, *numeric) for note in one.notes)
    return View(
        report.title,
        said,
        " ".join(filter(None, summaries)),
        tuple(parts),
        tuple(dict.fromkeys(notes)),
        text=report.program_text.rstrip(),
        model=tuple((str(key), str(value)) for key, value in report.model.items()),
        words=report.program_words,
        formulas=_formulas(report),
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
    made = outputs(traces, inputs), *others(traces, inputs)
    wide = (
        features(traces, FEATURES, "Features", inputs),
        features(traces, GRADIENTS, "Gradients and updates", inputs),
    )
    key, title, figure = "features", "Features and gradients", feature_figure(drawn, inputs)
    parts = [
        Part("outputs", "Outputs", "", _there(made), output_figure(drawn, inputs)),
        Part(key, title, _SQUARES, _there(wide), figure),
    ]
    figure = error_figure(drawn, found, inputs)
    title = "Limit against finite networks"
    beside = Part("comparison", title) if found is None else compared(found)
    parts.append(replace(beside, figure=figure))
    if report.limit is not None and report.limit.uncovered:
        lost = uncovered_table(report.limit)
        parts.append(Part("uncovered", "Not covered", _UNCOVERED, (lost,)))
    return parts


def _there(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None)


def _formulas(report: ReportInput) -> tuple[tuple[str, Formula], ...]:
    found, shown = dict(report.formulas), set[Formula]()
    if report.limit is not None:
        rows: list[ScalarRow | VectorRow] = [*report.limit.scalars, *report.limit.vectors]
        for row in rows:
            if row.formula is not None and row.formula not in shown:  # of a block for all its cells
                shown.add(row.formula)
                found.setdefault(row.name, row.formula)
    return tuple(found.items())
