"""``tpcalc signal``: variances as typed, effective ones, the edge of chaos, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]


def test_variances_as_typed(tpcalc: Run) -> None:
    words = ("--weights", 6, "--biases", "2/5", "--rank", "1/4", "--depth", 10)
    ran = tpcalc("signal", "erf", *words)
    assert ran.code == 0 and ran.out.startswith("Signals in deep erf networks\nOrdered phase")
    found = tpcalc("signal", "erf", *words, "--json").json
    assert found["command"] == "signal"
    assert found["model"]["weights"] == 6 and found["model"]["rank"] == 0.25
    result = found["result"]
    assert result["phase"] == "ordered"
    assert result["chi"]["value"] == pytest.approx(0.984359, abs=1e-6)
    assert 0 < result["chi"]["stderr"] < 1e-13
    assert result["correlation_scale"]["rate"]["value"] == pytest.approx(1 / 63.43, rel=1e-3)


def test_effective_variances(tpcalc: Run) -> None:
    words = ("--weights", 1.5, "--biases", 0.1, "--rank", 0.25, "--depth", 3, "--json")
    found = tpcalc("signal", "erf", *words, "--effective").json
    assert (found["model"]["weights"], found["model"]["biases"]) == (6.0, 0.4)
    assert found["result"]["chi"]["value"] == pytest.approx(0.984359, abs=1e-6)


def test_the_edge_of_chaos(tpcalc: Run) -> None:
    words = ("--edge", "--rank", 0.25, "--depth", 3, "--json")
    by_length = tpcalc("signal", "erf", *words, "--q", 0.5).json
    assert by_length["model"]["weights"] == pytest.approx(5.441398, abs=1e-6)
    assert by_length["result"]["phase"] == "edge of chaos"
    biases = by_length["model"]["biases"]
    by_biases = tpcalc("signal", "erf", *words, "--biases", biases).json
    assert by_biases["model"]["weights"] == pytest.approx(5.441398, abs=1e-6)
    whole = tpcalc("signal", "erf", *words, "--biases", biases / 4, "--effective").json
    assert whole["model"]["weights"] == pytest.approx(5.441398, abs=1e-6)
    relu = tpcalc("signal", "relu", "--edge", "--depth", 3, "--json").json
    assert relu["model"]["weights"] == pytest.approx(2)


def test_weights_that_keep_a_second_moment_of_1(tpcalc: Run) -> None:
    relu = tpcalc("signal", "relu", "--rank", "1/4", "--depth", 3, "--json").json
    assert relu["model"]["weights"] == 8 and relu["result"]["phase"] == "edge of chaos"
    words = ("--biases", "0.1", "--rank", "1/4", "--effective", "--depth", 1, "--json")
    found = tpcalc("signal", "tanh", *words).json
    assert found["result"]["length"]["value"] == pytest.approx(1)
    assert found["model"]["biases"] == pytest.approx(0.4)


def test_an_edge_that_lengths_leave(tpcalc: Run) -> None:
    ran = tpcalc("signal", "gelu", "--edge", "--q", 1, "--depth", 1, "--all")
    assert "edge of chaos at q = 1, but lengths move away from there, to q* = 0.25" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("relu", "--weights", "3"), "Lengths grow: by the factor 1.5 a layer"),
        (("relu", "--weights", "1/3"), "by the factor 1.24e-39"),
        (("relu", "--weights", "1/3"), "= 2 keeps them"),
        (("relu", "--weights", "2.1", "--biases", "1"), "in the limit of large lengths"),
        (("tanh", "--weights", "1/3"), "in the limit of small lengths"),
        (("tanh", "--edge"), "= 1, "),
        (("tanh", "--edge"), "lengths shrink, slower than exponentially"),
        (("gelu",), "The length q = 1 is an unstable fixed point"),
        (("swish",), "at an unstable length"),
        (("gelu", "--edge", "--biases", "0.1"), "but lengths move away from there, to"),
        (("gelu", "--edge"), "the edge of chaos at q = 0, but lengths move away from there."),
    ],
)
def test_lengths_that_settle_nowhere_are_an_answer(
    tpcalc: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = tpcalc("signal", *words, "-o", tmp_path / "signal.md")
    assert ran.code == 0 and said in " ".join(ran.out.split())
    assert said in " ".join((tmp_path / "signal.md").read_text(encoding="utf-8").split())


def test_the_edge_has_the_biases_that_were_asked_for(tpcalc: Run) -> None:
    assert (
        tpcalc("signal", "sigmoid", "--edge", "--depth", 2, "--json").json["model"]["biases"] == 0
    )


def test_a_report(tpcalc: Run, tmp_path: Path) -> None:
    out = tmp_path / "signal.html"
    ran = tpcalc("signal", "erf", "--weights", 2, "--biases", 0.1, "--depth", 5, "-o", out)
    assert ran.code == 0 and ran.out.splitlines()[-1] == str(out)
    assert "<h1>Signals in deep erf networks</h1>" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tanhh", "--weights", 1), 2, "did you mean"),
        (("erf", "--biases", "1"), 2, "no weights keep a second moment of 1"),
        (("erf", "--weights", "a"), 2, "--weights: 'a' is not a number"),
        (("erf", "--weights", "-1"), 2, "variance of the weights is -1"),
        (("erf", "--edge", "--effective", "--rank", "0"), 2, "--rank: the rank is 0"),
        (("erf", "--weights", "1", "--family", "haar"), 3, "weights are 'haar'"),
        (("erf", "--weights", "1", "--depth", "0"), 2, "depth"),
        (("erf", "--weights", "1", "--q", "1"), 2, "--q: it chooses a point of the edge"),
        (("erf", "--edge", "--weights", "1"), 2, "--weights: --edge chooses it"),
        (("erf", "--edge", "--q", "1", "--biases", "1"), 2, "--biases: --edge chooses it"),
        (("erf", "--edge", "--q", "-1"), 2, "q is -1"),
        (("softplus", "--edge", "--biases", "0.1"), 4, "no edge of chaos with biases"),
        (("softplus", "--edge", "--q", "0.1"), 4, "no edge of chaos at q = 0.1"),
        (("exp", "--weights", "1"), 4, "they diverge"),
        (("exp", "--weights", "1"), 4, "tpcalc nlc mlp --depth 50 --act exp --weights 1"),
        (("erf", "--weights", "1", "-o", "x.pdf"), 2, "--out"),
    ],
)
def test_what_is_refused(tpcalc: Run, words: tuple[object, ...], code: int, said: str) -> None:
    ran = tpcalc("signal", *words)
    assert ran.out == "" and said.lower() in " ".join(ran.err.lower().split())
    assert ran.code == code


@pytest.mark.torch
def test_S3_14_networks_stand_beside_theory_on_the_page(tpcalc: Run, tmp_path: Path) -> None:
    words = ("--weights", 6.7519, "--biases", 0.152165, "--rank", "1/4", "--depth", 2)
    out = tmp_path / "signal.html"
    found = tpcalc("signal", "tanh", *words, "--networks", 32, "--out", out, "--json").json
    curves = [one for one in found["result"]["curves"] if one["kind"] in ("networks", "values")]
    assert [one["label"] for one in curves] == [
        *(f"4 networks of width 32, {end}" for end in ("mean", "+ 1 s.d.", "- 1 s.d.")),
        "after 1 layer",
        "after 2 layers",
    ]
    mean, above, _ = (np.array(one["y"]) for one in curves[:3])
    # From rank 4 to 32 spreads fall like 1 / rank; of so few directions they are above the limit.
    assert np.all(np.diff(mean) < 0) and np.all(above > mean)
    assert max(curves[-1]["x"]) == pytest.approx(0.25, abs=0.01)  # the others are 0
    assert "Singular values of networks" in out.read_text(encoding="utf-8")
