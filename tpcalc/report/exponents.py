"""What a report says of orders, verdicts, learning rates, phase diagrams, kernels, experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tpcalc.report.depth import (
    depth_lead,
    depth_profiles,
    depth_steps,
    depth_tables,
    depth_values,
    judge_depth,
)
from tpcalc.report.depth_experiment import (
    depth_experiment_figures,
    depth_experiment_lead,
    depth_experiment_tables,
    judge_depth_experiment,
)
from tpcalc.report.depth_plot import PROFILE, STEPS
from tpcalc.report.experiment import (
    experiment_sections,
    experiment_summary,
    judge_experiment,
)
from tpcalc.report.kernel import judge_kernel, kernel_lines, kernel_summary, kernel_tables
from tpcalc.report.nonlinearity import (
    judge_nonlinearity,
    nonlinearity_lead,
    nonlinearity_summary,
    nonlinearity_tables,
)
from tpcalc.report.orders import order_lines, order_tables, region_lines, solution_tables
from tpcalc.report.record import KINDS, ReportInput
from tpcalc.report.regimes import check_tables, judged, phase_lead, phase_tables
from tpcalc.report.sheet import judge_sheets, sheet_summary, sheet_tables
from tpcalc.report.signal import judge_signal, signal_sections, signal_summary
from tpcalc.report.tables import Table
from tpcalc.report.theorems import theorem_lead, theorem_tables
from tpcalc.report.verdict import Verdict as Judgement
from tpcalc.report.versus import versus_lead, versus_tables
from tpcalc.results import OrderRow, Provenance

__all__ = ["ExponentPart", "exponent_parts", "judge_exponents", "summarize_exponents"]


@dataclass(frozen=True, slots=True)
class ExponentPart:
    """One such answer as a part of a report.

    Args:
        key: The field of ``ReportInput`` that holds it.
        title: Its heading.
        lead: What stands above its tables.
        tables: Its tables.
        notes: What a reader should know besides.
        provenance: What it was computed from and with; None where another part of the same
            answer says it.
    """

    key: str
    title: str
    lead: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    provenance: Provenance | None


def exponent_parts(report: ReportInput) -> tuple[ExponentPart, ...]:
    """The parts that a report has, in its order.

    Args:
        report: The records.
    """
    return tuple(
        part
        for key, make in _MAKERS.items()
        if getattr(report, key) is not None
        for part in make(report)
    )


def _check(report: ReportInput) -> Iterable[ExponentPart]:
    if (check := report.check) is not None:
        lead = " ".join((judged(check).headline + ".", *region_lines(check.region, ())))
        tables = check_tables(check)
        yield ExponentPart("check", "Verdict", lead, tables, check.notes, check.provenance)


def _depth(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.depth) is not None:
        lead = " ".join((depth_lead(found), *region_lines(found.region, ())))
        tables = depth_tables(found)
        yield ExponentPart("depth", "Depth", lead, tables, found.notes, found.provenance)


def _depths(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.depths) is not None:
        tables, made = depth_values(found), found.provenance
        yield ExponentPart("depths", "At infinite width", "", tables, found.notes, made)
        if found.arrays:
            yield ExponentPart(PROFILE, "Along the depth", "", depth_profiles(found), (), None)
        if steps := depth_steps(found):
            yield ExponentPart(STEPS, "Along training", "", steps, (), None)


def _theorems(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.theorems) is not None:
        lead, tables = theorem_lead(found), theorem_tables(found)
        yield ExponentPart("theorems", "Theorems", lead, tables, found.notes, found.provenance)


def _orders(report: ReportInput) -> Iterable[ExponentPart]:
    if (orders := report.orders) is not None:
        lead = "A size is a power of the width n; bounds are marked as such."
        lead = " ".join((lead, *order_lines(orders)))
        tables = order_tables(orders)
        yield ExponentPart("orders", "Orders", lead, tables, orders.notes, orders.provenance)


def _solution(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.solution) is not None:
        lead = "With these exponents every update contributes Θ(1) to its preactivation."
        lead = " ".join((lead, *region_lines(found.region, found.point)))
        tables = solution_tables(found)
        made = found.provenance
        yield ExponentPart("solution", "Learning rates", lead, tables, found.notes, made)


def _phases(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.phases) is not None:
        lead, tables = phase_lead(found), phase_tables(found)
        yield ExponentPart("phases", "Phase diagram", lead, tables, found.notes, found.provenance)


def _kernel(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.kernel) is not None:
        lead = "" if _only_kernel(report) else " ".join(kernel_lines(found))
        tables = kernel_tables(found)
        yield ExponentPart("kernel", "Kernels", lead, tables, found.notes, found.provenance)


def _experiment(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.experiment) is not None:
        for index, section in enumerate(experiment_sections(found)):
            notes, made = ((), None) if index else (found.notes, found.provenance)
            yield ExponentPart(
                section.key, section.title, section.lead, section.tables, notes, made
            )


def _blocks(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.blocks) is not None:
        lead, tables = depth_experiment_lead(found), depth_experiment_tables(found)
        yield ExponentPart("blocks", found.title, lead, tables, found.notes, found.provenance)
        drawn = depth_experiment_figures(found)
        for key, title in (("start", "At the start"), ("transfer", "Learning rates")):
            if key in drawn:
                yield ExponentPart(key, title, "", (), (), None)


def _versus(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.versus) is not None:
        title = f"{found.left.name} beside {found.right.name}"
        made = found.right.check.provenance
        yield ExponentPart("versus", title, versus_lead(found), versus_tables(found), (), made)


def _sheet(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.sheet) is not None:
        lead = "Numbers hold for Gaussian inputs of a layer, in the limit of infinite width."
        made = found.sheets[0].provenance
        yield ExponentPart("sheet", "Activations", lead, sheet_tables(found), (), made)


def _nonlinearity(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.nonlinearity) is not None:
        lead = nonlinearity_lead(found)
        tables, made = nonlinearity_tables(found), found.provenance
        yield ExponentPart("nonlinearity", "Nonlinearity", lead, tables, found.notes, made)
        if len(found.widths) > 1:
            yield ExponentPart("nonlinearity-widths", "Width", "", (), (), None)


def _signal(report: ReportInput) -> Iterable[ExponentPart]:
    if (found := report.signal) is not None:
        for index, part in enumerate(signal_sections(found)):
            notes, made = ((), None) if index else (found.notes, found.provenance)
            yield ExponentPart(part.key, part.title, part.lead, part.tables, notes, made)


_MAKERS: dict[str, Callable[[ReportInput], Iterable[ExponentPart]]] = {
    "check": _check,
    "depth": _depth,
    "depths": _depths,
    "theorems": _theorems,
    "versus": _versus,
    "orders": _orders,
    "solution": _solution,
    "phases": _phases,
    "kernel": _kernel,
    "experiment": _experiment,
    "blocks": _blocks,
    "sheet": _sheet,
    "signal": _signal,
    "nonlinearity": _nonlinearity,
}


def _only_kernel(report: ReportInput) -> bool:
    """Whether nothing stands beside a kernel, so that the head of the report is about it."""
    given = [name for name in KINDS if getattr(report, name) is not None]
    return given == ["kernel"]


def summarize_exponents(report: ReportInput) -> str:
    """One paragraph about the answers that a report has.

    Args:
        report: The records.
    """
    sentences = []
    if report.theorems is not None and report.theorems.rows:
        sentences.append(theorem_lead(report.theorems))
    if report.orders is not None:
        sentences.append(_counted(report.orders.rows))
    if report.solution is not None:
        steps = len(report.solution.steps)
        sentences.append(f"Learning-rate exponents of {steps} step{'' if steps == 1 else 's'}.")
    if report.phases is not None:
        sentences.append(phase_lead(report.phases))
    if report.kernel is not None:
        sentences.append(kernel_summary(report.kernel))
    if report.experiment is not None:
        sentences.append(experiment_summary(report.experiment))
    if report.blocks is not None:
        sentences.append(judge_depth_experiment(report.blocks).headline + ".")
    if report.nonlinearity is not None:
        sentences.append(nonlinearity_summary(report.nonlinearity))
    if report.sheet is not None:
        sentences.append(sheet_summary(report.sheet))
    if report.signal is not None:
        sentences.append(signal_summary(report.signal))
    return " ".join(sentences)


def _counted(rows: tuple[OrderRow, ...]) -> str:
    bounds = sum(row.status != "exact" for row in rows)
    text = f"The order of size of {len(rows)} quantit{'y' if len(rows) == 1 else 'ies'}"
    return f"{text}; {bounds} of them are upper bounds." if bounds else f"{text}, all exact."


def judge_exponents(report: ReportInput) -> Judgement:
    """The answer in a few words, where no limit and no networks are there to compare.

    Args:
        report: The records.
    """
    if report.check is not None:
        return judged(report.check)
    if report.depth is not None:
        return judge_depth(report.depth)
    if report.phases is not None and not report.phases.complete:
        return Judgement("warn", "The phase diagram is not exhaustive")
    if report.kernel is not None and _only_kernel(report):
        return judge_kernel(report.kernel)
    if report.experiment is not None:
        return judge_experiment(report.experiment)
    if report.blocks is not None:
        return judge_depth_experiment(report.blocks)
    if report.nonlinearity is not None:
        return judge_nonlinearity(report.nonlinearity)
    if report.sheet is not None:
        return judge_sheets(report.sheet)
    if report.signal is not None:
        return judge_signal(report.signal)
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
