"""The nonlinearity coefficient as tables, sentences, pages and pictures."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from golden.nonlinearities import MEASURED, NONLINEARITY
from rich.console import Console
from unit.views.rendering import shown

from tpcalc.results import Estimate, Method
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.nonlinearity import (
    judge_nonlinearity,
    nonlinearity_lead,
    nonlinearity_summary,
    nonlinearity_tables,
)
from tpcalc.views.answers.nonlinearity_plot import nonlinearity_figures
from tpcalc.views.page import report

GOLDEN = Path(__file__).parents[2] / "golden" / "views"
BOTH = (NONLINEARITY, MEASURED)


def same_as_golden(text: str, name: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("TPCALC_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8", newline="\n")
    assert text == golden.read_text(encoding="utf-8")


def test_terminal_is_as_before() -> None:
    console = Console(width=120, color_system=None, highlight=False)
    with console.capture() as capture:
        for one in BOTH:
            console.print(shown(one))
    lines = (line.rstrip() for line in capture.get().splitlines())
    same_as_golden("\n".join(lines) + "\n", "nonlinearities.txt")


def test_markdown_is_as_before() -> None:
    parts = [render_markdown(ReportInput("A network", nonlinearity=one)) for one in BOTH]
    same_as_golden("\n".join(parts), "nonlinearities.md")


def test_sentences() -> None:
    assert nonlinearity_summary(NONLINEARITY) == "NLC 1.1 of two layers (mean-field recursion)."
    assert "1.111 ± 0.010 at width 512 over 4 seeds, z = 1.1" in nonlinearity_summary(MEASURED)
    assert "limit of the program" in nonlinearity_summary(replace(NONLINEARITY, route="program"))
    said = judge_nonlinearity(NONLINEARITY)
    assert (said.level, said.headline) == ("warn", "NLC 1.1")
    assert "Not met: layers of order one (q to 3)." in said.reasons
    calm = replace(NONLINEARITY, guidelines=(), stability="stable")
    assert judge_nonlinearity(calm).level == "good"
    assert "die out" in nonlinearity_lead(calm)


def test_collapsing_outputs_are_told() -> None:
    last = replace(NONLINEARITY.layers[-1], bias=Estimate(1e9, 1.0, Method.QUADRATURE))
    flat = replace(NONLINEARITY, layers=(*NONLINEARITY.layers[:-1], last))
    assert "32 bits hardly tell" in nonlinearity_lead(flat)
    said = judge_nonlinearity(flat)
    assert said.headline == "NLC 1.1, but outputs are nearly alike for all inputs"
    assert said.reasons[1].endswith("their spread is 1e-9 of their size.")


def test_headlines_say_what_a_coefficient_means() -> None:
    calm = replace(NONLINEARITY, guidelines=(), stability="stable")
    assert judge_nonlinearity(calm).headline.startswith("NLC 1.1, between 1 and 5, where")
    wild = replace(calm, nlc=Estimate(40.0, 0.0, Method.EXACT))
    assert judge_nonlinearity(wild).headline.startswith("NLC 40, above 5: such networks")
    last = replace(NONLINEARITY.layers[-1], square=Estimate(1e-9, 0.0, Method.EXACT))
    faint = replace(calm, layers=(*calm.layers[:-1], last))
    assert judge_nonlinearity(faint).headline == "NLC 1.1, but signals die out"


def test_large_numbers_and_errors_are_shown() -> None:
    layers = nonlinearity_tables(NONLINEARITY)[0]
    cells = [[cell.text for cell in row] for row in layers.rows]
    assert cells[3][6] == "e^750"  # sqrt(g) beyond what a page can compare
    assert cells[2][5] == "1.2112 ± 0.0010" and cells[2][7] == "1.21117"


def test_figures_have_a_limit_and_networks() -> None:
    plain, both = (nonlinearity_figures(one) for one in BOTH)
    assert list(plain) == ["nonlinearity"] and len(plain["nonlinearity"].panels) == 4
    assert all(len(panel.series) == 1 for panel in plain["nonlinearity"].panels)
    sweep = both["nonlinearity-widths"].panels[0]
    assert sweep.series[1].x == (128.0, 512.0)
    assert sweep.series[1].y == pytest.approx((1.1, 1.01))
    assert sweep.log_x


def test_page_has_pictures_for_each_section(tmp_path: Path) -> None:
    page = render_html(ReportInput("A network", nonlinearity=MEASURED))
    assert page.count("<svg") == 8 + 4  # panels, and signs in two legends
    assert report(MEASURED, tmp_path / "nlc.html").stat().st_size > 10_000
