"""``tpcalc nlc``: architectures, files, reports, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_an_architecture(tpcalc: Run) -> None:
    ran = tpcalc("nlc", "mlp", "--depth", 2, "--weights", 2)
    assert ran.code == 0 and ran.out.startswith("mlp, depth 2, relu\nNLC 1.405, between 1 and 5")
    assert "same layers: tpcalc signal relu --weights 2 --depth 2" in ran.out
    found = tpcalc("nlc", "resnet", "--depth", 1, "--norm", "layer", "--skip", 0.5, "--json").json
    assert found["command"] == "nlc"
    assert [row["operation"] for row in found["result"]["layers"]][-2:] == ["addition", "dense"]
    assert found["result"]["route"] == "recursion"


def test_a_file_and_a_report(tpcalc: Run, tmp_path: Path) -> None:
    place, out = tmp_path / "net.txt", tmp_path / "nlc.md"
    lines = ("a = dense(x, 2)", "b = relu(a)", "c = dense(b)", "d = b + c", "e = tanh(d)")
    place.write_text("\n".join(("x = input(1, 0)", *lines)))
    ran = tpcalc("nlc", place, "-o", out)  # tanh of a sum with a relu: the recursion does not hold
    assert ran.code == 0 and "limit of the program" in ran.out
    assert out.read_text(encoding="utf-8").startswith("# Nonlinearity: net.txt")


def test_a_file_says_what_its_layers_are(tpcalc: Run, tmp_path: Path) -> None:
    place = tmp_path / "net.txt"
    place.write_text("x = input(1, 0)\na = dense(x, 2)\n")
    ran = tpcalc("nlc", place, "--depth", 3)
    assert ran.code == 2 and "--depth: the file says what the layers are" in ran.err


def test_weights_keep_a_second_moment_of_1(tpcalc: Run) -> None:
    words = ("--biases", "1/5", "--rank", "1/4", "--bias", "span", "--act", "tanh", "--depth", 20)
    layers = tpcalc("nlc", "mlp", *words, "--json").json["result"]["layers"]
    written = [layers[k - 1] for k, row in enumerate(layers) if row["operation"] == "tanh"]
    assert [row["operation"] for row in layers[1:4]] == ["dense", "bias", "dense"]  # C (A x + b)
    assert written[-1]["square"]["value"] == pytest.approx(1, rel=1e-6)


def test_deep_networks_are_cut_in_a_terminal_and_die(tpcalc: Run) -> None:
    ran = tpcalc("nlc", "mlp", "--depth", 40, "--act", "tanh", "--weights", "9/10")
    assert "tpcalc signal" not in ran.out  # it would find no length
    assert "but signals die out\n" in ran.out and re.search(r"\d\d more rows", ran.out)
    assert len(ran.out.splitlines()) <= 61


def test_networks_beside_it(tpcalc: Run) -> None:
    words = ("--widths", "32,64", "--seeds", 2, "--inputs", 20, "--json")
    found = tpcalc("nlc", "mlp", "--depth", 1, *words).json["result"]
    assert {row["width"] for row in found["measured"]} == {32, 64}
    assert found["seeds"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mpl",), "'mpl' is neither mlp nor resnet, nor a file. Write one layer a line"),
        (("tanh",), "'tanh' is neither mlp nor resnet, nor a file. Write mlp --act tanh."),
        (("mlp", "--widths", "a"), "--widths is 'a'; it must be a whole number"),
        (("mlp", "--weights", "-1"), "variance of the weights is -1"),
        (("mlp", "--rank", "0"), "A layer of rank 0"),
        (("mlp", "--norm", "group"), "normalisation is 'group'"),
        (("mlp", "--c", "2"), "q = 1 and c = 2"),
        (("mlp", "--depth", "0"), "depth is 0; it must be at least 1"),
        (("mlp", "--act", "tanhh"), "tanhh"),
        (("mlp", "--rank", "0.5", "--bias", "shared", "--biases", "1"), "does not self-average"),
        (("mlp", "-o", "x.pdf"), "--out"),
        (("mlp", "--skip", "1"), "--skip: an mlp has no skip connections"),
        (("resnet", "--batch", "9"), "--batch: it is the batch of batch norm"),
        (("mlp", "--weights", "2x"), "--weights: '2x' is not a number"),
        (("mlp", "--biases", "1"), "no weights keep a second moment of 1"),
    ],
)
def test_what_is_refused(tpcalc: Run, words: tuple[str, ...], said: str) -> None:
    ran = tpcalc("nlc", *words)
    assert ran.code in (2, 3) and said in ran.err and ran.out == ""
