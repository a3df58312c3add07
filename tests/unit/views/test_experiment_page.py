"""Experiments as tables, pages and Markdown."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from golden.experiments import CURVES, RANKS
from unit.views.rendering import drawn, printed, same_as_golden, shown

from tpcalc.results import Experiment, Run
from tpcalc.results.experiment import constant_class
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.experiment import (
    experiment_sections,
    interval,
    judge_experiment,
)
from tpcalc.views.answers.experiment_plot import experiment_figures
from tpcalc.views.faces import seen

BOTH = (CURVES, RANKS)


def rows(found: Experiment, caption: str) -> dict[str, list[str]]:
    table = next(each for each in seen(found).tables if each.caption == caption)
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_terminal_is_as_before() -> None:
    same_as_golden("\n".join(printed(shown(one)) for one in BOTH), "experiments.txt")


def test_markdown_is_as_before() -> None:
    parts = [render_markdown(ReportInput(one.title, experiment=one)) for one in BOTH]
    same_as_golden("\n".join(parts), "experiments.md")


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        ((0.9, 0.92, 0.94), 0.92, 4.302652729911275 * 0.02 / math.sqrt(3)),
        ((1.0, 3.0), 2.0, 12.706204736432095),
        ((5.0,) * 5, 5.0, 0.0),
    ],
)
def test_intervals_are_students(values: tuple[float, ...], mean: float, half: float) -> None:
    assert interval(values) == pytest.approx((mean, half))


def test_intervals_that_are_none() -> None:
    assert interval((2.0,))[0] == 2.0 and math.isnan(interval((2.0,))[1])
    assert all(map(math.isnan, interval((1.0, math.inf))))
    assert all(map(math.isnan, interval(())))


def test_what_was_lost_is_a_warning() -> None:
    assert judge_experiment(CURVES).level == "warn"


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (((2.3, 180.0), (2.3, 181.0)), "The loss went up: naive-ip, relu."),
        (((2.3, 2.0), (2.3, 2.01)), "The loss went down: naive-ip, relu."),
        (((2.3, 2.0), (2.3, 2.2)), "The loss changed by less than its confidence interval: "),
        (((2.3, 2.31), (2.3, 2.29)), "The loss changed by less than 1%: naive-ip, relu."),
        (((2.3, 2.0),), "The loss went down: naive-ip, relu."),
    ],
)
def test_where_the_loss_went(losses: tuple[tuple[float, ...], ...], words: str) -> None:
    run = replace(CURVES.runs[0], losses=losses)
    (said,) = judge_experiment(replace(CURVES, runs=(run,), predicted=())).reasons
    assert said.startswith(words)


def test_a_verdict_for_some_steps_is_not_said_of_all() -> None:
    sentences = (("naive-ip, relu", "trivial at t<=1: layer 3: its updates vanish."),)
    found = replace(CURVES, runs=CURVES.runs[:1], predicted=sentences)
    assert "(in the limit: trivial at t<=1)" in judge_experiment(found).reasons[0]


def test_trials_that_end_at_different_steps() -> None:
    run = replace(CURVES.runs[3], diverged=(3, 2))
    said = judge_experiment(replace(CURVES, runs=(run,))).reasons
    assert said == ("ip-llr, tanh: 2 of 2 trials no longer finite, the first at step 2.",)


def test_one_trial_has_no_interval() -> None:
    def single(run: Run) -> Run:
        cut = {
            name: getattr(run, name)[:1] for name in ("losses", "outputs", "rates", "accuracies")
        }
        return replace(run, **cut)

    tables = tuple(seen(replace(CURVES, runs=tuple(map(single, CURVES.runs[:3])))).tables)
    notes = {table.caption: table.note for table in tables}
    for name in ("Training loss", "Test accuracy", "Base rates of the first step"):
        assert notes[name].startswith("One trial: ")
    assert (
        "Lines: one trial."
        in experiment_figures(replace(CURVES, runs=(single(CURVES.runs[0]),)))["losses"].note
    )


def test_a_trial_that_explodes_does_not_flatten_the_others() -> None:
    curves = ((0.7, 1e30, math.nan, math.nan),) * 2
    lost = replace(CURVES.runs[3], losses=curves, diverged=(2, 2))
    alone = replace(CURVES, runs=(CURVES.runs[2],))
    found = replace(CURVES, runs=(CURVES.runs[2], lost))
    heights = [
        re.findall(
            r"<text[^>]*>([^<]+)</text>", drawn(experiment_figures(each)["losses"], "losses")[0]
        )
        for each in (alone, found)
    ]
    assert heights[0] == heights[1]
    assert "A line ends where" in experiment_figures(found)["losses"].note
    assert "A line ends where" not in experiment_figures(alone)["losses"].note


def test_any_class_where_all_are_equally_frequent() -> None:
    even = replace(CURVES, shares=(("", (0.25,) * 4),))
    assert rows(even, "Test accuracy")["naive-ip, relu"][1] == "any class"
    more = replace(CURVES, shares=(("", (0.25,) * 5),))
    assert rows(more, "Test accuracy")["naive-ip, relu"][1] == "any class"
    some = replace(CURVES, shares=(("", (0.25,) * 4 + (0.0,)),))
    assert rows(some, "Test accuracy")["naive-ip, relu"][1] == "one of 4 classes"


def test_S0_34_case43_published_accuracies_of_constant_answers() -> None:
    mnist = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    shares = [count / sum(mnist) for count in mnist]
    assert constant_class(0.098, shares) == (0,)
    assert constant_class(0.113, shares, 5e-4) == (1,)
    assert constant_class(0.964, shares, 5e-4) == ()


def test_rates_at_the_cap_are_marked() -> None:
    table = next(
        each for each in seen(CURVES).tables if each.caption == "Base rates of the first step"
    )
    cells = {row[0].text: row[1:] for row in table.rows}
    assert [cell.tone for cell in cells["ip-llr, relu"]] == ["", "", "", "warn"]


def test_what_is_not_shown_is_left_out() -> None:
    keys = [section.key for section in experiment_sections(replace(CURVES, shows=("outputs",)))]
    assert keys == ["networks", "sizes"]


def test_figures() -> None:
    found = experiment_figures(CURVES)
    assert list(found) == ["losses", "sizes"]
    losses = found["losses"]
    assert [panel.title for panel in losses.panels] == ["naive-ip", "ip-llr"]
    assert [entry.label for entry in losses.legend] == ["relu", "tanh"] and losses.shared
    relu = losses.panels[1].series[0]
    assert relu.x == (0.0, 1.0, 2.0, 3.0)
    assert relu.y == pytest.approx((0.7, 0.55, 0.4, 0.25))
    assert relu.error[1] == pytest.approx(12.706204736 * 0.05)
    tanh = losses.panels[1].series[1]
    assert tanh.x == (0.0, 1.0)  # one trial is no longer finite at step 2
    assert list(experiment_figures(RANKS)) == ["ranks"]


def test_long_curves_are_averaged_in_blocks() -> None:
    curve = tuple(float(step) for step in range(400))
    run = replace(CURVES.runs[0], losses=(curve, curve))
    figure = experiment_figures(replace(CURVES, runs=(run,)))["losses"]
    line = figure.panels[0].series[0]
    assert (line.x[0], line.y[0], len(line.x)) == (1.0, 1.0, 134)
    assert (line.x[-1], line.y[-1]) == (399.0, 399.0)
    assert "up to 3 steps" in figure.note


@pytest.mark.parametrize("found", BOTH, ids=lambda one: one.name)
def test_pictures_are_well_formed_and_stay_the_same(found: Experiment) -> None:
    for key, figure in experiment_figures(found).items():
        pictures = drawn(experiment_figures(found)[key], key)
        assert len(pictures) == len(figure.panels)
        assert pictures == drawn(experiment_figures(found)[key], key)
        for picture, panel in zip(pictures, figure.panels, strict=True):
            label = ElementTree.fromstring(picture).attrib["aria-label"]
            assert label == panel.words


@pytest.mark.parametrize("found", BOTH, ids=lambda one: one.name)
def test_page(found: Experiment) -> None:
    page = render_html(ReportInput(found.title, experiment=found))
    assert "<script" not in page
    headings: list[Any] = re.findall(r"<h2 id=\"([\w-]+)\"", page)
    expected = [section.key for section in experiment_sections(found)]
    assert [key for key in headings if key in expected] == expected
    assert len(headings) == len(set(headings))
    assert page.count("<svg viewBox") == sum(
        len(figure.panels) for figure in experiment_figures(found).values()
    )


def test_without_runs_there_is_a_page_still() -> None:
    empty = Experiment("E", "nothing", "no data", (), (), (), CURVES.provenance)
    assert "nothing, on no data" in render_html(ReportInput("Empty", experiment=empty))
