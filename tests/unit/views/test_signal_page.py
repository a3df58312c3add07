"""Signals in deep networks as tables, sentences, pages and pictures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from unit.views.rendering import drawn, printed, shown

from tpcalc.meanfield.survey import survey
from tpcalc.results import Estimate, Method, Scale, Signal
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.signal import judge_signal, signal_lead, signal_summary
from tpcalc.views.answers.signal_plot import signal_figures
from tpcalc.views.faces import seen


@pytest.fixture(scope="module")
def low_rank() -> Signal:
    return survey("erf", 6.0, 0.4, rank=0.25, depth=20)


@pytest.fixture(scope="module")
def edge() -> Signal:
    return survey("relu", 2.0, depth=5)


def test_sentences(low_rank: Signal, edge: Signal) -> None:
    assert signal_summary(low_rank).startswith("20 layers of erf with gaussian weights of rank")
    assert "act like σ_w² = 1.5 and σ_b² = 0.1" in signal_lead(low_rank)
    said = judge_signal(low_rank)
    assert (said.level, said.headline) == ("good", "Ordered phase: inputs become alike")
    assert "ξ_c = 63.43 layers; 20 layers are 0.315 times that" in said.reasons[0]
    deep = replace(low_rank, depth=400)
    assert judge_signal(deep).level == "warn"
    assert judge_signal(edge).headline == "At the edge of chaos"
    wild = replace(low_rank, gradient=replace(low_rank.gradient, value=40.0))
    assert judge_signal(wild).level == "warn" and "grow" in judge_signal(wild).reasons[1]


def test_tables(low_rank: Signal, edge: Signal) -> None:
    text = printed(shown(low_rank))
    assert re.search(r"χ +0\.984359 ", text) and re.search(r"ξ_c +63\.4\d+", text)
    assert "gaussian (this one)" in text and "W^T W is diagonal" in text
    assert "0.25 N" in text and "self" not in text
    # A scale that is not told from infinity is a bound, and no number.
    text = printed(shown(edge))
    assert re.search(r"ξ_c +∞ \(at least 1\.1e15\)", text) and "every" in text
    zero = Scale(Estimate(float("inf"), 0.0, Method.EXACT))
    assert re.search(r"ξ_q +0 ", printed(shown(replace(edge, length_scale=zero))))


def test_every_table_has_its_columns(low_rank: Signal) -> None:
    several = replace(low_rank, fixed_points=low_rank.fixed_points * 2)
    tables = tuple(seen(several).tables)
    assert len(tables) == 5
    for table in tables:
        assert all(len(row) == len(table.head) for row in table.rows) and table.rows


def test_a_page_with_its_pictures(low_rank: Signal) -> None:
    page = render_html(ReportInput("Signals", signal=low_rank))
    assert page == render_html(ReportInput("Signals", signal=low_rank))
    assert page.count('role="img"') == 7 and "<script" not in page
    assert "Length map: q of the next layer" in page
    for title in ("Lengths and correlations", "Edge of chaos", "Jacobian"):
        assert f">{title}</h2>" in page
    text = render_markdown(ReportInput("Signals", signal=low_rank))
    assert "Squared singular values of the Jacobian of 20 layers" in text
    assert "standard deviation of 0.1414" in text


def test_what_there_is_no_picture_of(edge: Signal) -> None:
    """Relu has its edge at one point of the plane, and no scales without biases."""
    figures = signal_figures(edge)
    assert sorted(figures) == ["signal", "signal-spectrum"]
    assert all("svg" in picture for key in figures for picture in drawn(figures[key], key))


def test_a_chaotic_network_shows_both_fixed_points() -> None:
    found = survey("erf", 3.0, 0.1, depth=10)
    figures = signal_figures(found)
    labels = [entry.label for entry in figures["signal"].panels[1].legend]
    assert labels[-2:] == ["stable", "unstable"]
    assert "negative: growth" in printed(shown(found))
    assert figures["signal-edge"].panels[0].title == "Phases"
