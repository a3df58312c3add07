"""Studies of residual networks at the start and trained: files, numbers, pages."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import StudyError, UsageError
from tpcalc.experiments.depth import depth_experiment
from tpcalc.experiments.plans import depth_plan_of, load_depth_experiment
from tpcalc.questions.depth.check import critical_powers
from tpcalc.questions.depth.shape import block_at_start, start_of
from tpcalc.results import DepthExperiment
from tpcalc.views.answers.depth_experiment import (
    depth_experiment_figures,
    depth_experiment_tables,
    judge_depth_experiment,
)
from tpcalc.views.answers.growth import growth_tables
from tpcalc.views.page import write
from tpcalc.views.record import ReportInput

EXAMPLES = Path(__file__).parents[3] / "examples" / "resnets"
RES3 = {"act": "relu", "nonlin": "between", "layers": 2}


def run(work: Path | None = None, **parts: Any) -> DepthExperiment:
    sections = {"kind": "depth", "name": "small", "title": "Small", "model": RES3, **parts}
    return depth_experiment(depth_plan_of(sections), work=work)


def small(name: str, **changes: Any) -> DepthExperiment:
    """A file of the examples at fewer blocks and networks."""
    sections = tomllib.loads((EXAMPLES / f"{name}.toml").read_text(encoding="utf-8"))
    sections.pop("references", None)
    for part, own in changes.items():
        sections[part] = {**sections[part], **own}
    return depth_experiment(depth_plan_of(sections))


@pytest.mark.parametrize(
    "name", ["fig1", *(pytest.param(f"fig{k}", marks=pytest.mark.slow) for k in (3, 4, 5))]
)
def test_S2_10_16_figures_of_few_blocks(name: str) -> None:
    found = small(name, depths={"blocks": [16, 64], "seeds": 12})
    assert all(one.same for one in found.agreements)
    ends = {
        (row.alpha, row.depth): row.value.value
        for row in found.ratios
        if row.width == "40" and row.along == found.critical[0].along
    }
    low, middle, high = dict.fromkeys(alpha for alpha, _ in ends)
    grown = [ends[alpha, "64"] - ends[alpha, "16"] for alpha in (low, middle, high)]
    assert grown[0] > 0.2 and abs(grown[1]) < 0.15 and grown[2] < -0.2


def test_S2_11_quantiles_are_those_of_the_log_normal_law() -> None:
    plan = load_depth_experiment(EXAMPLES / "fig2.toml")
    law = tp.resnets.norm_ratio(
        tp.ResNet("L", "relu", law="uniform", nonlin="between", layers=2), 100
    )
    assert {one.name for one in plan.references} == {"R", "Rp"}
    for one in plan.references:
        assert law.quantile(one.place) == pytest.approx(one.value, abs=5e-5)


def test_S2_17_paths_have_their_exponents() -> None:
    found = small("fig6", depths={"blocks": [400]}, start={"walks": 64})
    assert [row.along for row in found.paths] == ["fgn(1/5)", "fgn(1/2)", "fgn(4/5)"]
    for row in found.paths:
        assert row.expected is not None
        assert abs(row.hurst.value - row.expected) < 5 * row.hurst.stderr + 1 / 256


def test_S2_18_a_small_diagram() -> None:
    found = small(
        "fig7",
        depths={"blocks": [64], "seeds": 8},
        start={"along": ["fgn(1/5)", "fgn(1/2)", "fgn(13/20)", "fgn(9/10)"],
               "alphas": ["2/5", "7/10", "1"]},
    )  # fmt: skip
    assert len(found.agreements) == 24
    for one in found.agreements:
        critical = {row.along: row for row in found.critical}[one.along]
        crosses = one.name == "Dp" and one.regime != "unstable" and critical.side != ""
        gap = crosses and float(one.alpha[0]) / float(one.alpha[2:] or 1)
        if gap and gap < 0.9 and one.along == "fgn(9/10)":
            assert one.same is None
        else:
            assert one.same
    titles = [table.caption for table in depth_experiment_tables(found)]
    assert titles[:2] == ["log10 of |x_L - x_0| / |x_0|", "log10 of |p_0 - p_L| / |p_L|"]


def test_S2_19_gradients_by_a_line_in_the_width() -> None:
    start = {"along": ["fgn(4/5)"], "alphas": ["7/10"], "ratios": ["Dp"]}
    found = run(depths={"blocks": [64], "widths": [8, 16, 32], "seeds": 32}, start=start)
    (one,) = found.agreements
    assert one.beside.endswith("line in 1/n") and one.same


def test_S2_19_the_term_of_a_fixed_width() -> None:
    net = tp.ResNet("L", "relu", hurst="4/5", nonlin="between", layers=2)
    assert tuple(map(str, critical_powers(net))) == ("4/5", "3/5", "4/5")
    depth, width = 64, 8
    own = start_of(block_at_start(replace(net, alpha=1)))
    drawn = tp.simulate(net, width, 500, depth=depth, alphas=["1"]).square("Dp", "1")
    more = width * (drawn.value - own.at(depth).gradient.value)
    # the term is that of leading order in L and 1/n
    assert abs(more - own.side(depth)) < 5 * width * drawn.stderr + own.side(depth) / 4
    assert more > 3 * width * drawn.stderr
    start = {"along": ["fgn(4/5)"], "alphas": ["1"], "ratios": ["Dp"]}
    (one,) = run(depths={"blocks": [64], "widths": [40], "seeds": 8}, start=start).agreements
    assert one.same and "n^(-1/2)" in one.beside


def test_numbers_are_kept_and_pages_written(tmp_path: Path) -> None:
    parts = {
        "depths": {"blocks": [16], "widths": [12], "seeds": 24},
        "start": {
            "alphas": ["1/2"],
            "places": [0.0, 0.25, 0.5, 1.0],
            "ratios": ["R", "D"],
            "walks": 8,
        },
    }
    first = run(tmp_path, **parts)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = run(tmp_path, **parts)
    assert again.ratios == first.ratios and again.agreements == first.agreements
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (figure,) = depth_experiment_figures(first).values()
    assert len(figure.panels) == 3  # R and D along the depth, paths
    write(ReportInput("Small", blocks=first), tmp_path / "page.html")
    assert "At the start" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        judge_depth_experiment(first).headline
        == "All 2 numbers of networks and references are found"
    )


def test_S2_18_gradients_at_infinite_width_below_those_of_networks() -> None:
    net = tp.ResNet("L", "relu", alpha="1/2", hurst="4/5", nonlin="between", layers=2)
    value = tp.limit(net, depths=[1000]).at("Dp^2", 1000).value
    assert math.log10(value) / 2 == pytest.approx(0.362, abs=5e-4)
    assert critical_powers(net).regime("gradients", Fraction(1, 2)) == "unstable"


def test_one_network_of_one_block_of_width_one(tmp_path: Path) -> None:
    start = {"alphas": ["1/2"], "ratios": ["R", "Rp"], "places": [0.0, 0.5, 1.0]}
    found = run(depths={"blocks": [1], "widths": [1], "seeds": 1}, start=start)
    assert [one.same for one in found.agreements] == [None, None]
    write(ReportInput("Small", blocks=found), tmp_path / "page.html")


@pytest.mark.slow
def test_S2_21_22_trained_networks_keep_the_regularity_of_their_start() -> None:
    found = small(
        "fig9",
        depths={"blocks": [20], "widths": [12]},
        training={"steps": 12},
        trained={"along": ["fgn(1/5)", "rbf(1/10)"], "alphas": ["0", "1"], "rates": [0.1]},
    )
    rough, smooth = (
        [row for row in found.trained if row.along == law] for law in ("fgn(1/5)", "rbf(1/10)")
    )
    assert smooth[0].regime == "unstable" and smooth[1].regime == "stationary"
    assert smooth[1].accuracy.value > smooth[0].accuracy.value + 0.1
    for row in found.trained:
        p, images = row.accuracy.value, 364  # of the 1797 digits
        binomial = (max(p * (1 - p), 1 / images) / images) ** 0.5
        assert row.accuracy.stderr == pytest.approx(binomial, rel=0.05)
    (table,) = (one for one in growth_tables(found) if one.caption == "Accuracy after training")
    assert "±" in table.rows[0][1].text and "of which there is one" in str(table.note)
    assert rough[1].hurst is not None and smooth[1].hurst is not None
    assert rough[1].hurst.value < 0.35 < 0.7 < smooth[1].hurst.value
    assert len(smooth[1].path) == 20


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"start": {"alphas": ["one"]}}, "start.alphas"),
        ({"start": {"along": ["fgn(2)"]}}, "start.along"),
        ({"start": {"ratios": ["S"]}}, "start.ratios"),
        ({"trained": {"along": ["fresh"], "alphas": ["1"]}}, "trained.rates"),
        ({}, "nothing is asked"),
    ],
)
def test_problems_are_listed(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        run(depths={"blocks": [8]}, **parts)


def test_a_start_has_numbers_of_blocks() -> None:
    with pytest.raises(UsageError, match="not followed"):
        run(depths={"blocks": ["oo"]}, start={"alphas": ["1"]})
    with pytest.raises(UsageError, match="width"):
        run(depths={"blocks": [8]}, trained={"along": ["fresh"], "alphas": ["1"], "rates": [0.1]})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig1", "fig6"])
def test_whole_figures(name: str) -> None:
    found = depth_experiment(load_depth_experiment(EXAMPLES / f"{name}.toml"))
    assert all(one.same for one in found.agreements)


def test_what_has_no_numbers_is_kept_with_its_reason(tmp_path: Path) -> None:
    asked = {"depths": {"blocks": [2500]}, "start": {"alphas": ["0"], "ratios": ["D"]}}
    first, again = (run(tmp_path, **asked) for _ in range(2))
    ((what, why),) = first.lacking
    assert "L = 2500" in what and "range of floating point" in why
    assert again.lacking == first.lacking
