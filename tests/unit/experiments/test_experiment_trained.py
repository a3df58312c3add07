"""Networks trained beside predictions: what has no prediction or slope, and what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trials import train_setting

import tpcalc.experiments.trained as training
from tpcalc.data import images
from tpcalc.errors import StudyError
from tpcalc.experiments.trained import Plan, Prediction
from tpcalc.results import Experiment, Run, Setting
from tpcalc.results.images import Images

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DATA = images("mixture", train=64, test=20)


def trained(settings: list[Setting], data: Images, **own: Any) -> Experiment:
    """Networks trained by a plan of these settings."""
    asked = {key: own.pop(key) for key in ("name", "trials", "rank_samples") if key in own}
    compared = tuple(own.pop("by_width", ()))
    return training.trained(Plan(tuple(settings), by_width=compared, **asked), data, **own)


def setting(act: str, width: int = 16, steps: int = 1) -> Setting:
    return Setting(act, "ip-llr", 3, width, calibrated=True, steps=steps, batch=16)


def test_runs_are_kept_where_the_calculus_does_not_decide_a_network() -> None:
    found = trained([setting("even_tanh", steps=2)], DATA, trials=1)
    assert len(found.runs[0].accuracies) == 1
    ((text, sentence),) = found.predicted
    assert text == "ip-llr, even_tanh" and sentence.startswith(
        "undecided: the output: whether this explodes at step 1 is open"
    )
    ((_, powers),) = found.growth  # bounds from sizes alone
    assert powers == ("open", "open", "open", ">= n^(-1)")
    assert (found.vanishing, found.theorems) == ((), ())


@pytest.mark.parametrize(
    ("widths", "trials", "reason"),
    [
        ((16, 24), 2, "2 of the 3 widths that a slope needs"),
        ((16, 24, 32), 1, "one trial at width 16, and a slope needs at least 2"),
    ],
)
def test_why_there_is_no_power_of_the_width(
    widths: tuple[int, ...], trials: int, reason: str
) -> None:
    compared = [setting("relu", width) for width in widths]
    found = trained([setting("relu")], DATA, by_width=compared, trials=trials, rank_samples=1000)
    ((_, rows),) = found.slopes
    assert [(row.name, row.slope, row.note) for row in rows] == [
        (f"eta[{layer}]", None, reason) for layer in (1, 2, 3, 4)
    ]
    assert found.ranked == 64


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions take longer than tiny networks."""
    monkeypatch.setattr(training, "predicted", lambda setting, seed: Prediction("said"))


def timeless(run: Run) -> str:
    """All of a run but the time it took."""
    return repr(replace(run, seconds=0.0))


@pytest.mark.usefixtures("quick")
def test_trials_are_kept_and_may_become_more(tmp_path: Path) -> None:
    relu, tanh = setting("relu"), setting("tanh")
    trained([relu], DATA, trials=2, work=tmp_path, by_width=[relu])
    before = (tmp_path / "experiment.jsonl").read_bytes()
    found = trained([tanh, relu], DATA, trials=3, work=tmp_path, by_width=[tanh, relu])
    after = (tmp_path / "experiment.jsonl").read_bytes()
    assert after.startswith(before)
    assert (len(before.splitlines()), len(after.splitlines())) == (5, 13)
    for run in found.runs:
        assert timeless(run) == timeless(train_setting(run.setting, DATA, trials=3))
    assert [run.rates for run in found.by_width] == [run.rates for run in found.runs]
    fewer = trained([relu], DATA, trials=1, work=tmp_path)
    assert fewer.runs[0].losses == found.runs[1].losses[:1]
    trained([relu], DATA, name="A-1", trials=1, work=tmp_path)
    with pytest.raises(StudyError, match=r"A-1.jsonl: what is kept here holds .* something else"):
        trained([relu], DATA, name="A 1", trials=1, work=tmp_path)


def more(rows: list[Any]) -> list[Any]:
    return [[*rows[0], 1.0]]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("losses", more),
        ("losses", lambda rows: []),
        ("losses", lambda rows: [["nan"] * len(rows[0])]),
        ("accuracies", lambda rows: [1.0]),
    ],
)
def test_a_kept_trial_that_was_changed_is_refused(
    field: str, change: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    trained([setting("relu")], DATA, trials=1, work=tmp_path)
    path = tmp_path / "experiment.jsonl"
    head, line = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    (run,) = entry["value"]
    run[field] = change(run[field])
    path.write_text(f"{head}\n{json.dumps(entry)}\n", encoding="utf-8")
    with pytest.raises(StudyError, match="was changed in line 2") as caught:
        trained([setting("relu")], DATA, trials=1, work=tmp_path)
    assert str(path) in str(caught.value.where) and "\n" not in str(caught.value)


ADAM = Setting("tanh", "mup", 2, 16, lr=0.1, steps=50, batch=16, optimizer="adam(eps=1e-3)")
KILLED = """
import os, signal, sys
from tpcalc.data import images
from tpcalc.experiments.trained import Plan, trained
from tpcalc.results import Setting

def told(share, text):
    if "trial 2 of 2: step 40 of 50" in text:
        os.kill(os.getpid(), signal.SIGKILL)

setting = Setting("tanh", "mup", 2, 16, lr=0.1, steps=50, batch=16, optimizer="adam(eps=1e-3)")
data = images("mixture", train=64, test=20)
trained(Plan((setting,), trials=2), data, work=sys.argv[1], progress=told)
"""
THREADS = """
import tpcalc as tp
import tpcalc.experiments.trained as training
from tpcalc.data import images
from tpcalc.experiments.trained import Plan, Prediction
from tpcalc.results import Setting

if __name__ == "__main__":
    training.predicted = lambda setting, seed: Prediction("said")
    # As large as the first whose digits did depend on them.
    setting = Setting("tanh", "mup", 2, 1024, lr=0.5, steps=3, batch=64)
    for jobs in (1, 2):
        with tp.use(jobs=jobs):
            found = training.trained(Plan((setting,), trials=2), images("digits"))
        print(found.runs[0].losses, found.runs[0].outputs, found.runs[0].accuracies)
"""


def ran(script: str, *words: str, threads: int = 1) -> subprocess.CompletedProcess[str]:
    """A script in a process with so many threads for products."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    asked = [sys.executable, "-c", script, *words]
    return subprocess.run(asked, env=env, check=False, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_what_was_killed_in_a_trial_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    killed = ran(KILLED, str(tmp_path))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (state,) = tmp_path.glob("*.npz")
    told: list[str] = []
    (run,) = trained(
        [ADAM], DATA, trials=2, work=tmp_path, progress=lambda _, text: told.append(text)
    ).runs
    assert not state.exists() and not any("step" in text for text in told)
    assert timeless(run) == timeless(train_setting(ADAM, DATA, trials=2))


@pytest.mark.slow
def test_no_digit_depends_on_threads_or_processes() -> None:
    one, two = (ran(THREADS, threads=threads) for threads in (1, 2))
    assert (one.stderr, two.stderr) == ("", "")
    lines = (one.stdout + two.stdout).splitlines()
    assert len(lines) == 4 and len(set(lines)) == 1
