"""Activation sheets as tables, pages, Markdown and pictures."""

from __future__ import annotations

from functools import lru_cache
from xml.etree import ElementTree

import pytest
from rich.console import Console
from unit.views.rendering import drawn, shown

from tpcalc.meanfield.sheet import sheet
from tpcalc.results import Sheets
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.sheet import judge_sheets, sheet_figure, sheet_summary, sheet_tables


@lru_cache(maxsize=4)
def made(*names: str) -> Sheets:
    return Sheets(tuple(sheet(name) for name in names))


def cells(found: Sheets, caption: str) -> dict[str, list[str]]:
    table = next(each for each in sheet_tables(found) if each.caption.startswith(caption))
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_one_activation_has_its_quantities_beside_each_other() -> None:
    found = made("relu")
    assert cells(found, "Inputs of length")["2"] == ["1.41421", "1", "1.21117"]
    assert cells(found, "Inputs of correlation")["0.5"] == ["0.608998", "1.13082"]
    split = cells(found, "Linear, constant")
    assert split["LAR, linear share"] == ["0.5"]
    assert split["Nonlinearity coefficient n(1, 0)"] == ["1.21117"]
    assert split["Method"] == ["closed form"]
    tanh = cells(made("tanh"), "Linear, constant")
    assert tanh["Nonlinearity coefficient n(1, 0)"] == ["1.08527"]
    assert tanh["Method"] == ["quadrature, with a bound on the error"]
    iterated = cells(found, "Covariance kernel, layer")
    assert iterated["what becomes of correlations"] == [
        "case 2: edge of chaos (homogeneous of degree 1)"
    ]
    assert iterated["depth scale"] == ["∞"]


def test_several_activations_stand_side_by_side() -> None:
    found = made("tanh", "square", "identity")
    assert [cell.text for cell in sheet_tables(found)[0].head] == [
        *("", "tanh", "poly[0, 0, 1]", "identity")
    ]
    assert len(cells(found, "n(λ², 0) for")["1"]) == 3
    assert cells(found, "Linear, constant")["the same of the nonlinear part"][2] == "none"
    ends = cells(found, "At both ends")["n(λ², 0), λ → ∞"]
    assert ends[0].endswith("· λ^0.5 (steps from one limit to another)")
    maps = cells(found, "Length kernel, layer")
    assert maps["L(λ)"] == ["all to 0", "small to 0, large to infinity", "identity"]
    assert maps["fixed points of L(λ)"][0] == "0 (slope 1, stable, M^(-1/2))"
    assert maps["fixed points of L(λ)"][2] == "all lengths"


def test_instability_is_said_first() -> None:
    said = judge_sheets(made("tanh", "square", "identity"))
    assert said.level == "warn"
    assert said.reasons[-1].startswith("Unstable: poly[0, 0, 1].")
    assert judge_sheets(made("relu")).level == "info"
    assert "case 2: edge of chaos" in sheet_summary(made("relu"))


def test_what_was_measured_says_so() -> None:
    ends = cells(made("sin"), "At both ends")
    assert ends["n(λ², 0), λ → 0"] == ["1 (slopes at 0)"]
    assert "measured: the power to" in ends["n(λ², 0), λ → ∞"][0]


def test_page_and_markdown_hold_tables_and_figures() -> None:
    given = ReportInput("Activation: relu", sheet=made("relu"))
    page, text = render_html(given), render_markdown(given)
    assert page == render_html(given)
    assert page.count("<svg") >= 5
    for words in ("Inputs of length", "Covariance kernel, layer after layer", "LBIAS grow"):
        assert words in page
        assert words in text
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(shown(made("relu")))
    assert "Normalized covariance kernel" in capture.get()


@pytest.mark.parametrize("names", [("relu",), ("tanh", "square", "identity")])
def test_figures(names: tuple[str, ...]) -> None:
    found = made(*names)
    figure = sheet_figure(found)
    assert [panel.title for panel in figure.panels][:2] == ["Activation", "Length kernel L(λ)"]
    assert [line.label for line in figure.panels[1].series][-1] == "identity"
    pictures = drawn(sheet_figure(found), "sheet")
    assert len(pictures) == len(figure.panels) == 5
    assert pictures == drawn(sheet_figure(found), "sheet")
    for svg in pictures:
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "nan" not in svg
