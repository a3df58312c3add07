"""Studies of networks along their depth: files, recursion beside networks, kept numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import StudyError, UsageError
from tpcalc.experiments.depth import depth_experiment
from tpcalc.experiments.plans import DepthPlan, depth_plan_of, is_depth_file, load_depth_experiment
from tpcalc.experiments.records import digest_of
from tpcalc.results import DepthExperiment
from tpcalc.study.load import Flag
from tpcalc.views.answers.depth_experiment import judge_depth_experiment

EXAMPLES = Path(__file__).parents[3] / "examples" / "depth"
FILES = sorted(EXAMPLES.parent.glob("depth/*.toml")) + sorted(
    EXAMPLES.parent.glob("resnets/*.toml")
)
SMALL: dict[str, Any] = {
    "kind": "depth",
    "name": "small",
    "title": "Small",
    "model": {"act": "identity", "nonlin": "post"},
    "training": {
        "steps": 2,
        "lr": 0.5,
        "inputs": [[1.0, 0.5], [-0.5, 1.0]],
        "targets": [[1.0], [-0.5]],
        "groups": {"input": {"lr": 0}, "readout": {"lr": 0}},
    },
    "depths": {"blocks": [8]},
    "profile": {"places": [0, 0.5, 1], "steps": [1, 2]},
}


def plan(**changes: Mapping[str, Any]) -> DepthPlan:
    return depth_plan_of({**SMALL, **changes})


START: dict[str, Any] = {
    "kind": "depth",
    "name": "start",
    "title": "Start",
    "model": {"act": "relu", "nonlin": "between", "layers": 2},
    "depths": {"blocks": [8, 16], "widths": [8], "seeds": 4},
    "start": {"along": ["fresh", "fgn(4/5)"], "alphas": ["1/2", "1"]},
}


def files(folder: Path) -> dict[str, bytes]:
    """What is kept in a folder."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".lock"}


def values(found: DepthExperiment, what: str, **own: Any) -> list[float]:
    return [
        row.value.value
        for row in found.profiles
        if row.what == what and all(getattr(row, k) == v for k, v in own.items())
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_read(path: Path) -> None:
    assert is_depth_file(path)
    file = load_depth_experiment(path).file
    asked = (file.profile, file.transfer) if path.parent == EXAMPLES else (file.start, file.trained)
    assert any(part is not None for part in asked)


def test_S1_33_A26_A30_examples_find_the_reference_numbers() -> None:
    for name, count in (("fig17", 12), ("one-step", 6)):
        found = depth_experiment(load_depth_experiment(EXAMPLES / f"{name}.toml"))
        assert judge_depth_experiment(found).headline == f"All {count} reference numbers are found"


def test_fig17_slopes_tell_the_recipes_apart() -> None:
    found = depth_experiment(load_depth_experiment(EXAMPLES / "fig17.toml"))
    diverse = values(found, "slope", recipe="depth-mup", depth="oo", step=3)
    assert diverse == sorted(diverse) and 0.5 < diverse[0] < 0.53
    drift = [
        values(found, "slope", recipe="complete-p", depth=depth, step=1)[0]
        for depth in ("64", "512", "oo")
    ]
    assert drift == sorted(drift) and drift[0] < 0.9 and drift[-1] == pytest.approx(1, abs=1e-9)


def test_a_number_that_differs_is_told() -> None:
    entry = {"where": "here", "what": "size", "blocks": 8, "step": 1, "place": 0.5, "value": 9.0}
    found = depth_experiment(plan(references=[entry]))
    assert judge_depth_experiment(found).headline == "1 of 1 reference numbers differ"


def test_networks_agree_with_the_recursion() -> None:
    found = depth_experiment(plan(depths={"blocks": [8], "widths": [1024], "seeds": 16}), seed=3)
    limit = {(r.step, r.place): r.value for r in found.profiles if r.width == "oo"}
    for row in found.profiles:
        if row.width != "oo":
            # sizes at width n are off by O(1/n) of themselves, besides noise
            room = 5 * row.value.stderr + 5 * row.value.value / 1024
            assert abs(row.value.value - limit[row.step, row.place].value) < room


def test_fig9_errors_halve_as_the_depth_doubles() -> None:
    found = depth_experiment(plan(depths={"blocks": [16, 32, 64, "oo"]}))
    ends = [values(found, "size", depth=d, step=2, place=1.0)[0] for d in ("16", "32", "64", "oo")]
    ratio = (ends[0] - ends[3]) / (ends[1] - ends[3])
    assert math.isclose(ratio, 2, rel_tol=0.1)
    assert math.isclose((ends[1] - ends[3]) / (ends[2] - ends[3]), 2, rel_tol=0.06)


def test_numbers_are_kept(tmp_path: Path) -> None:
    asked = plan(transfer={"rates": [0.1, 0.2, 0.4]})
    first = depth_experiment(asked, work=tmp_path)
    before = files(tmp_path)
    assert len(before) == 2
    again = depth_experiment(asked, work=tmp_path)
    assert again.profiles == first.profiles
    assert first.transfer is not None and again.transfer is not None
    assert again.transfer.optima == first.transfer.optima
    assert files(tmp_path) == before


@pytest.mark.slow
def test_processes_find_the_same_numbers() -> None:
    """Profiles of recipes, the start, and what has no numbers."""
    asked = plan(
        depths={"blocks": [8, "oo"], "widths": [16], "recipes": ["depth-standard", "depth-mup"]},
    )
    start = depth_plan_of(START)
    here = depth_experiment(asked), depth_experiment(start)
    with tp.use(jobs=2):
        there = depth_experiment(asked), depth_experiment(start)
    assert here[0].lacking and here[1].ratios
    for one, other in zip(here, there, strict=True):
        assert replace(one, provenance=other.provenance) == other


@pytest.mark.parametrize(
    "change",
    [
        {"targets": [[1.0]] * 40 + [[0.5]] + [[1.0]] * 23},
        {"lr": 0.25},
        {"optimizer": "optimizer mine(b=1/2)\nm = b m + g\nw = w - 2 lr m"},
        {"groups": {"input": {"optimizer": "adam"}}},
    ],
)
def test_numbers_of_another_run_are_kept_apart(change: dict[str, Any]) -> None:
    """Other data far down, and another text of an optimizer of the same name, too."""
    rows = [[0.25 * k, 1.0] for k in range(64)]
    given = {
        "steps": 2,
        "inputs": rows,
        "targets": [[1.0]] * 64,
        "batch": 64,
        "optimizer": "optimizer mine(b=1/2)\nm = b m + g\nw = w - lr m",
    }
    one, other = (plan(training=own).training for own in (given, given | change))
    assert digest_of(one) == digest_of(plan(training=given).training) != digest_of(other)


@pytest.mark.parametrize("damage", ["{}", "[]", "[3]", '[{"schema": 1, "type": "Profile"}]'])
def test_kept_numbers_that_are_none_are_refused(damage: str, tmp_path: Path) -> None:
    depth_experiment(plan(), work=tmp_path)
    (path,) = tmp_path.glob("*.jsonl")
    head, row = path.read_text(encoding="utf-8").splitlines()
    value = json.loads(row) | {"value": json.loads(damage)}
    path.write_text(f"{head}\n{json.dumps(value)}\n", encoding="utf-8")
    with pytest.raises(StudyError, match="was changed in line 2") as caught:
        depth_experiment(plan(), work=tmp_path)
    assert str(path) in str(caught.value.where) and len(str(caught.value).splitlines()) == 1


def test_what_has_no_numbers_says_why() -> None:
    found = depth_experiment(plan(depths={"recipes": ["depth-standard"], "blocks": [8, "oo"]}))
    ((what, why),) = found.lacking
    assert what == "depth-standard, L = oo, n = oo" and "no limit" in why
    assert "places that all numbers of blocks share" in " ".join(
        why for _, why in depth_experiment(plan(depths={"blocks": [7]})).lacking
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depths": {"blocks": []}}, "depths.blocks"),
        ({"depths": {"blocks": [8], "recipes": ["nothing"]}}, "nothing"),
        ({"profile": {"what": "size", "places": [2.0], "steps": [1]}}, "profile.places"),
        ({"training": {"steps": -1}}, "steps"),
        ({"colour": 1}, "colour"),
    ],
)
def test_problems_are_listed(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        plan(**changes)


def test_nothing_is_asked() -> None:
    with pytest.raises(StudyError, match="neither"):
        depth_plan_of({key: part for key, part in SMALL.items() if key != "profile"})


def test_flags_come_first_and_steps_are_there() -> None:
    flags = [Flag("--steps", "training.steps", 1)]
    with pytest.raises(UsageError, match="a step is 2; it must be at most 1"):
        depth_experiment(depth_plan_of(SMALL, flags))
