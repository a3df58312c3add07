"""The nonlinearity coefficient as tables, sentences, pages and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from golden.nonlinearities import MEASURED, NONLINEARITY
from unit.views.rendering import printed, same_as_golden, shown

from tpcalc.results import Estimate, Method
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.nonlinearity import (
    judge_nonlinearity,
    nonlinearity_lead,
    nonlinearity_summary,
)
from tpcalc.views.answers.nonlinearity_plot import nonlinearity_figures
from tpcalc.views.page import report

BOTH = (NONLINEARITY, MEASURED)


def test_terminal_is_as_before() -> None:
    same_as_golden(printed(*map(shown, BOTH)), "nonlinearities.txt")


def test_markdown_is_as_before() -> None:
    parts = [render_markdown(ReportInput("A network", nonlinearity=one)) for one in BOTH]
    same_as_golden("\n".join(parts), "nonlinearities.md")


def test_sentences() -> None:
    assert "limit of the program" in nonlinearity_summary(replace(NONLINEARITY, route="program"))
    assert judge_nonlinearity(NONLINEARITY).level == "warn"
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
