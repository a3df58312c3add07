"""``tpcalc experiment``: the published experiments, tiny, from file to tables and pages."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from image_files import mnist_arrays, mnist_folder

import tpcalc.experiments.trained as training
from tpcalc.experiments.trained import Growth, Prediction

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

Run = Callable[..., Any]
FOLDER = Path(__file__).parents[2] / "examples" / "integrable"
TINY = ("--width", 16, "--steps", 3, "--trials", 1, "--batch", 16, "--samples", 64)


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions have tests of their own, and take longer than tiny networks."""

    def predicted(setting: Any, seed: int = 0) -> Prediction:
        layers = setting.depth + 1
        growth = Growth((Fraction(0),) * layers, (True,) * layers) if setting.calibrated else None
        return Prediction(f"trivial at all t: {seed}.", growth, "naive" in setting.text)

    monkeypatch.setattr(training, "predicted", predicted)


def smaller(name: str, folder: Path, acts: str = '["relu", "tanh"]') -> Path:
    """The file of an experiment with two activations, three layers and small widths."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    text = text.replace('["relu", "gelu", "elu", "tanh"]', acts).replace("depth = 6", "depth = 3")
    text = text.replace("[64, 128, 256, 512]", "[16, 24, 32]")
    text = re.sub(r"\n\[\[reported\]\]\n(?:.+\n)*", "", text) if name == "E4" else text
    if name != "E4":
        text = re.sub(r"gelu = 0\.\d+, elu = 0\.\d+, ", "", text)
    tomllib.loads(text)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_S0_34_first_experiment_prints_its_tables(tpcalc: Run, tmp_path: Path) -> None:
    ran = tpcalc("experiment", smaller("E1", tmp_path), *TINY, "--all")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("E1: Naive-IP is trivial, IP-LLR learns\n")
    for words in (
        "4 networks of 3 hidden layers and width 16, 3 steps of 16 samples, 1 trial each",
        "64 training and",
        "What the limit says",
        "Training loss",
        "Mean absolute output",
        "Base rates of the first step",
        "Table 3, mnist",
        "0.098 (class 0 or 4)",
        "0.113 (class 1)",
    ):
        assert words in ran.out


@pytest.mark.parametrize("name", ["E2", "E3", "E4"])
def test_S0_35_36_37_other_experiments_run(tpcalc: Run, tmp_path: Path, name: str) -> None:
    ran = tpcalc("experiment", smaller(name, tmp_path), *TINY, "--json")
    assert (ran.code, ran.err) == (0, "")
    result = ran.json["result"]
    assert result["name"] == name
    assert [run["setting"]["act"] for run in result["runs"]] == ["relu", "tanh"] * 2
    for run in result["runs"]:
        assert len(run["losses"]) == 1 and len(run["losses"][0]) == 3
        assert bool(run["ranks_h"]) == (name == "E3")
    assert [each["setting"]["width"] for each in result["by_width"]] == (
        [16, 24, 32] * 2 if name == "E3" else []
    )
    calibrated = {"ip-llr, relu", "ip-llr, tanh"} if name == "E3" else set()
    assert {network for network, _ in result["slopes"]} == calibrated


@pytest.mark.slow
def test_processes_train_the_same_networks(tpcalc: Run, tmp_path: Path) -> None:
    """Rates and ranks as well; weights of what is under way lie in the folder, and go."""
    asked = ("experiment", smaller("E3", tmp_path), *TINY, "--steps", 22, "--json")
    work = tmp_path / "work"
    here, there, kept = (
        tpcalc(*asked, *flags) for flags in ((), ("--jobs", 2), ("--jobs", 2, "--work", work))
    )
    found = [ran.json["result"] for ran in (here, there, kept)]
    for result in found:
        result.pop("provenance", None)
        for run in result["runs"]:
            run.pop("seconds")
    assert found[0] == found[1] == found[2]
    assert sorted(path.name for path in work.iterdir()) == [".E3.lock", "E3.jsonl"]


RULED = """
name = "A"
title = "Adam with a warm-up"

[training]
depth = 2
lr = 0.25
optimizer = "adamw(eps=1e-4, decay=0.1)"
schedule = "warmup:4,cosine"

[training.groups]
hidden = { lr = 0.5, power = "-1/4" }
bias = { optimizer = "lion" }

[[networks]]
param = "mup"
bias = "all"
act = ["tanh"]
"""


def test_an_interrupted_trial_under_adam_goes_on(
    tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between two steps: weights and states come from the file, bit by bit."""
    file, work = tmp_path / "A.toml", tmp_path / "work"
    file.write_text(RULED, encoding="utf-8")
    asked = ("experiment", file, *TINY, "--steps", 45, "--trials", 2, "--json")
    whole = tpcalc(*asked).json["result"]["runs"]
    own, told = training.train_trial, []

    def interrupted(*given: Any) -> Any:
        def stopped(share: float, text: str) -> None:
            told.append(text)
            if len(told) == 4:
                exec(compile("raise KeyboardInterrupt", training.__file__, "exec"))  # not a user's
            given[-1](share, text)

        return own(*given[:-1], stopped)

    monkeypatch.setattr(training, "train_trial", interrupted)
    assert tpcalc(*asked, "--work", work).code == 130
    assert told == ["step 20 of 45", "step 40 of 45"] * 2
    assert len(list(work.glob("A-*.npz"))) == 1
    monkeypatch.setattr(training, "train_trial", own)
    runs = tpcalc(*asked, "--work", work).json["result"]["runs"]
    assert not list(work.glob("*.npz"))
    for run in (*runs, *whole):
        run.pop("seconds")
    assert runs == whole
    losses = runs[0]["losses"][0]
    assert runs[0]["setting"]["optimizer"] == "adamw(eps=1e-4, decay=0.1)"
    assert losses[-1] < losses[0]


def test_a_report_says_how_networks_were_trained(tpcalc: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "A.toml", tmp_path / "A.md"
    file.write_text(RULED, encoding="utf-8")
    ran = tpcalc("experiment", file, *TINY, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    said = "by adamw(eps=1e-4, decay=0.1); schedule warmup:4,cosine; hidden: lr=0.5 power=-1/4"
    assert said in out.read_text(encoding="utf-8")


def test_other_numbers_are_kept_apart(tpcalc: Run, tmp_path: Path) -> None:
    file, work = smaller("E2", tmp_path, '["relu"]'), tmp_path / "work"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"relu = (0\.\d+), tanh = 0\.\d+", r"relu = \1", text))
    for flags in ((), ("--seed", 1), ("--data-seed", 1), ("--lr", 3)):
        ran = tpcalc("experiment", file, *TINY, "--work", work, *flags)
        assert ran.code == (2 if "--lr" in flags else 0)
    keys = [json.loads(line).get("key") for line in (work / "E2.jsonl").open("rb")][1:]
    assert len(keys) == len(set(keys)) == 6


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_a_report_is_written(tpcalc: Run, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"E3{suffix}"
    ran = tpcalc("experiment", smaller("E3", tmp_path), *TINY, "--out", out)
    assert ran.code == 0 and ran.out.rstrip().endswith(str(out))
    page = out.read_text(encoding="utf-8")
    assert "The rank of features after the first step" in page
    assert ("<svg" in page) == (suffix == ".html")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--width", 0), 2, "--width: it should be greater than or equal to 1"),
        (("--data", "mnist"), 2, "mnist needs the folder of its files"),
        (("--data", "mnist:nowhere"), 3, "nowhere"),
        (("--data", "emnist"), 2, "there is no set of images called 'emnist'"),
        (("--samples", 8), 2, "batch"),
        (("--device", "tpu"), 2, "there is no device called 'tpu'"),
        (("--out", "page.pdf"), 2, "--out: a report is written as .html or .md"),
    ],
)
def test_what_cannot_be_done(
    tpcalc: Run, tmp_path: Path, words: tuple[Any, ...], code: int, said: str
) -> None:
    ran = tpcalc("experiment", smaller("E1", tmp_path), *TINY, *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err and len(ran.err.splitlines()) == 1


def test_unknown_data_are_not_blamed_on_the_file(tpcalc: Run, tmp_path: Path) -> None:
    file = smaller("E1", tmp_path)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[stand-in]\n", '[stand-in]\ndata = ["digits"]\n'))
    ran = tpcalc("experiment", file, "--data", "minst:nowhere")
    assert ran.code == 2 and "there is no set of images called 'minst:nowhere'" in ran.err


def test_without_torch(tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = tpcalc("experiment", smaller("E1", tmp_path), *TINY)
    assert ran.code == 5
    assert "pip install 'tpcalc[torch]'" in ran.err


def test_a_bar_on_a_terminal(tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    told: list[tuple[float, str]] = []

    @contextmanager
    def bar(title: str) -> Any:
        assert title == "E1"
        yield lambda fraction, text: told.append((fraction, text))

    monkeypatch.setattr("tpcalc.cli.show.progress_bar", bar)
    tpcalc("experiment", smaller("E1", tmp_path), *TINY)
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert "naive-ip, relu, n = 16, trial 1 of 1" in [text for _, text in told]


def test_published_data_have_the_published_numbers(tpcalc: Run, tmp_path: Path) -> None:
    folder = mnist_folder(tmp_path / "mnist", mnist_arrays())
    flags = ("--data", f"mnist:{folder}", "--steps", 2, "--batch", 4, "--trials", 1)
    ran = tpcalc("experiment", smaller("E2", tmp_path, '["tanh"]'), *flags, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert {run["setting"]["width"] for run in ran.json["result"]["runs"]} == {1024}
    assert {data for data, _ in ran.json["result"]["shares"]} == {"", "mnist", "cifar10"}


def test_json_is_json(tpcalc: Run, tmp_path: Path) -> None:
    ran = tpcalc("experiment", smaller("E1", tmp_path), *TINY, "--json")
    found = json.loads(ran.out)
    assert found["command"] == "experiment"
    assert found["model"]["data"].startswith("64 training")
    assert found["provenance"]["settings"]["trials"] == "1"
    assert found["result"]["vanishing"] == ["naive-ip, relu", "naive-ip, tanh"]
