"""Networks of L blocks on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import result as answer
from tests.cli.conftest import run

POST = ["--nonlin", "post", "--center"]


def test_check() -> None:
    out = run("check", "resnet", "--depth", "L", *POST, "--lr-depth", "1/2", "--steps", "2")
    assert "Feature learning at any depth" in out and "L^(0)" in out
    out = run("check", "resnet", "--depth", "L", *POST, "--alpha", "1/4", code=1)
    assert "Unstable as blocks are added" in out and "exponentially" in out and "L^(1/2)" in out


def test_check_as_json() -> None:
    out = run("check", "resnet", "--depth", "L", *POST, "--optimizer", "adam", "--json", code=1)
    result = json.loads(out)["result"]
    assert result["verdict"] == "unstable"  # raw rates of Adam that do not fall with L
    assert result["rates"][0]["raw"] == "0" and result["rates"][0]["update"] == "0"


def test_check_measures_networks_of_a_number_only() -> None:
    out = run("check", "resnet", "--depth", "L", "--measure", code=2)
    assert "--measure" in out


def test_solve() -> None:
    out = run("solve", "resnet", "--depth", "L", *POST, "--alpha", "3/4", "--json")
    (rate,) = json.loads(out)["result"]["rates"]
    assert (rate["update"], rate["raw"]) == ("1/4", "1/2")


def test_orders() -> None:
    out = run(
        "orders", "resnet", "--depth", "L", *POST, "--alpha", "1", "--lr-depth", "0", "--steps", "1"
    )
    assert "L^(-1/2)" in out and "dW_x[{l+1},1]" in out


def test_limit_at_depths() -> None:
    words = ("--nonlin", "post", "--act", "identity", "--steps", "1", "--lr", "0.1", "--json")
    result = json.loads(run("limit", "resnet", "--depth", "16,oo", *words))["result"]
    values = {(row["name"], row["depth"]): row["estimate"]["value"] for row in result["rows"]}
    assert values["f[1,0]", "16"] == pytest.approx(values["f[1,0]", "oo"], rel=0.1)
    assert not result["lacking"]


def test_limit_says_how_it_diverges() -> None:
    words = ("--nonlin", "post", "--act", "identity", "--steps", "1", "--lr-depth", "0.3")
    out = run("limit", "resnet", "--depth", "8,oo", *words, code=4)
    assert "like L^(1/5)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["check", "resnet", "--depth", "0"], "--depth: it should be greater", 2),
        (["check", "resnet", "--depth", "L", "--alpha", "n"], "bases of powers", 2),
        (["check", "resnet", "--depth", "3", "--alpha", "a"], "the number of blocks is 3", 2),
        (["check", "mlp", "--depth", "L"], "depth is 'L'; it must be a whole number", 2),
        (["check", "resnet", "--depth", "3", "--lr-depth", "1"], "the depth of this network", 2),
        (["check", "resnet", "--depth", "L", "--lr-depth", "fast!"], "--lr-depth: gamma", 2),
        (["limit", "resnet", "--depth", "8,many"], "depth", 2),
        (["simulate", "resnet", "--depth", "L"], "write ResNet(8, ...)", 3),
    ],
)
def test_bad_input(words: list[str], text: str, code: int) -> None:
    assert text in " ".join(run(*words, code=code).split())


def test_check_of_a_recipe() -> None:
    for optimizer in ("sgd", "momentum", "adam"):
        words = ("--param", "depth-mup:8", "--optimizer", optimizer, "--steps", "1", "--json")
        result = json.loads(run("check", "resnet", "--depth", "L", *POST, *words))["result"]
        assert (result["verdict"], result["alpha"]) == ("feature-learning", "1/2")
    out = run("check", "resnet", "--depth", "L", *POST, "--param", "complete-p", "--steps", "1")
    assert "redundant" in out
    words = ("--param", "depth-mup", "--alpha", "1")
    assert "depth-mup has 1/2" in run("check", "resnet", "--depth", "L", *words, code=3)
    words = ("--param", "depth-mup", "--lr-depth", "1/2")
    assert "Leave lr_depth out" in run("check", "resnet", "--depth", "L", *words, code=2)
    assert "repeats no block" in run("check", "mlp", "--param", "depth-mup", code=3)


def test_recipe() -> None:
    out = run("recipe", "depth-mup:8", "--depth", "512", "--lr", "1e-3", "--multiplier", "2")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "number in front of a block 2 0.25 (L/8)^(-1/2)" in rows
    assert "learning rate of the weights of a block 0.001 0.000125 (L/8)^(-1/2)" in rows
    words = ("--alpha", "1/2", "--raw", "0", "--optimizer", "sgd", "--json")
    assert json.loads(run("recipe", *words))["result"]["name"] == "depth-mup"
    assert "alpha and raw together" in run("recipe", "depth-mup", "--raw", "0", code=2)
    assert "no powers of the depth" in run("recipe", "mup", code=2)


def test_transfer(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--depth", "4,16", "--param", "depth-mup", "--act", "identity", *POST, "--steps", "1")
    asked = ("--rates", "0.05,0.2,0.8,3.2", "--samples", "1", "--out", str(page), "--json")
    result = json.loads(run("transfer", "resnet", *words, *asked))["result"]
    one, two = result["transfer"]["optima"]
    assert one["how"] == two["how"] == "minimised"
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text and "does not imply" in text
    assert "Give --depth 8,16,32" in run("transfer", "resnet", "--depth", "4", code=2)


@pytest.mark.torch
def test_transfer_over_widths(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("transfer", "mlp", "--depth", "1", "--act", "identity", "--steps", "1", "--seeds", "2")
    asked = ("--widths", "16,64", "--lr", "0.1:10:3", "--recipes", "mup,ntk", "--out", str(page))
    result = answer(*words, *asked, "--jobs", "1")["transfer"]
    assert [(row["recipe"], row["width"]) for row in result["optima"]] == [
        (recipe, width) for recipe in ("mup", "ntk") for width in ("16", "64", "oo")
    ]
    assert [row["rate"] for row in result["rows"][:3]] == [0.1, 1.0, 10.0]
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text and "by width" in text and "n = oo" in text
    assert "Slope in n" in run(*words, *asked)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("--lr", "1:1"), "1:1 is no range of 13 rates"),
        (("--lr", "0:1"), "0:1 is no range"),
        (("--lr", "-1:1"), "-1:1 is no range"),
        (("--lr", "1:1e999"), "'1e999' is not a number"),
        (("--lr", "a:1"), "'a' is not a number"),
        (("--lr", "0.1"), "not of the form LOW:HIGH"),
        (("--lr", "1:2:3:4"), "not of the form LOW:HIGH"),
        (("--lr", "1:2:1"), "no range of 1 rates"),
        (("--lr", "1:2:1000000000"), "with 2 to 1000 rates"),
        (("--lr", "1:2", "--rates", "1"), "--lr and --rates"),
        (("--rates", "1e999"), "'1e999' is not a number"),
        (("--widths", "0"), "a width is 0"),
        (("--widths", "8.5"), "a width is 8.5; it must be a whole number"),
    ],
)
def test_transfers_of_no_rates_or_widths(typed: tuple[str, ...], words: str) -> None:
    assert words in run("transfer", "mlp", "--widths", "8", *typed, code=2)


def test_no_finite_loss_is_no_best_rate() -> None:
    words = ("transfer", "mlp", "--act", "relu", "--widths", "8", "--steps", "1", "--seeds", "2")
    assert "no loss is finite" in run(*words, "--rates", "1e300,1e301", code=4)


def test_experiment_along_the_depth(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "examples" / "depth" / "one-step.toml"
    page = tmp_path / "page.html"
    out = run("experiment", str(file), "--out", str(page), "--work", str(tmp_path / "kept"))
    assert "All 6 reference numbers are found" in out
    assert "<svg" in page.read_text(encoding="utf-8")
    assert len(list((tmp_path / "kept").glob("[!.]*"))) == 1


@pytest.mark.slow
def test_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--nonlin", "post", "--act", "identity", "--param", "depth-mup", "--steps", "1")
    out = run("report", "resnet", "--depth", "4,16,oo", *words, "--out", str(page), "--json")
    result = json.loads(out)["result"]
    assert result["check"]["verdict"] == "feature-learning"
    text = page.read_text(encoding="utf-8")
    words = ("Verdicts over the box", "Against the number of blocks", "Along the depth")
    for word in (*words, "Along training", "Gamma of products with x"):
        assert word in text
    assert text.count("<svg") >= 5 and "carry %2 over l:L" in text


@pytest.mark.slow
def test_report_of_a_study_file_with_a_symbol(tmp_path: Path) -> None:
    study, page = tmp_path / "deep.toml", tmp_path / "page.md"
    study.write_text(
        '[model]\narchitecture = "resnet"\ndepth = "L"\nact = "identity"\nnonlin = "post"\n'
        'param = "complete-p"\n[training]\nsteps = 1\n',
        encoding="utf-8",
    )
    run("report", str(study), "--out", str(page))
    text = page.read_text(encoding="utf-8")
    assert "L = 16" in text and "rdinary differential equation of the depth" in text
    out = run("report", str(study), "--versus", "mup", "--out", str(page), code=2)
    assert "--versus" in out
