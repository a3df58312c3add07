"""Plots: the right numbers in them, the same bytes each time, nothing that leaks into the page."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tpcalc.results import Estimate, Exponent, LimitTable, Method, Provenance, ScalarRow
from tpcalc.views import ReportInput
from tpcalc.views.panels import Panel, Series, error_figure, feature_figure, output_figure
from tpcalc.views.plots import draw
from tpcalc.views.traces import Trace, gather

LINE = Series((0.0, 1.0, 2.0), (0.0, 0.5, 0.75), (0.1, 0.1, 0.1), "limit", "line", "limit")
DOTS = Series((0.0, 1.0, 2.0), (0.1, 0.4, 0.8), (0.1, 0.1, 0.1), "1", "dots", "n = 8")
PANEL = Panel("f", 'what "f" is & does', "step t", (LINE, DOTS))


def traces(report: ReportInput) -> tuple[Trace, ...]:
    return gather(report.limit, report.finite, report.comparison)


def test_same_bytes_and_no_trace_of_a_user_setting() -> None:
    import matplotlib

    first = draw(PANEL, "a")
    with matplotlib.rc_context(
        {"axes.facecolor": "black", "font.size": 30, "svg.fonttype": "path"}
    ):
        assert draw(PANEL, "a") == first
        assert matplotlib.rcParams["font.size"] == 30


def test_svg_is_sound_and_takes_its_colours_from_the_page() -> None:
    svg = draw(PANEL, "a")
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == 'what "f" is & does'
    assert root.get("role") == "img"
    assert not re.search(r"#[0-9a-f]{6}\b", svg)
    assert {"var(--limit)", "var(--series-1)", "var(--ink)"} <= set(
        re.findall(r"var\([^)]*\)", svg)
    )
    for banned in ("<style", "<metadata", "http", "font-family", "DejaVu", "<!--"):
        assert banned not in svg
    identifiers = re.findall(r' id="([^"]+)"', svg)
    assert len(identifiers) == len(set(identifiers))
    targets = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert {one or other for one, other in targets} == set(identifiers)
    assert all(identifier.startswith("a-") for identifier in identifiers)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 0.8, ["0", "0.2", "0.4", "0.6", "0.8"]),
        (0.0, 1.0, ["0", "0.25", "0.50", "0.75", "1.00"]),
        (-8e-7, 0.0, ["−8·10⁻⁷", "0"]),
        (0.9999, 1.0001, ["0.99990", "1.00000", "1.00010"]),
        (0.5, 0.5, ["0.48", "0.50", "0.52"]),
        (0.0, 3e6, ["0", "3·10⁶"]),
    ],
)
def test_axis_labels_are_distinct_and_round(low: float, high: float, labels: list[str]) -> None:
    series = Series((0.0, 1.0), (low, high), (0.0, 0.0), "limit", "line", "limit")
    svg = draw(Panel("f", "f", "step t", (series,)), "a")
    texts = re.findall(r"<text[^>]*text-anchor: end[^>]*>([^<]*)<", svg)
    assert set(labels) <= set(texts)
    assert len(texts) == len(set(texts)) <= 8


def test_logarithmic_axes_carry_the_widths() -> None:
    dots = Series((64.0, 256.0, 1048576.0), (1e-1, 1e-2, 3e-6), (0.0,) * 3, "0", "dots", "f")
    svg = draw(Panel("f", "f", "width n", (dots,), True, True), "a")
    texts = re.findall(r"<text[^>]*>([^<]*)<", svg)
    assert {"64", "1\u202f048\u202f576", "0.1", "10⁻⁵"} <= set(texts)


def test_outputs_one_panel_an_input(report: ReportInput) -> None:
    figure = output_figure(traces(report), ())
    assert figure is not None and figure.shared
    assert [panel.title for panel in figure.panels] == ["f, input 0", "f, input 1"]
    assert [entry.label for entry in figure.legend] == [
        "limit, n → ∞",
        "n = 256",
        "n = 1024",
        "n = 4096",
    ]
    line = figure.panels[0].series[0]
    assert line.x == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    assert line.y[5] == pytest.approx(0.80514, abs=1e-5)
    assert line.error[5] == 8.4e-4


def test_at_most_six_panels(several_outputs: ReportInput) -> None:
    assert several_outputs.limit is not None
    more = replace(several_outputs.limit.scalars[0], name="f[0,2,0]")
    scalars = (*several_outputs.limit.scalars, more)
    limit = replace(several_outputs.limit, scalars=scalars)
    figure = output_figure(traces(replace(several_outputs, limit=limit)), ())
    assert figure is not None
    assert len(figure.panels) == 6
    assert "The first 6 of 7 are drawn" in figure.note


def test_random_outputs_show_their_spread(random_output: ReportInput) -> None:
    figure = output_figure(traces(random_output), ())
    assert figure is not None
    assert figure.panels[0].series[0].error == (1.25, 1.25, 1.25)
    assert "random in the limit" in figure.note
    assert error_figure(traces(random_output), random_output.comparison, ()) is None


def test_features_are_limits_beside_the_widest(report: ReportInput) -> None:
    figure = feature_figure(traces(report), ("sample", "query"))
    assert figure is not None
    assert [panel.title for panel in figure.panels] == [
        "mean square of h, sample",
        "mean square of x, sample",
        "mean square of h, query",
        "mean square of x, query",
    ]
    assert {series.shape for series in figure.panels[0].series} == {"line", "dots"}
    assert "4096" in figure.note


def test_fitted_lines_have_the_fitted_slopes(report: ReportInput) -> None:
    figure = error_figure(traces(report), report.comparison, ())
    assert figure is not None and not figure.shared
    assert [panel.title for panel in figure.panels] == [
        "outputs after step 5",
        "feature norms after step 5",
    ]
    from math import log

    lines = [s for s in figure.panels[0].series if s.shape == "line"]
    slopes = [log(s.y[-1] / s.y[0]) / log(s.x[-1] / s.x[0]) for s in lines]
    assert slopes == pytest.approx([-0.50, -0.51])
    guide = figure.panels[0].series[-1]
    assert guide.y[1] / guide.y[0] == pytest.approx((256 / 4096) ** 0.5)


def test_one_width_has_no_slope_to_draw(report: ReportInput) -> None:
    assert report.finite is not None
    rows = tuple(row for row in report.finite.rows if row.width == 256)
    alone = replace(
        report, finite=replace(report.finite, rows=rows, widths=(256,)), comparison=None
    )
    assert error_figure(traces(alone), None, ()) is None


def test_steps_of_another_power_of_n_are_not_drawn_together() -> None:
    rows = [
        ScalarRow(
            f"f[{t},0]",
            Estimate(1.0 + t, 0.1, Method.PARTICLES),
            Exponent.of("-1") if t == 0 else "0",
        )
        for t in range(3)
    ]
    limit = LimitTable(tuple(rows), (), Provenance("0", "ab"))
    figure = output_figure(gather(limit, None, None), ())
    assert figure is not None
    assert figure.panels[0].series[0].x == (1.0, 2.0)
    assert "n^(-1)" in figure.note
