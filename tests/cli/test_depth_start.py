"""The start of networks of L blocks on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpcalc as tp
from tests.cli.conftest import result, run

RES3 = ("--nonlin", "between", "--layers", "2")


@pytest.mark.parametrize(
    ("hurst", "alpha", "verdict", "code"),
    [("4/5", "4/5", "Critical", 0), ("4/5", "1/2", "Explosion", 1), ("1/5", "1", "Identity", 1)],
)
def test_S2_18_check_tells_the_class(hurst: str, alpha: str, verdict: str, code: int) -> None:
    words = ("--depth", "L", *RES3, "--hurst", hurst, "--alpha", alpha, "--all")
    out = " ".join(run("check", "resnet", *words, code=code).split())
    assert f"{verdict}: what all blocks add" in out and "at the start" in out
    assert "Which power in front of a block suits" in out
    assert ("derived, not proved" in out) == (hurst in ("1/5", "4/5"))  # here of a fixed width
    assert "are fgn" in out and "outside its hypotheses" in out


def test_S2_19_check_tells_the_critical_powers() -> None:
    words = ("--depth", "L", *RES3, "--hurst", "4/5", "--alpha", "2")
    found = result("check", "resnet", *words, code=1)
    critical = {(row["of"], row["width"]): row["alpha"] for row in found["critical"]}
    expected = {("outputs", "oo"): "4/5", ("gradients", "oo"): "3/5", ("gradients", "n"): "4/5"}
    assert critical == expected and found["steps"] == 0
    assert [one["answer"] for one in found["theorems"]["rows"]] == ["outside"] * 3


def test_S2_7_9_check_of_no_steps_asks_the_start() -> None:
    words = ("--depth", "L", *RES3, "--steps", "0")
    found = result("check", "resnet", *words)
    assert (found["verdict"], found["status"]) == ("stationary", "proved")
    assert [one["answer"] for one in found["theorems"]["rows"]] == ["holds", "holds", "outside"]
    assert found["critical"][0]["alpha"] == "1/2"
    assert result("check", "resnet", *words, "--alpha", "1/4", code=1)["verdict"] == "unstable"


@pytest.mark.parametrize(
    ("along", "alpha", "words", "code"),
    [
        ("multiple(1, 1)", "1", "Critical: what all blocks add is of order 1", 0),
        ("turn(1)", "3/4", "turn pairs of coordinates", 0),
        ("multiple(1)", "1/2", "Explosion: what all blocks add grows", 1),
        ("multiple(-1)", "1/2", "Vanishing: blocks shrink the stream", 1),
        ("turn(1)", "2", "Identity: what all blocks add vanishes", 1),
    ],
)
def test_S2_15_check_of_matrices_that_are_not_random(
    along: str, alpha: str, words: str, code: int
) -> None:
    asked = ("--depth", "L", "--act", "identity", "--along", along, "--alpha", alpha)
    assert words in " ".join(run("check", "resnet", *asked, code=code).split())


def test_S2_24_report_of_matrices_that_are_not_random(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = ("--act", "identity", "--along", "multiple(1, 1)", "--alpha", "1", "--seeds", "4")
    asked = (*words, "--widths", "8", "--out", str(page))
    found = result("report", "resnet", "--depth", "8,32", *asked)
    assert found["check"]["verdict"] == "stationary"
    text = page.read_text(encoding="utf-8")
    for part in (
        "Critical: what all blocks add",
        "1 of 3 theorems apply",
        "Norms at the start, log10",
    ):
        assert part in text


def test_S2_3_check_tells_which_assumption_does_not_hold() -> None:
    words = ("--depth", "L", *RES3, "--steps", "0", "--law", "laplace", "--all")
    assert "laplace entries are not sub-Gaussian" in " ".join(
        run("check", "resnet", *words).split()
    )


def test_S2_19_A13_limit_of_norms() -> None:
    words = (*RES3, "--hurst", "4/5", "--alpha", "4/5")
    found = result("limit", "resnet", "--depth", "2,1000", *words)
    values = {(row["name"], row["depth"]): row["estimate"]["value"] for row in found["rows"]}
    assert values["D^2", "2"] == pytest.approx(0.466205, abs=6e-7)
    assert values["Dp^2", "1000"] == pytest.approx(0.182568**2, abs=6e-7)
    one = result("limit", "resnet", "--depth", "2", *words)["rows"]
    assert one[0]["estimate"]["value"] == values["R^2", "2"]
    words = (*words[:-4], "--hurst", "2/5", "--alpha", "1/2")
    out = " ".join(run("limit", "resnet", "--depth", "4,oo", *words, code=4).split())
    assert "at this scale is not known. How the numbers of blocks beside it go on" in out
    assert "TPC606 no number of all at L = oo" in out
    words = (*words[:-4], "--hurst", "4/5", "--alpha", "4/5")
    shown = run("limit", "resnet", "--depth", "L", *words)
    assert "L = 1000" in shown and "0.202562" in shown


def test_training_of_blocks_that_depend_on_each_other() -> None:
    words = ("--act", "identity", "--nonlin", "post", "--hurst", "3/4", "--alpha", "3/4")
    found = result("limit", "resnet", "--depth", "2", *words, "--steps", "1")["rows"]
    assert {row["name"] for row in found} == {"f[0,0]", "f[1,0]", "x[0,0]", "x[1,0]", "dx[0,0]"}
    for gamma, verdict, code in (("1/4", "feature-learning", 0), ("1/2", "trivial", 1)):
        asked = ("--depth", "L", *words, "--lr-depth", gamma, "--steps", "1")
        answer = result("check", "resnet", *asked, code=code)
        assert (answer["verdict"], answer["status"], answer["steps"]) == (verdict, "derived", 1)


def test_S2_5_limit_of_independent_blocks_of_any_law() -> None:
    words = ("--depth", "100,oo", *RES3, "--steps", "0", "--law", "uniform")
    found = result("limit", "resnet", *words)["rows"]
    values = {(row["name"], row["depth"]): row["estimate"]["value"] for row in found}
    assert values["D^2", "100"] == pytest.approx(0.646668, abs=6e-7)
    assert values["Dp^2", "oo"] == pytest.approx(0.648721, abs=6e-7)


@pytest.mark.slow
def test_S2_24_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = (*RES3, "--hurst", "3/4", "--alpha", "3/4", "--widths", "16", "--seeds", "8")
    found = result("report", "resnet", "--depth", "8,32", *words, "--out", str(page))
    assert found["check"]["verdict"] == "stationary"
    text = page.read_text(encoding="utf-8")
    for word in (
        "Critical: what all blocks add",
        "Verdicts over the box",
        "Against the number of blocks",
        "Along the depth",
        "Theorems and their hypotheses",
        "mean and standard deviation of the logarithm",
    ):
        assert word in text
    assert text.count('<svg viewBox="0 0 400') == 8
    net = tp.ResNet("L", "relu", alpha="3/4", nonlin="between", layers=2, hurst="3/4")
    own = tp.simulate(net, 16, 8, depth=32)
    (drawn,) = (one for one in found["limit"]["samples"] if one["depth"] == 32)
    k, name = drawn["alphas"].index("3/4"), drawn["names"].index("Dp")
    logs = own.logs[own.names.index("Dp")][0][own.alphas.index("3/4")]
    assert (
        drawn["logs"][name][drawn["places"].index(1.0)][k] == pytest.approx(list(logs))
        and len(logs) == 8
    )


@pytest.mark.slow
def test_S2_24_report_of_blocks_that_are_sampled(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = ("--nonlin", "post", "--layers", "2", "--along", "rbf(1/2)", "--alpha", "1")
    run("report", "resnet", "--depth", "2,3", *words, "--particles", "512", "--out", str(page))
    text = page.read_text(encoding="utf-8")
    assert "no networks" in text and "D^2" in text


@pytest.mark.slow
def test_S2_18_phases_in_hurst_and_alpha(tmp_path: Path) -> None:
    picture = tmp_path / "diagram.svg"
    words = (*RES3, "--hurst", "H", "--alpha", "alpha", "--box", "H=11/20:7/10")
    found = result(
        "phases", "resnet", "--depth", "L", *words, "--box", "alpha=1/2:1", "--svg", str(picture)
    )
    assert found["notes"][0].startswith("verdicts at the start")
    assert {cell["verdict"] for cell in found["cells"]} == {"unstable", "stationary", "identity"}
    assert "stationary" in picture.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["check", "--depth", "L", "--hurst", "3/2"], "the Hurst exponent H is 3/2", 2),
        (["check", "--depth", "L", "--hurst", "0"], "the Hurst exponent H is 0", 2),
        (["check", "--depth", "L", "--hurst", "nan"], "hurst must be a number, not 'nan'", 2),
        (["check", "--depth", "L", "--hurst", "H"], "--at H=3/4", 3),
        (["check", "--depth", "L", "--alpha", "1/0"], "alpha must be a number, not '1/0'", 2),
        (["limit", "--depth", "4", "--hurst", "3/4", "--alpha", "b"], "which is no number", 2),
        (["limit", "--depth", "4", "--hurst", "H"], "holds a symbol", 3),
        (["limit", "--depth", "0,4", "--hurst", "3/4"], "a depth is 0", 2),
        (["check", "--depth", "L", "--along", "noise"], "there is no law 'noise'", 2),
        (["check", "--depth", "L", "--hurst", "3/4", "--law", "uniform"], "are Gaussian", 2),
        (["check", "--depth", "4", "--hurst", "3/4"], "limit --depth 100,1000", 2),
        (["check", "--depth", "L", "--law", "cauchy"], "law is 'cauchy'", 2),
    ],
)
def test_bad_input(words: list[str], text: str, code: int) -> None:
    command, *rest = words
    assert text in " ".join(run(command, "resnet", *rest, code=code).split())


def test_S2_20_regularity_of_weights(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((64, 8, 8))
    np.save(tmp_path / "weights.npy", weights)
    out = run("regularity", str(tmp_path / "weights.npy"))
    assert out.startswith("Independent along 64 blocks: L^(-1/2) suits\n")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "Nearest law fresh as along= of a network takes it" in rows
    assert "Critical for gradients L^(-1/2) gradients stay of order one" in rows
    assert any(row.startswith("L^(-1) identity identity 0.09") for row in rows)
    table = tmp_path / "covariance.csv"
    table.write_text("\n".join(str(0.99 ** (k * k)) for k in range(64)), encoding="utf-8")
    words = (
        str(table),
        "--autocovariance",
        "--sequences",
        "64",
        "--nonlin",
        "post",
        "--act",
        "tanh",
    )
    found = result("regularity", *words)
    assert found["kind"] == "smooth" and found["critical"] == ["1", "1"]
    (tmp_path / "bad.csv").write_text("a,b", encoding="utf-8")
    assert "no table that can be read" in run("regularity", str(tmp_path / "bad.csv"), code=3)
    assert "no such file" in run("regularity", str(tmp_path / "none.npy"), code=3)
    np.save(tmp_path / "few.npy", weights[:4])
    assert "too few" in run("regularity", str(tmp_path / "few.npy"), code=2)


@pytest.mark.slow
def test_transfer_takes_a_seed_and_a_device() -> None:
    words = ("--nonlin", "post", "--act", "identity", "--param", "depth-mup", "--depth", "2,4")
    asked = ("--steps", "1", "--samples", "1", "--rates", "0.5", "--widths", "8", "--device", "cpu")
    one, two, three = (
        result("transfer", "resnet", *words, *asked, "--seed", seed)["transfer"]["rows"]
        for seed in "001"
    )
    assert one == two != three
