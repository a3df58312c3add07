"""Tables in the terminal and in notebooks."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

from golden.kernels import SAMPLED
from rich.console import Console, RenderableType
from unit.views.rendering import shown

from tpcalc.results import (
    Estimate,
    Exponent,
    LimitTable,
    Method,
    Provenance,
    ScalarRow,
    SlopeRow,
    Status,
)
from tpcalc.views import ReportInput
from tpcalc.views.faces import html
from tpcalc.views.tables import z_cell


def printed(renderable: RenderableType, width: int = 120, colour: bool = False) -> str:
    console = Console(
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=False,
        _environ={"TERM": "xterm"},
    )
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def table(*rows: ScalarRow) -> LimitTable:
    return LimitTable(rows, (), Provenance("0", "ab"), notes=("a [bold]note[/bold]",))


def test_limits_show_error_method_and_power() -> None:
    text = printed(
        shown(
            table(
                ScalarRow("f[1,0]", Estimate(0.31841, 0.0012, Method.PARTICLES)),
                ScalarRow("f[0,0]", Estimate(0.0, 1e-4, Method.PARTICLES), Exponent.of("-1")),
                ScalarRow(
                    "m",
                    Estimate(2.0, 0.1, Method.PARTICLES, status=Status.TOLERANCE_NOT_REACHED),
                ),
            )
        )
    )
    assert re.search(r"f\[1,0\] +0\.3184 ± 0\.0012 +particles", text)
    assert re.search(r"f\[0,0\] +n\^-1 × \(0 ± 1e-4\) +particles", text)
    assert re.search(r"m +2\.00 ± 0\.10 † +particles", text)
    assert "† the error target was not met" in text
    assert "a [bold]note[/bold]" in text


def test_blocks_of_many_numbers_are_told_by_their_ends() -> None:
    rows = [
        ScalarRow(f"f[3,{b},{k}]", Estimate(b / 60 - k, 0.002 + b / 1e4, Method.PARTICLES))
        for b in range(60)
        for k in range(10)
    ]
    rows[5] = replace(rows[5], estimate=Estimate(0.0, 0.0, Method.EXACT))
    text = printed(shown(table(*rows, ScalarRow("m", Estimate(2.0, 0.0, Method.EXACT)))))
    assert re.search(r"f\[3,:,:\] +599 +-9\.0000 ± 0\.0020 +0\.9833 ± 0\.0079 +particles", text)
    assert re.search(r"f\[3,0,5\] +1 +0 +0 +exact", text)
    assert re.search(r"m +1 +2 +2 +exact", text)
    assert "limit.array(pattern)" in text
    few = printed(shown(table(*rows[:500])))
    assert "f[3,49,9]" in few and "limit.array" not in few


def test_vectors_and_finite_tables(report: ReportInput) -> None:
    assert report.limit is not None and report.finite is not None
    text = printed(shown(report.limit))
    assert re.search(r"h\[2,3,0\] +0\.0021 ± 0\.0012 +1\.3600 ± 0\.0023 +particles", text)
    text = printed(shown(report.finite))
    assert re.search(r"f\[5,0\] +value +4096 +0\.80\d+ ± 0\.00\d+ +0\.0\d+ ± 0\.00\d+ +16", text)


def test_scores_are_coloured(report: ReportInput) -> None:
    assert [z_cell(z).tone for z in (3.0, -3.1, 5.1, float("nan"))] == ["", "warn", "bad", "bad"]
    assert report.comparison is not None
    row = report.comparison.rows[0]
    rows = (replace(row, z=1.0), replace(row, z=-4.0), replace(row, z=6.0))
    text = printed(shown(replace(report.comparison, rows=rows)), colour=True)
    assert re.search(r"\x1b\[33m *-4\.0", text)
    assert re.search(r"\x1b\[1;31m *6\.0", text)
    assert re.search(r"f +0 +0 +256 +0 ± 1\.3e-4 +\S+ ± \S+ +1\.0 ", text)


def test_slopes_show_interval_or_reason(report: ReportInput) -> None:
    assert report.comparison is not None
    slopes = (
        SlopeRow("f[5,0]", "value", -0.512, -0.61, -0.42),
        SlopeRow("f[0,0]", "value", None, None, None, "random in the limit"),
    )
    text = printed(shown(replace(report.comparison, slopes=slopes)))
    assert re.search(r"f +5 +0 +-0\.51 +-0\.61 to -0\.42", text)
    assert re.search(r"f +0 +0 +random in the limit", text)


def test_slopes_that_two_widths_do_not_give_are_one_note(report: ReportInput) -> None:
    assert report.comparison is not None
    reason = "2 widths; a slope needs at least 3"
    slopes = tuple(SlopeRow(f"f[{t},0]", "value", None, None, None, reason) for t in range(3))
    found = replace(report.comparison, slopes=slopes)
    for text in (printed(shown(found)), html(found)):
        assert text.count("a slope needs") == 1 and "95 % interval" not in text
        assert f"No slopes were fitted: {reason}." in text


def test_a_narrow_terminal_loses_no_number(report: ReportInput) -> None:
    assert report.comparison is not None
    text = printed(shown(replace(report.comparison, slopes=())), width=80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_long_comparison_keeps_its_largest_differences(report: ReportInput) -> None:
    assert report.comparison is not None and report.limit is not None
    largest = max(report.comparison.rows, key=lambda row: abs(row.z))
    text = printed(shown(report.comparison, most=8))
    table = text[text.index("The 8 largest differences of 360") :]
    assert f"{largest.z:.1f}" in table.splitlines()[4]
    assert "12 more rows." in text and "352 more rows." in text  # of 20 slopes, of 360 differences
    assert "7 more rows." in printed(shown(report.limit, most=5))


def test_notebook_tables(report: ReportInput) -> None:
    assert report.limit is not None and report.finite is not None and report.comparison is not None
    for text in (
        html(report.limit),
        html(report.finite),
        html(report.comparison),
    ):
        assert text.count("<table>") == text.count("</table>") == text.count("<caption") > 0
        assert "<script" not in text and "http" not in text
    assert "69 more rows" in html(report.limit)
    assert "−0.50" in html(report.comparison)
    hostile = table(ScalarRow("<b>", Estimate(1.0, 0.0, Method.EXACT)))
    assert "<code>&lt;b&gt;</code>" in html(hostile)


def test_importing_the_reports_loads_nothing_heavy() -> None:
    code = (
        "import sys; import tpcalc.views, tpcalc.views.terminal; "
        "print([m for m in ('matplotlib', 'jinja2', 'rich', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_cut_where_a_matrix_is_wide() -> None:
    text = printed(shown(SAMPLED), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert "more columns." in text and " Input " in text
    for number in re.findall(r"± (\S*)", text):
        assert re.fullmatch(r"[\d.]+\d", number)
    head = [line for line in text.splitlines() if line.startswith(" Input ")]
    assert all(len(line.split()) >= 2 for line in head)
    assert "more column" not in printed(shown(SAMPLED), width=200)


def test_long_limits_are_folded_and_not_cut() -> None:
    rows = table(ScalarRow("f[0,0]", Estimate(0.287785755, 8.5e-15, Method.QUADRATURE, std=0.4)))
    for width in (45, 80):
        text = printed(shown(rows), width=width)
        for word in ("0.287785755", "1e-14)", "quadrature", "0.4", "bound"):
            assert word in text


def test_quadrature_is_said_to_be_a_bound() -> None:
    bound = table(ScalarRow("f", Estimate(0.3, 1e-4, Method.QUADRATURE)))
    assert "a bound on the error where it is quadrature" in printed(shown(bound))
    assert "a bound on the error where it is quadrature" in html(bound)
    sampled = table(ScalarRow("f", Estimate(0.3, 1e-4, Method.PARTICLES)))
    assert "a bound" not in printed(shown(sampled)) + html(sampled)


def test_a_comparison_gives_a_random_limit_its_mean(report: ReportInput) -> None:
    assert report.comparison is not None
    row = replace(
        report.comparison.rows[0], limit=0.0, limit_stderr=0.0, limit_std=0.4, finite_std=0.5
    )
    text = printed(shown(replace(report.comparison, rows=(row,), slopes=())))
    assert "0, sd = 0.4" in text and "|f|" not in text
