"""``tpcalc sweep``: one table and one page, whatever becomes of single cells."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

STUDY = """
[model]
architecture = "mlp"
[training]
steps = 1
[sweep]
question = "nlc"
[sweep.grid]
model.depth = [1, 2, 3]
act = ["tanh", "relu"]
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_grid_is_one_table_and_one_page(tpcalc: Callable[..., object], study: Path) -> None:
    ran = tpcalc("sweep", study)
    folder = study.with_name("study-sweep")
    found = rows(folder / "sweep.csv")
    assert ran.code == 0 and "nlc of 6 cells" in ran.out and "model.act = relu" in ran.out
    assert [(row["model.depth"], row["model.act"]) for row in found[:3]] == [
        ("1", "tanh"), ("1", "relu"), ("2", "tanh")
    ]  # fmt: skip
    assert list(found[0]) == [
        "model.depth", "model.act", "name", "value", "error", "method", "note", "problem"
    ]  # fmt: skip
    alone = tpcalc("nlc", "mlp", "--depth", 1, "--act", "relu", "--json")
    assert float(found[1]["value"]) == pytest.approx(1.2111739, abs=1e-6) and alone.code == 0
    page = (folder / "sweep.html").read_text()
    told = tpcalc("sweep", study, "--json").json
    assert told["result"]["rows"][0]["model.act"] == "tanh" and told["result"]["table"]
    assert page.count("<svg") >= 1 and "model.act = relu" in page and "<script" not in page


@pytest.mark.slow
def test_the_same_table_from_one_process_and_two(
    tpcalc: Callable[..., object], study: Path
) -> None:
    for jobs in (1, 2):
        tpcalc("sweep", study, "--jobs", jobs, "--work", f"w{jobs}", "--table", f"t{jobs}.csv")
    assert Path("t1.csv").read_bytes() == Path("t2.csv").read_bytes()


def test_flags_replace_what_a_file_says(tpcalc: Callable[..., object], study: Path) -> None:
    grid = ("--grid", "schedule=constant|warmup:1,cosine", "--grid", "lr=0.1")
    ran = tpcalc("sweep", study, *grid, "--depth", 1, "--table", "t.csv")
    found = rows(Path("t.csv"))
    assert ran.code == 0
    assert [row["training.schedule"] for row in found] == ["constant", "warmup:1,cosine"]
    assert len({row["value"] for row in found}) == 1
    word = tpcalc("sweep", "mlp", "--grid", "depth=1,2", "--question", "nlc", "--table", "w.csv")
    assert word.code == 0 and len(rows(Path("w.csv"))) == 2 and Path("mlp-sweep").is_dir()


def test_cells_without_an_answer_have_a_row(tpcalc: Callable[..., object], study: Path) -> None:
    ran = tpcalc("sweep", study, "--grid", "architecture=mlp,resnet", "--grid", "alpha=1/2")
    found = rows(study.with_name("study-sweep") / "sweep.csv")
    assert ran.code == 4 and "TPC606 no answer of 1 cell." in ran.err
    assert "mlp has no alpha" in found[0]["problem"] and not found[0]["value"]
    assert float(found[1]["value"]) > 1 and not found[1]["problem"]
    assert "1 cell: TPC101 model.alpha: mlp has no alpha" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (["dept=1"], "'dept'"),
        (["depth=1", "model.dpth=2"], "Did you mean depth?"),
        (["depth=0,1", "lr=fast"], "1 more: "),
        (["seed=1,2"], "several sections have this key: training.seed, limit.seed, simulate.seed"),
        (["depth=1,1"], "none of them twice"),
        (["limit.seed=" + ",".join(map(str, range(320))), "training.seed=" + ",".join(
            map(str, range(320)))], "it has 102400 cells; 1 to 100000 can be swept"),
        (["depth=1", "model.depth=2"], "model.depth is given twice"),
        (["question=limit"], "'question'"),
        (["sweep.question=check,limit"], "'sweep.question'"),
    ],
)  # fmt: skip
def test_a_grid_that_is_wrong_is_told_before_it_starts(
    tpcalc: Callable[..., object], study: Path, grid: list[str], words: str
) -> None:
    ran = tpcalc("sweep", study, *(word for text in grid for word in ("--grid", text)))
    assert ran.code == 2 and words in ran.err and not study.with_name("study-sweep").exists()


def test_other_commands_pass_over_the_grid(tpcalc: Callable[..., object], study: Path) -> None:
    assert tpcalc("check", study).code == 0
    study.write_text(STUDY.replace("question =", "quest ="))
    ran = tpcalc("check", study)
    assert ran.code == 3 and "sweep.quest: there is no such key" in ran.err
    study.write_text(STUDY.partition("[sweep]")[0])
    ran = tpcalc("sweep", study)
    assert ran.code == 3 and "it has 0 cells" in ran.err
    ran = tpcalc("sweep", study, "--question", "why", "--grid", "depth=1")
    assert ran.code == 2 and "there is no question of a sweep called 'why'" in ran.err


def test_a_folder_is_of_one_sweep(tpcalc: Callable[..., object], study: Path) -> None:
    assert tpcalc("sweep", study).code == 0
    kept = study.with_name("study-sweep") / "sweep.jsonl"
    lines = len(kept.read_text().splitlines())
    study.write_text(STUDY.replace("[1, 2, 3]", "[1, 2, 3, 4]"))  # a grown grid keeps its cells
    assert tpcalc("sweep", study).code == 0
    assert len(kept.read_text().splitlines()) == lines + 2
    ran = tpcalc("sweep", study, "--question", "kernel")
    assert ran.code == 3 and "holds values of something else" in ran.err


NET = """
import tpcalc as tp

@tp.network
def net(t, x):
    return t.linear(t.outputs, t.n)(tp.ACT(t.linear(t.n, "in")(x)))
"""
OWN = """
[sweep]
question = "nlc"
[sweep.grid]
architecture = ["own.py:net"]
"""


def test_what_lies_in_files_counts(tpcalc: Callable[..., object], study: Path) -> None:
    own, table = study.with_name("own.py"), study.with_name("study-sweep") / "sweep.csv"
    study.write_text(OWN)
    values = []
    for act in ("tanh", "relu"):
        own.write_text(NET.replace("ACT", act))
        assert tpcalc("sweep", study).code == 0
        values.append(float(rows(table)[0]["value"]))
    assert values == [pytest.approx(1.0852683), pytest.approx(1.2111739)]


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(tpcalc: Callable[..., object], study: Path) -> None:
    words = [sys.executable, "-m", "tpcalc", "sweep", str(study), "--question", "check"]
    kept = study.with_name("study-sweep") / "sweep.jsonl"
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=env) as running:
        while running.poll() is None and not (
            kept.exists() and len(kept.read_text().splitlines()) > 2
        ):
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    assert 2 < len(kept.read_text().splitlines()) < 7
    assert not kept.with_name("sweep.csv").exists()
    assert tpcalc("sweep", study, "--question", "check").code == 0
    assert tpcalc("sweep", study, "--question", "check", "--work", "whole").code == 0
    assert kept.with_name("sweep.csv").read_bytes() == Path("whole/sweep.csv").read_bytes()
