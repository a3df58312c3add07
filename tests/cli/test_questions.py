"""The commands that ask about exponents, from the command line to the printed answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import result
from tpcalc.cli.app import app


def test_orders_of_a_network_and_measured(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("x1,x2,y\n0.6,-0.3,1\n0.5,0.9,-1\n")
    net = ("mlp", "--depth", "2", "--act", "relu", "--param", "naive-ip", "--data", str(data))
    run = ("--steps", "0", "--measure", "--widths", "256,1024,4096", "--seeds", "8")
    rows = {row["name"]: row for row in result("orders", *net, *run)["rows"]}
    second = rows["h[2,0,0]"]
    assert second["n"] == "-1/2" and second["status"] == "exact"
    assert second["low"] <= -0.5 <= second["high"]


def test_phases_finds_the_two_points(tmp_path: Path) -> None:
    picture = tmp_path / "diagram.svg"
    net = ("mlp", "--depth", "1", "--act", "tanh", "--param", "ac:0,a;c", "--steps", "1")
    box = ("--box", "a=1/4:5/4", "--box", "c=-3/2:1/2", "--svg", str(picture))
    found = result("phases", *net, *box)
    points = [
        (cell["verdict"], dict(cell["sample"])) for cell in found["cells"] if cell["dimension"] == 0
    ]
    assert ("feature-learning", {"a": "1", "c": "-1"}) in points
    assert ("kernel", {"a": "1/2", "c": "0"}) in points
    assert sum(verdict == "feature-learning" for verdict, _ in points) == 1
    assert picture.read_text().lstrip().startswith("<?xml")


NET = ("mlp", "--depth", "2", "--act", "relu", "--bias", "first")


def test_a_schedule_and_groups_are_one_flag_each() -> None:
    run = ("--steps", "2", "--schedule", "warmup:1", "--optimizer", "sgd")
    groups = ("--group", "hidden: lr=1/2 power=-1/2", "--group", "bias: lr=0")
    found = result("check", *NET, *run, *groups)
    assert "the schedule is 0 at step 0: nothing is updated there" in found["notes"]
    rows = {(row["layer"], row["step"], row["name"][:2]): row["n"] for row in found["updates"]}
    assert rows[1, 1, "dW"] == rows[1, 2, "dB"] == "-oo"  # rate 0
    assert (rows[1, 2, "dW"], rows[2, 2, "dW"]) == ("0", "-1/2")


def test_steps_of_which_the_first_alone_is_known() -> None:
    """The first line answers, and the second says why it was not asked."""
    found = result("check", *NET, "--optimizer", "muon")
    assert (found["verdict"], found["status"]) == ("feature-learning", "first steps, exact")
    assert [row["word"] for row in found["first_order"]["rows"]] == ["learns"] * 4
    assert any(note.startswith("all steps: not asked: a step is") for note in found["notes"])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--group", "hidden"), "--group: 'hidden' does not say which parameters have which"),
        (("--group", "hidden: lr"), "does not say which parameters have which settings"),
        (("--schedule", "cosin"), "Did you mean 'cosine'"),
        (("--optimizer", "adamw(dekay=1)"), "--optimizer: there is no hyperparameter of adamw"),
    ],
)
def test_schedules_and_groups_that_are_none(flags: tuple[str, ...], words: str) -> None:
    found = CliRunner().invoke(app, ["check", *NET, *flags])
    assert found.exit_code == 2 and words in " ".join(found.output.split())


def test_optimizers_with_settings_and_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "my.opt"
    own.write_text("optimizer slow(beta=1/2)\nm = beta m + g\nw = w - lr sign(m)\n")
    group = ("--group", "hidden: optimizer=adamw(decay=0.1,eps=0.1*n^-1) lr=0.5")
    for optimizer in ("adamw(decay=0.1)", str(own)):
        found = result("check", *NET, "--steps", "1", "--optimizer", optimizer, *group)
        rows = {(row["layer"], row["name"][:2]): row["n"] for row in found["updates"]}
        # Gradients of hidden weights are n^(-3/2), beside which eps is large.
        assert [rows[layer, "dW"] for layer in (1, 2, 3)] == ["0", "-1/2", "0"]


def test_a_study_has_a_schedule_and_groups(tmp_path: Path) -> None:
    study = tmp_path / "s.toml"
    study.write_text(
        """[model]
depth = 2
[training]
steps = 2
schedule = [1.0, 0.5]
[training.groups]
hidden = {power = "-1/2"}
"""
    )
    found = result("check", str(study))
    rows = {(row["layer"], row["step"]): row["n"] for row in found["updates"]}
    assert (rows[1, 1], rows[2, 1]) == ("0", "-1/2")
    rows = {
        (row["layer"], row["step"]): row["n"]
        for row in result("check", str(study), "--group", "input: power=-1")["updates"]
    }
    assert (rows[1, 1], rows[2, 1]) == ("-1", "0")
    study.write_text('[training]\nschedule = [1.0, "x"]\n')
    found_text = CliRunner().invoke(app, ["check", str(study)])
    assert found_text.exit_code == 3 and "training.schedule" in found_text.output
