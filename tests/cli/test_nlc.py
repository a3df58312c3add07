"""``tpcalc nlc``: architectures, files, reports, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_an_architecture(tpcalc: Run) -> None:
    ran = tpcalc("nlc", "mlp", "--depth", 2, "--weights", 2)
    assert ran.code == 0 and ran.out.startswith("mlp, depth 2, relu\nNLC 1.405")
    found = tpcalc("nlc", "resnet", "--depth", 1, "--norm", "layer", "--skip", 0.5, "--json").json
    assert found["command"] == "nlc"
    assert [row["operation"] for row in found["result"]["layers"]][-2:] == ["addition", "dense"]
    assert found["result"]["route"] == "recursion"


def test_a_file_and_a_report(tpcalc: Run, tmp_path: Path) -> None:
    place, out = tmp_path / "net.txt", tmp_path / "nlc.md"
    place.write_text("x = input(1, 0)\na = dense(x, 2)\nb = relu(a)\nc = 0.5*a + b\n")
    ran = tpcalc("nlc", place, "-o", out)  # a and relu(a): the recursion does not hold
    assert ran.code == 0 and "limit of the program" in ran.out
    assert out.read_text(encoding="utf-8").startswith("# Net.txt")


def test_networks_beside_it(tpcalc: Run) -> None:
    words = ("--widths", "32,64", "--seeds", 2, "--inputs", 20, "--json")
    found = tpcalc("nlc", "mlp", "--depth", 1, *words).json["result"]
    assert {row["width"] for row in found["measured"]} == {32, 64}
    assert found["seeds"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mpl",), "'mpl' is neither mlp nor resnet, nor a file"),
        (("mlp", "--widths", "a"), "--widths: 'a' is no list"),
        (("mlp", "--weights", "-1"), "variance of the weights is -1"),
        (("mlp", "--rank", "0"), "a layer of rank 0"),
        (("mlp", "--norm", "group"), "normalisation is 'group'"),
        (("mlp", "--c", "2"), "q = 1.0 and c = 2.0"),
        (("mlp", "--depth", "0"), "the depth is 0"),
        (("mlp", "--act", "tanhh"), "tanhh"),
        (("mlp", "--rank", "0.5", "--bias", "shared", "--biases", "1"), "does not self-average"),
        (("mlp", "-o", "x.pdf"), "--out"),
    ],
)
def test_what_is_refused(tpcalc: Run, words: tuple[str, ...], said: str) -> None:
    ran = tpcalc("nlc", *words)
    assert ran.code in (2, 3) and said in ran.err and ran.out == ""
