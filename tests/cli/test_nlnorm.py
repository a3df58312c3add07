"""``tpcalc nlnorm``: what it prints and writes, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_prints_the_activation_and_its_code(tpcalc: Run) -> None:
    ran = tpcalc("nlnorm", "relu", "--target", "1.05")
    assert (ran.code, ran.err) == (0, "")
    assert "l = 0.709085, c = 0.802513, b = -0.320156" in ran.out
    assert "def activation(x):" in ran.out and "torch.relu(x)" in ran.out
    assert "NLC of the activation: 1.05" in ran.out


def test_json_holds_the_record(tpcalc: Run) -> None:
    words = ("--network", "mlp", "--depth", "20", "--json")
    found = tpcalc("nlnorm", "relu", "--target", "3", *words).json
    assert found["command"] == "nlnorm" and found["model"]["depth"] == 20
    (row,) = found["result"]["rows"]
    assert found["result"]["nlc"]["value"] == pytest.approx(3, rel=1e-9)
    assert row["nlc"]["value"] ** 20 == pytest.approx(3, rel=1e-9)
    assert len(row["layers"]) == 20 and row["code"].startswith("import torch")
    of_network = tpcalc("nlnorm", "--act", "relu", "--target", "3", *words).json
    assert of_network["result"]["rows"] == found["result"]["rows"]


def test_takes_layers_of_a_file_and_writes_a_report(tpcalc: Run, tmp_path: Path) -> None:
    text = (
        "x = input(1, 0)\na = dense(x, 2)\nb = tanh(a)\nc = dense(b)\nd = 0.5*a + c\ne = dense(d)\n"
    )
    (tmp_path / "net.txt").write_text(text + "f = tanh(e)\n")
    place = tmp_path / "made.md"
    words = ("--network", tmp_path / "net.txt", "--share", "nlc", "--out", place)
    ran = tpcalc("nlnorm", "tanh", "--target", "1.2", *words)
    assert ran.code == 0 and ran.out.rstrip().endswith("made.md")
    page = place.read_text(encoding="utf-8")
    assert "def activation_2(x):" in page and "NLC of the network: 1.2" in page


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("tanh", "--target", "2"), 4, "it reaches 1 to 1.88607. Take method='dilate'"),
        (("tanh", "--target", "1"), 2, "it must be above 1"),
        (("tanh", "--target", "one"), 2, "--target"),
        (("step", "--target", "2"), 4, "no nonlinearity coefficient"),
        (("identity", "--target", "2"), 3, "is linear"),
        (("rleu", "--target", "2"), 2, "Did you mean 'relu'"),
        (("relu", "--target", "1.1", "--method", "bend"), 2, "no method called 'bend'"),
        (("relu", "--target", "3", "--depth", "3"), 2, "it is of a network"),
        (("relu", "--target", "3", "--network", "net"), 2, "neither mlp nor resnet"),
        (("relu", "--target", "1.1", "--out", "net.pdf"), 2, ".html"),
    ],
)
def test_what_is_refused(tpcalc: Run, words: tuple[str, ...], code: int, message: str) -> None:
    ran = tpcalc("nlnorm", *words)
    assert message in ran.err
    assert ran.code == code
    assert ran.out == ""
