"""What a report says of orders, verdicts, learning rates, phase diagrams, kernels, experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tpcalc.results import (
    Contrast,
    DepthExperiment,
    DepthTable,
    DepthVerdict,
    Kernel,
    Nonlinearity,
    OrderRow,
    OrderTable,
    Sheets,
    Solution,
    Verdict,
)
from tpcalc.views.depth import (
    depth_lead,
    depth_profiles,
    depth_steps,
    depth_tables,
    depth_values,
    judge_depth,
)
from tpcalc.views.depth_experiment import (
    depth_experiment_figures,
    depth_experiment_lead,
    depth_experiment_tables,
    judge_depth_experiment,
)
from tpcalc.views.depth_plot import PROFILE, STEPS
from tpcalc.views.experiment import experiment_sections, experiment_summary, judge_experiment
from tpcalc.views.kernel import judge_kernel, kernel_lines, kernel_summary, kernel_tables
from tpcalc.views.nonlinearity import (
    judge_nonlinearity,
    nonlinearity_lead,
    nonlinearity_summary,
    nonlinearity_tables,
)
from tpcalc.views.orders import order_lines, order_tables, region_lines, solution_tables
from tpcalc.views.record import KINDS, ReportInput
from tpcalc.views.regimes import check_tables, judged, phase_lead, phase_tables
from tpcalc.views.sheet import judge_sheets, sheet_summary, sheet_tables
from tpcalc.views.signal import judge_signal, signal_sections, signal_summary
from tpcalc.views.tables import Part, Table
from tpcalc.views.theorems import theorem_lead, theorem_tables
from tpcalc.views.verdict import Verdict as Judgement
from tpcalc.views.versus import versus_lead, versus_tables

_Maker = Callable[[str, Any, ReportInput], Iterable[Part]]
_INCOMPLETE = Judgement("warn", "The phase diagram is not exhaustive")


def exponent_parts(report: ReportInput) -> tuple[Part, ...]:
    """The parts that a report has, in its order."""
    return tuple(
        part
        for key, make in _MAKERS.items()
        if (found := getattr(report, key)) is not None
        for part in make(key, found, report)
    )


def _alone(
    title: str, lead: Callable[[Any], str], tables: Callable[[Any], tuple[Table, ...]]
) -> _Maker:
    """What makes the one part of an answer, with its notes and its provenance."""

    def make(key: str, found: Any, report: ReportInput) -> list[Part]:
        return [Part(key, title, lead(found), tables(found), found.notes, found.provenance)]

    return make


def _several(parts: Callable[[Any], Iterable[Part]]) -> _Maker:
    """What makes several parts; the first has the notes and the provenance."""

    def make(key: str, found: Any, report: ReportInput) -> Iterator[Part]:
        more = {"notes": found.notes, "provenance": found.provenance}
        for index, part in enumerate(parts(found)):
            yield part if index else replace(part, **more)

    return make


def _check_lead(found: Verdict) -> str:
    return " ".join((judged(found).headline + ".", *region_lines(found.region, ())))


def _depth_lead(found: DepthVerdict) -> str:
    return " ".join((depth_lead(found), *region_lines(found.region, ())))


def _order_lead(found: OrderTable) -> str:
    lead = "A size is a power of the width n; bounds are marked as such."
    return " ".join((lead, *order_lines(found)))


def _solution_lead(found: Solution) -> str:
    lead = "With these exponents every update contributes Θ(1) to its preactivation."
    return " ".join((lead, *region_lines(found.region, found.point)))


def _depths(found: DepthTable) -> Iterator[Part]:
    yield Part("depths", "At infinite width", "", depth_values(found))
    if found.arrays:
        yield Part(PROFILE, "Along the depth", "", depth_profiles(found))
    if steps := depth_steps(found):
        yield Part(STEPS, "Along training", "", steps)


def _kernel(key: str, found: Kernel, report: ReportInput) -> list[Part]:
    lead = "" if _only_kernel(report) else " ".join(kernel_lines(found))
    return [Part(key, "Kernels", lead, kernel_tables(found), found.notes, found.provenance)]


def _blocks(found: DepthExperiment) -> Iterator[Part]:
    lead, tables = depth_experiment_lead(found), depth_experiment_tables(found)
    yield Part("blocks", found.title, lead, tables)
    drawn = depth_experiment_figures(found)
    for key, title in (("start", "At the start"), ("transfer", "Learning rates")):
        if key in drawn:
            yield Part(key, title, "", ())


def _versus(key: str, found: Contrast, report: ReportInput) -> list[Part]:
    title = f"{found.left.name} beside {found.right.name}"
    made = found.right.check.provenance
    return [Part(key, title, versus_lead(found), versus_tables(found), (), made)]


def _sheet(key: str, found: Sheets, report: ReportInput) -> list[Part]:
    lead = "Numbers hold for Gaussian inputs of a layer, in the limit of infinite width."
    return [Part(key, "Activations", lead, sheet_tables(found), (), found.provenance)]


def _nonlinearity(found: Nonlinearity) -> Iterator[Part]:
    lead = nonlinearity_lead(found)
    yield Part("nonlinearity", "Nonlinearity", lead, nonlinearity_tables(found))
    if len(found.widths) > 1:
        yield Part("nonlinearity-widths", "Width", "", ())


_MAKERS: dict[str, _Maker] = {
    "check": _alone("Verdict", _check_lead, check_tables),
    "depth": _alone("Depth", _depth_lead, depth_tables),
    "depths": _several(_depths),
    "theorems": _alone("Theorems", theorem_lead, theorem_tables),
    "versus": _versus,
    "orders": _alone("Orders", _order_lead, order_tables),
    "solution": _alone("Learning rates", _solution_lead, solution_tables),
    "phases": _alone("Phase diagram", phase_lead, phase_tables),
    "kernel": _kernel,
    "experiment": _several(experiment_sections),
    "blocks": _several(_blocks),
    "sheet": _sheet,
    "signal": _several(signal_sections),
    "nonlinearity": _several(_nonlinearity),
}


def _only_kernel(report: ReportInput) -> bool:
    """Whether nothing stands beside a kernel, so that the head of the report is about it."""
    given = [name for name in KINDS if getattr(report, name) is not None]
    return given == ["kernel"]


def summarize_exponents(report: ReportInput) -> str:
    """One paragraph about the answers that a report has."""
    given = ((say, getattr(report, key)) for key, say in _SUMMARIES.items())
    return " ".join(text for say, found in given if found is not None and (text := say(found)))


def _steps(count: int) -> str:
    return f"Learning-rate exponents of {count} step{'' if count == 1 else 's'}."


def _counted(rows: tuple[OrderRow, ...]) -> str:
    bounds = sum(row.status != "exact" for row in rows)
    text = f"The order of size of {len(rows)} quantit{'y' if len(rows) == 1 else 'ies'}"
    return f"{text}; {bounds} of them are upper bounds." if bounds else f"{text}, all exact."


_SUMMARIES: dict[str, Callable[[Any], str]] = {
    "theorems": lambda found: theorem_lead(found) if found.rows else "",
    "orders": lambda found: _counted(found.rows),
    "solution": lambda found: _steps(len(found.steps)),
    "phases": phase_lead,
    "kernel": kernel_summary,
    "experiment": experiment_summary,
    "blocks": lambda found: judge_depth_experiment(found).headline + ".",
    "nonlinearity": nonlinearity_summary,
    "sheet": sheet_summary,
    "signal": signal_summary,
}


def judge_exponents(report: ReportInput) -> Judgement:
    """The answer in a few words, where no limit and no networks are there to compare."""
    for key, judge in _JUDGES.items():
        found = getattr(report, key)
        said = None if found is None else judge(found, report)
        if said is not None:
            return said
    rows = report.orders.rows if report.orders is not None else ()
    bounds = [row.name for row in rows if row.status != "exact"]
    apart = [row.name for row in rows if row.agrees is False]
    if apart:
        reason = f"Slopes that do not agree with the exponents: {', '.join(apart[:3])}"
        reason += ", ..." if len(apart) > 3 else "."
        return Judgement("warn", "Some measured slopes disagree with the exponents", (reason,))
    if bounds:
        named = ", ".join(bounds[:3]) + (", ..." if len(bounds) > 3 else "")
        return Judgement("warn", "Some orders are upper bounds", (f"Bounds: {named}.",))
    return Judgement("good", "Exact exponents")


# The first of these answers that is there has the word; None: it has none.
_JUDGES: dict[str, Callable[[Any, ReportInput], Judgement | None]] = {
    "check": lambda found, _: judged(found),
    "depth": lambda found, _: judge_depth(found),
    "phases": lambda found, _: None if found.complete else _INCOMPLETE,
    "kernel": lambda found, report: judge_kernel(found) if _only_kernel(report) else None,
    "experiment": lambda found, _: judge_experiment(found),
    "blocks": lambda found, _: judge_depth_experiment(found),
    "nonlinearity": lambda found, _: judge_nonlinearity(found),
    "sheet": lambda found, _: judge_sheets(found),
    "signal": lambda found, _: judge_signal(found),
}
