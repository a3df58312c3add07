"""What a report says of orders, verdicts, learning rates, phase diagrams and kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.report.kernel import judge_kernel, kernel_lines, kernel_summary, kernel_tables
from tpcalc.report.orders import order_tables, region_lines, solution_tables
from tpcalc.report.record import KINDS, ReportInput
from tpcalc.report.regimes import check_tables, judged, phase_lead, phase_tables
from tpcalc.report.tables import Table
from tpcalc.report.verdict import Verdict as Judgement
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
        provenance: What it was computed from and with.
    """

    key: str
    title: str
    lead: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    provenance: Provenance


def exponent_parts(report: ReportInput) -> tuple[ExponentPart, ...]:
    """The parts that a report has, in its order.

    Args:
        report: The records.
    """
    found = []
    if (check := report.check) is not None:
        lead = " ".join((judged(check).headline + ".", *region_lines(check.region, ())))
        tables = check_tables(check)
        found.append(ExponentPart("check", "Verdict", lead, tables, check.notes, check.provenance))
    if (orders := report.orders) is not None:
        lead = " ".join(
            (
                "A size is a power of the width n; bounds are marked as such.",
                *region_lines(orders.region, orders.point),
            )
        )
        tables = order_tables(orders)
        found.append(
            ExponentPart("orders", "Orders", lead, tables, orders.notes, orders.provenance)
        )
    if (solution := report.solution) is not None:
        lead = " ".join(
            (
                "With these exponents every update contributes Θ(1) to its preactivation.",
                *region_lines(solution.region, solution.point),
            )
        )
        tables = solution_tables(solution)
        found.append(
            ExponentPart(
                "solution", "Learning rates", lead, tables, solution.notes, solution.provenance
            )
        )
    if (phases := report.phases) is not None:
        tables = phase_tables(phases)
        found.append(
            ExponentPart(
                "phases",
                "Phase diagram",
                phase_lead(phases),
                tables,
                phases.notes,
                phases.provenance,
            )
        )
    if (kernel := report.kernel) is not None:
        found.append(
            ExponentPart(
                "kernel",
                "Kernels",
                "" if _only_kernel(report) else " ".join(kernel_lines(kernel)),
                kernel_tables(kernel),
                kernel.notes,
                kernel.provenance,
            )
        )
    return tuple(found)


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
    if report.check is not None:
        first = f": {report.check.facts[0]}" if report.check.facts else ""
        sentences.append(f"{judged(report.check).headline}{first}.")
    if report.orders is not None:
        sentences.append(_counted(report.orders.rows))
    if report.solution is not None:
        steps = len(report.solution.steps)
        sentences.append(f"Learning-rate exponents of {steps} step{'' if steps == 1 else 's'}.")
    if report.phases is not None:
        sentences.append(phase_lead(report.phases))
    if report.kernel is not None:
        sentences.append(kernel_summary(report.kernel))
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
    if report.phases is not None and not report.phases.complete:
        return Judgement("warn", "The phase diagram is not exhaustive")
    if report.kernel is not None and _only_kernel(report):
        return judge_kernel(report.kernel)
    rows = report.orders.rows if report.orders is not None else ()
    bounds = [row.name for row in rows if row.status != "exact"]
    if bounds:
        named = ", ".join(bounds[:3]) + (", ..." if len(bounds) > 3 else "")
        return Judgement("warn", "Some orders are upper bounds", (f"Bounds: {named}.",))
    return Judgement("good", "Exact exponents")
