"""``tp.sweep``: one table for all cells, with numbers as they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tpcalc as tp
from tpcalc.errors import MissingBackend, StudyError, UsageError
from tpcalc.experiments.sweep import Run
from tpcalc.results import Sweep
from tpcalc.results.codec import load
from tpcalc.study import Flag
from tpcalc.tasks.kept import Kept

NLC = {"model.depth": [1, 2, 4], "model.weight_variance": [1, 2.5], "model.act": ["tanh", "relu"]}


def swept(study: dict[str, Any], grid: dict[str, Any], question: str) -> Sweep:
    run = Run(study, [Flag("", "sweep.grid", grid), Flag("", "sweep.question", question)])
    run.go(None)
    return run.sweep


def test_columns_are_numbers_and_texts() -> None:
    found = tp.sweep({}, NLC, "nlc")
    assert isinstance(found, pd.DataFrame) and len(found) == 12
    assert list(found.columns[:3]) == list(NLC) and found.columns[-1] == "problem"
    kinds = found.dtypes
    assert kinds["model.depth"] == np.int64 and kinds["model.weight_variance"] == np.float64
    assert kinds["value"] == np.float64 and set(found["model.act"]) == {"tanh", "relu"}
    assert found.groupby("model.depth")["value"].max().is_monotonic_increasing


def test_answers_are_those_of_the_questions_themselves() -> None:
    study = {"training": {"steps": 1}, "simulate": {"widths": [16, 32], "seeds": 3}}
    limits = tp.sweep(study, {"depth": [1], "param": ["ntk", "mup"]}, "limit")
    data = tp.digits((0, 1), 4, 0)
    own = tp.limit(tp.train(tp.MLP(1, "relu"), "mup", data, steps=1), seed=0)
    mup = limits[limits["model.param"] == "mup"].set_index(["name", "statistic"])
    assert mup.loc[("f[1,0]", "value"), "value"] == own["f[1,0]"].value
    assert mup.loc[("dx[1,0,0]", "second_moment"), "power"] == "-2"
    compared = tp.sweep(study, {"depth": [1]}, "compare")
    assert set(compared["width"]) == {16, 32} and compared["z"].abs().max() < 8
    kernels = tp.sweep({"training": {"samples": 5}}, {"act": ["relu", "tanh"]}, "kernel")
    inputs = np.array(tp.digits(range(10), 5, 0).inputs)
    matrix = tp.kernel(tp.MLP(3, "relu"), inputs).ntk
    assert matrix is not None
    row = kernels[(kernels["model.act"] == "relu") & (kernels["name"] == "ntk")]
    assert row["value"].tolist() == pytest.approx(
        [matrix.diagonal().mean(), (matrix.sum() - matrix.trace()) / 20], rel=1e-13
    )


def test_blocks_have_limits_in_their_depth_and_best_rates() -> None:
    net = {"architecture": "resnet", "nonlin": "post", "act": "identity"}
    study = {"model": net, "training": {"steps": 1, "lr_depth": "1/2"}}
    limits = tp.sweep(study, {"depth": ["L"], "alpha": ["1/2", "1"]}, "limit")
    assert set(limits["depth"]) == {"oo"} and limits["value"].notna().all()
    rates = tp.sweep(study, {"depth": ["L"]}, "transfer")
    best = rates[rates["name"] == "least loss"]
    assert len(best) == 1 and best["value"].item() <= rates["value"].min()


def test_a_cell_that_is_refused_is_a_row() -> None:
    found = tp.sweep({}, {"hurst": ["1/2"], "architecture": ["mlp", "rnn"]}, "nlc")
    assert len(found) == 2 and found["problem"].str.contains("has no hurst").all()
    assert "value" not in found


def test_a_grid_needs_cells_that_can_be_listed() -> None:
    with pytest.raises(UsageError, match=r"sweep\.grid: it has 1000000000 cells; 1 to 100000"):
        tp.sweep(
            {}, {f"{part}.seed": list(range(1000)) for part in ("training", "limit", "simulate")}
        )
    for wrong in ({"depth": []}, {"depth": [1, 1]}):
        with pytest.raises(UsageError, match="one value or more is needed"):
            tp.sweep({}, wrong)
    with pytest.raises(UsageError, match="it has 0 cells"):
        tp.sweep({}, {})
    with pytest.raises(UsageError, match=r"(?s)model\.depth.*1 more: .*training\.lr"):
        tp.sweep({}, {"depth": [2, -1], "lr": [0.1, "fast"]})


def test_a_file_that_is_another_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("x1,x2,y\n1,0.5,1\n0.5,1,-1\n")

    def changed(fraction: float, text: str) -> None:
        file.write_text("x1,x2,y\n1,0.5,1\n")

    grid = {"depth": [1, 2]}
    found = tp.sweep({"training": {"data": str(file)}}, grid, "kernel", progress=changed)
    first, second = found["problem"].iloc[0], found["problem"].iloc[-1]
    assert not first and "no such file, or another one of this name" in second
    assert str(file) in second


def test_a_table_is_a_parquet_file(tmp_path: Path) -> None:
    found = swept({}, NLC, "nlc")
    frame = pd.read_parquet(found.save(tmp_path / "t.parquet"))
    pd.testing.assert_frame_equal(frame, found.to_dataframe())
    assert load(found.save(tmp_path / "t.json")) == found


def test_an_axis_of_numbers_and_words(tmp_path: Path) -> None:
    study = {"model": {"architecture": "resnet", "nonlin": "post"}, "training": {"steps": 1}}
    found = swept(study, {"depth": [1, 2, "L"], "act": ["identity"]}, "limit")
    frame = pd.read_parquet(found.save(tmp_path / "t.parquet"))
    assert set(frame["model.depth"]) == {"1", "2", "L"}
    assert set(found.to_dataframe()["model.depth"]) == {1, 2, "L"}
    assert found.plot().subfigs and "model.depth" in found._repr_html_()


def test_what_was_reached_is_a_table(tmp_path: Path) -> None:
    run = Run({}, [Flag("", "sweep.grid", {"act": ["relu", "tanh", "erf"]})])
    assert "check of 3 cells" in str(run.sweep) and not run.sweep.rows

    def stop(fraction: float, text: str) -> None:
        if fraction > 0.5:
            raise KeyboardInterrupt

    run = Run({}, [Flag("", "sweep.grid", NLC), Flag("", "sweep.question", "nlc")])
    with pytest.raises(KeyboardInterrupt):
        run.go(tmp_path, stop)
    some = run.sweep
    assert 0 < len(some.rows) < 12 and "cells were not reached" in some.notes[0]
    other = pytest.raises(StudyError, match="another run writes into this folder")
    with Kept(tmp_path, "sweep", run.settings), other:
        run.go(tmp_path)
    run.go(tmp_path)
    assert run.sweep.rows == swept({}, NLC, "nlc").rows


def test_a_library_that_is_missing_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingBackend, match=r"pip install 'tpcalc\[dataframe\]'"):
        tp.sweep({}, {"no such key": [1]})


def test_a_page_has_a_panel_for_each_outer_value(tmp_path: Path) -> None:
    found = swept({}, NLC, "nlc")
    panels = found.plot().subfigs[0].subfigs
    assert len(panels) == 2  # of activations, lines of variances, against the depth
    assert "model.act = relu" in found.save(tmp_path / "t.html").read_text()
    checked = swept(
        {"training": {"steps": 1}}, {"depth": [1, 2], "param": ["mup", "ntk"], "lr": [0.5]}, "check"
    )
    page = checked.save(tmp_path / "c.html").read_text()
    assert page.count("upwards</") == 2 and "feature-learning" in page
    assert "kernel: 2" in str(checked) and "mup" in str(checked)
    assert {row["verdict"] for row in checked.rows} == {"feature-learning", "kernel"}


def test_a_printed_sweep_fits_a_screen() -> None:
    grid = {"limit.seed": list(range(90)), "depth": [1]}
    lines = str(swept({}, grid, "nlc")).splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 100 and "more rows" in lines[-2]


@pytest.mark.slow
def test_best_rates_of_networks_without_blocks() -> None:
    study = {"model": {"depth": 1, "act": "tanh"}, "training": {"steps": 1}}
    found = tp.sweep(study, {"param": ["mup", "ntk"]}, "transfer")
    run = tp.Training(tp.MLP(1, "tanh"), "ntk", tp.digits((0, 1), 4, 0), steps=1)
    own = tp.transfer(run).best("ntk", "")
    row = found[(found["name"] == "least loss") & (found["model.param"] == "ntk")]
    assert (row["rate"].item(), row["value"].item()) == (own.rate, own.loss.value)
