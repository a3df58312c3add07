"""The tables of a report page: steps down, quantities and widths across."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tpcalc.names import Name
from tpcalc.results import PLAIN, Estimate, Method, Provenance
from tpcalc.views.labels import index, place, symbol
from tpcalc.views.numbers import ERRORS, count, duration, measured, over_seeds, with_power
from tpcalc.views.record import ReportInput
from tpcalc.views.tables import (
    Cell,
    Table,
    bounded,
    limit_cell,
    missed_note,
    number,
)
from tpcalc.views.traces import Point, Trace, spread_out

FEATURES = ("h", "x")
GRADIENTS = ("dh", "dx", "dW_x", "dB")
_STEPPED = ("f", "chi", "loss")
_WIDTHS = 5
_DIGEST = 12


def outputs(traces: Iterable[Trace], inputs: tuple[str, ...]) -> Table | None:
    """f_t step by step: the limit and each width beside it."""
    return _scalars([t for t in traces if t.key.word == "f" and t.key.step is not None], inputs)


def others(traces: Iterable[Trace], inputs: tuple[str, ...]) -> tuple[Table, ...]:
    """Every result that has no place in the scheme of f, h and x."""
    # The contribution of the last layer's update is a scalar: no column of a vector has it.
    rest = [
        t
        for t in traces
        if not _placed(t.key) or (t.key.number is not None and t.statistic == "value")
    ]
    made = [
        table
        for letter in _STEPPED[1:]
        if (
            table := _scalars(
                [t for t in traces if t.key.word == letter and _placed(t.key)], inputs
            )
        )
    ]
    scalars = [t for t in rest if t.statistic == "value"]
    vectors = [t for t in rest if t.statistic != "value"]
    if scalars:
        made.append(_named("Other scalars", scalars))
    if vectors:
        made.append(_named("Other vectors: averages over their coordinates", vectors))
    return tuple(made)


def features(
    traces: Iterable[Trace], letters: tuple[str, ...], title: str, inputs: tuple[str, ...]
) -> Table | None:
    """Mean squares of layered vectors: a column for each layer."""
    wanted = [
        t
        for t in traces
        if t.key.word in letters and t.key.number is not None and t.statistic == "second_moment"
    ]
    if not wanted:
        return None
    limits = any(t.limit for t in wanted)
    widest = max((p.width for t in wanted for p in t.points), default=0)
    columns = sorted(
        {(letters.index(t.key.word), t.key.number or 0): symbol(t.key) for t in wanted}.items()
    )
    cells = {
        (t.key.step or 0, t.key.input or 0, letters.index(t.key.word), t.key.number or 0): t
        for t in wanted
    }
    places = sorted({key[:2] for key in cells})
    several = len({where for _, where in places}) > 1
    rows: list[tuple[Cell | str, ...]] = []
    for step, where in places:
        found = (cells.get((step, where, *column)) for column, _ in columns)
        means = (_feature(trace, limits, widest) for trace in found)
        rows.append((str(step), index(Name("h", "1", step, (where,)), inputs), *means))
    head = ("#Step", several and "Input", *(number(label) for _, label in columns))
    source = "limit" if limits else f"width {count(widest)}, mean over seeds"
    of = f", {place(wanted[0].key, inputs)}" if inputs and not several else ""
    return Table.of(
        f"{title}: mean square of a coordinate ({source}{of})",
        head,
        rows,
        " ".join(
            part for part in (_methods(wanted) if limits else "", missed_note(wanted)) if part
        ),
    )


def provenance(report: ReportInput, beside: Iterable[tuple[str, Provenance]]) -> Table:
    """Where every number comes from, a column for each part of the report."""
    parts = [(title, _facts(made)) for title, made in beside]
    if report.limit is not None:
        facts = _facts(report.limit.provenance)
        found = [row.estimate for row in report.limit.scalars]
        found += [e for row in report.limit.vectors for e in (row.mean, row.second_moment)]
        parts.append(("Limit", facts | _effort(found, facts)))
    if report.finite is not None:
        facts = _facts(report.finite.provenance)
        facts["Widths"] = ", ".join(count(width) for width in report.finite.widths)
        facts["Seeds per width"] = str(report.finite.seeds)
        facts["Backend"] = report.finite.backend
        parts.append(("Finite networks", facts))
    if report.comparison is not None and (report.limit is None or report.finite is None):
        # Beside both of its sides a comparison has nothing of its own to tell.
        parts.append(("Comparison", _facts(report.comparison.provenance)))
    if report.provenance is not None:
        parts.append(("Report", _facts(report.provenance)))
    keys = list(dict.fromkeys(key for _, facts in parts for key in facts))
    # The widths, seeds and libraries read best at the end, after what identifies the run.
    keys.sort(key=lambda key: key.startswith("Library "))
    rows: list[list[Cell | str]] = []
    for key in keys:
        kind = "name" if key == "Program" else "text"
        cells = (Cell(facts.get(key, ""), kind) for _, facts in parts)
        rows.append([key.removeprefix("Library "), *cells])
    head = ("What", *(title for title, _ in parts))
    return Table.of("Where the numbers come from", head, rows)


def _placed(key: Name) -> bool:
    return key.step is not None and (key.number is not None or key.what in _STEPPED)


def _scalars(traces: list[Trace], inputs: tuple[str, ...]) -> Table | None:
    if not traces:
        return None
    several = len({(t.key.input, t.key.output) for t in traces}) > 1
    traces = sorted(traces, key=lambda t: (t.key.step, t.key.input or 0, t.key.output or 0))
    head, cells = _values(traces)
    rows = (
        (str(trace.key.step), index(trace.key, inputs), *after)
        for trace, after in zip(traces, cells, strict=True)
    )
    caption = [f"{symbol(traces[0].key)} after each step"]
    if inputs and not several and traces[0].key.input is not None:
        caption[0] += f", {place(traces[0].key, inputs)}"
    if any(t.limit for t in traces):
        caption.append("limit ± its error" if bounded(traces) else "limit ± one standard error")
    if any(t.points for t in traces):
        caption.append("networks: mean over seeds ± one standard error")
    steps = ("#Step", several and "Input", *head)
    return Table.of(" · ".join(caption), steps, rows, _remarks(traces))


def _named(caption: str, traces: list[Trace]) -> Table:
    averages = {"value": "", "mean": "mean"}
    head, cells = _values(traces)
    rows = (
        (trace.name, averages.get(trace.statistic, "mean square"), *after)
        for trace, after in zip(traces, cells, strict=True)
    )
    return Table.of(caption, ["`Name", "?Average", *head], rows, _remarks(traces))


def _values(traces: list[Trace]) -> tuple[list[str], list[list[Cell | str]]]:
    """The columns that every such table ends with: limit, method, one for each width."""
    widths = spread_out(sorted({p.width for t in traces for p in t.points}), _WIDTHS)
    head = ["?#Limit, n → ∞", "?Method", *(f"#n = {count(width)}" for width in widths)]
    cells: list[list[Cell | str]] = []
    for trace in traces:
        used = trace.limit.method if trace.limit else ""
        cells.append([limit_cell(trace), used, *(_at(trace, width) for width in widths)])
    return head, cells


def _remarks(traces: list[Trace]) -> str:
    errors = ERRORS if bounded(traces) else ""
    return " ".join(part for part in (errors, _scaled(traces), missed_note(traces)) if part)


def _at(trace: Trace, width: int) -> Cell:
    point = trace.at(width)
    if point is None:
        return number("")
    text = _point(trace, point)
    if trace.limit is not None and trace.limit.sd is not None:
        text += f", sd = {over_seeds(point.sd, point.seeds)}"
    return number(text, "" if point.mean.finite else "bad")


def _point(trace: Trace, point: Point) -> str:
    return measured(point.mean, symbol(trace.key) if trace.statistic == "value" else "")


def _feature(trace: Trace | None, limits: bool, widest: int) -> Cell:
    if trace is None:
        return number("")
    if limits:
        return limit_cell(trace)
    point = trace.at(widest)
    return number(with_power(_point(trace, point), trace.n_power) if point else "")


def _scaled(traces: list[Trace]) -> str:
    if any(t.n_power != PLAIN and t.points for t in traces):
        return "Values at finite width are divided by the power of n that the limit has taken out."
    return ""


def _methods(traces: list[Trace]) -> str:
    used = Counter(t.limit.method for t in traces if t.limit and t.limit.method)
    if not used:
        return ""
    words = ", ".join(f"{word} ({times})" for word, times in sorted(used.items()))
    bare = Method.EXACT.value in used
    errors = f" {ERRORS}" if bounded(traces) else ""
    return f"Methods: {words}.{errors}" + (
        " A number without an error is right to the digits shown." if bare else ""
    )


def _facts(origin: Provenance) -> dict[str, str]:
    facts = {"tpcalc": origin.version, "Program": origin.program_digest[:_DIGEST]}
    if origin.seed is not None:
        facts["Seed"] = str(origin.seed)
    facts |= {key.replace("_", " ").capitalize(): value for key, value in _used(origin.settings)}
    facts["Time"] = duration(origin.seconds)
    return facts | {f"Library {key}": value for key, value in origin.libraries}


def _used(settings: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """The settings without those of particles where none were run."""
    idle = [
        key.removesuffix("samples")
        for key, value in settings
        if value == "0" and key.split()[-1] == "samples"
    ]
    unused = {side + word for side in idle for word in ("samples", "replicates", "storage")}
    return ((key, value) for key, value in settings if key not in unused)


def _effort(estimates: list[Estimate], facts: dict[str, str]) -> dict[str, str]:
    found = {}
    for key in ("samples", "replicates"):
        used = sorted({getattr(e, key) for e in estimates} - {0})
        if used and key.capitalize() not in facts:
            found[key.capitalize()] = " to ".join(
                count(k) for k in dict.fromkeys((used[0], used[-1]))
            )
    return found
