"""``tpcalc sheet``: what it prints and writes, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_prints_the_sheet(tpcalc: Run) -> None:
    ran = tpcalc("sheet", "relu")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("relu\nrelu: inputs become alike, slowly\n")
    assert "case 2: edge of chaos" in ran.out
    assert "1.21117" in ran.out


def test_json_holds_the_records(tpcalc: Run) -> None:
    words = ("--debias", "--dilate", "4/2", "--against", "tanh,elu[1/2]", "--json")
    found = tpcalc("sheet", "relu", *words).json
    assert found["command"] == "sheet"
    assert found["model"]["activations"] == ["relu", "tanh", "elu[1/2]"]
    sheets = found["result"]["sheets"]
    assert [each["name"] for each in sheets][2] == "elu[1/2], dilate 2, debias"
    assert sheets[0]["covariance"]["end_slope"]["value"] == pytest.approx(1.466942, abs=1e-6)


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_writes_a_report(tpcalc: Run, tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"relu{suffix}"
    ran = tpcalc("sheet", "relu", "--normalize", "-o", place)
    assert ran.code == 0
    assert ran.out.rstrip().endswith(place.name)
    assert "relu, normalize" in place.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("rleu",), 2, "Did you mean 'relu'"),
        (("log",), 3, "defined between 0 and inf"),
        (("tanh", "--against", "relu,"), 2, "empty name"),
        (("tanh", "--against", "relu,relu,relu,relu,relu,relu"), 2, "at most 6"),
        (("tanh", "-o", "sheet.pdf"), 2, ".html"),
    ],
)
def test_what_is_refused(tpcalc: Run, words: tuple[str, ...], code: int, message: str) -> None:
    ran = tpcalc("sheet", *words)
    assert message in ran.err
    assert ran.code == code
    assert ran.out == ""
