"""The verdict follows from the numbers, and says what it rests on."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tpcalc.results import Comparison, FiniteRow, LimitTable, Status
from tpcalc.views import ReportInput
from tpcalc.views.content import judge, summary
from tpcalc.views.traces import gather
from tpcalc.views.view import Judgement


def verdict(report: ReportInput) -> Judgement:
    return judge(report, gather(report.limit, report.finite, report.comparison))


def words(report: ReportInput) -> str:
    return summary(report, gather(report.limit, report.finite, report.comparison))


def biased(report: ReportInput, name: str, *differences: float) -> ReportInput:
    """The report with these differences at the widths, in rising order; errors 0.01."""
    assert report.comparison is not None
    wanted = dict(zip((256, 1024, 4096), differences, strict=True))
    rows = tuple(
        replace(
            row,
            mean=row.limit + wanted[row.width],
            stderr=0.01,
            limit_stderr=0.0,
            z=wanted[row.width] / 0.01,
        )
        if row.name == name
        else row
        for row in report.comparison.rows
    )
    return replace(report, comparison=replace(report.comparison, rows=rows))


def test_agreement(report: ReportInput) -> None:
    assert verdict(report).level == "good"


def test_summary_lists_at_most_three_outputs(several_outputs: ReportInput) -> None:
    assert "(input 0, output 2) and 3 more (see the table)." in words(several_outputs)


def test_a_difference_that_shrinks_is_a_finite_width_effect(report: ReportInput) -> None:
    found = verdict(biased(report, "f[5,0]", -1.0, -0.3, -0.09))
    assert (found.level, found.headline) == (
        "warn",
        "Finite networks approach the limit, but have not reached it",
    )
    assert found.reasons[1].startswith("1 difference exceeds z = 5 at width 4096")


@pytest.mark.parametrize(
    "differences",
    [(0.09, 0.09, 0.09), (-0.08, -0.1, -0.09), (0.1, 0.1, math.nan), (0.1, 0.1, math.inf)],
)
def test_a_difference_that_stays_is_disagreement(
    report: ReportInput, differences: tuple[float, ...]
) -> None:
    # Its slopes are negative all the same.
    found = verdict(biased(report, "f[5,0]", *differences))
    assert (found.level, found.headline) == ("bad", "Finite networks disagree with the limit")


def test_missed_targets_and_foreign_programs_are_doubts(report: ReportInput) -> None:
    assert report.limit is not None
    first = report.limit.scalars[0]
    missed = replace(first.estimate, status=Status.TOLERANCE_NOT_REACHED)
    limit: LimitTable = replace(
        report.limit,
        scalars=(replace(first, estimate=missed), *report.limit.scalars[1:]),
        provenance=replace(report.limit.provenance, program_digest="other"),
    )
    found = verdict(replace(report, limit=limit))
    assert found.level == "warn"
    assert any("1 limit did not meet the error target" in reason for reason in found.reasons)
    assert any("different programs" in reason for reason in found.reasons)


def test_an_exploded_run_is_reported(report: ReportInput) -> None:
    assert report.finite is not None
    row = FiniteRow("f[5,0]", "value", 256, (math.inf, 1.0))
    kept = tuple(r for r in report.finite.rows if (r.name, r.width) != ("f[5,0]", 256))
    found = verdict(replace(report, finite=replace(report.finite, rows=(row, *kept))))
    assert any("at width 256 are not finite numbers" in reason for reason in found.reasons)


def test_parts_alone(report: ReportInput) -> None:
    limit = replace(report, finite=None, comparison=None)
    assert verdict(limit) == Judgement("info", "Not compared with finite networks")
    assert words(limit).endswith("No finite networks were run beside it.")
    finite = replace(report, limit=None, comparison=None)
    assert verdict(finite) == Judgement("info", "Finite networks only")
    assert words(finite).startswith("After 5 steps networks of width 4096 output on average f =")
    assert words(replace(report, limit=None, finite=None)) == words(report)
    empty = Comparison((), (), report.comparison.provenance) if report.comparison else None
    assert verdict(replace(report, comparison=empty)).level == "info"


def test_a_random_output_is_called_random(random_output: ReportInput) -> None:
    assert words(random_output).startswith(
        "After 2 steps the output f of the infinite-width network is random: "
        "mean 0.003 ± 0.012 and standard deviation 1.25 ± 0.11 (input 0)."
    )
