"""Networks that explode are an answer: a page, a table, exit 0; of ``check`` that it says no."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]
NET = ("mlp", "--depth", 2, "--act", "relu", "--steps", 2)
STANDARD = (*NET, "--param", "standard")
DEEP = ("resnet", "--depth", 4, "--alpha", 1, "--param", "standard")
SMALL = ("--widths", "64,256", "--seeds", 4)
LATER = "it belongs to a step after the explosion at step 1"


def test_limits_stand_behind_their_powers_of_n(tpcalc: Run) -> None:
    found = tpcalc("limit", *STANDARD)
    head = found.out.splitlines()
    assert found.code == 0 and head[1].startswith("Unstable: f[1,0] grows like n^(3/2) at step 1.")
    assert any(line.split()[:3] == ["f[1,0]", "n^(3/2)", "×"] for line in head)
    read = tpcalc("limit", *STANDARD, "--json").json["result"]
    assert read["exploded"] == {"step": 1, "fact": "f[1,0] grows like n^(3/2)"}
    powers = {row["name"]: row["n_power"] for row in read["scalars"]}
    assert powers["f[0,0]"] == "0" and powers["f[1,0]"] == "3/2"


def test_a_comparison_is_made(tpcalc: Run) -> None:
    found = tpcalc("compare", *STANDARD, *SMALL)
    assert found.code == 0 and found.out.splitlines()[1].startswith("Unstable: ")
    assert "compared after division by n^(3/2): f[1,0]" in found.out


@pytest.mark.slow
def test_a_report_says_first_that_it_is_unstable(tpcalc: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    found = tpcalc("report", *STANDARD, *SMALL, "--out", page)
    assert found.code == 0 and "standard: unstable" in found.out
    text = page.read_text(encoding="utf-8")
    box = [line for line in text.splitlines() if line.startswith("> ")]
    assert box[0].startswith("> **Unstable at first order (exact): ")
    assert "Unstable: something grows without bound" in text
    assert any("After step 1 nothing is followed" in line for line in box)
    assert any("Finite networks" in line for line in box)
    assert "n^(3/2) × " in text and "| n = 64 | n = 256 |" in text
    assert text.count(LATER) == 1


@pytest.mark.slow
def test_beside_another_parameterization(tpcalc: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = tpcalc("report", *NET, *SMALL, "--versus", "standard", "--out", page)
    assert found.code == 0
    assert "mup: feature-learning" in found.out and "standard: unstable" in found.out
    text = page.read_text(encoding="utf-8")
    assert "standard: After step 1 nothing is followed" in text
    assert "Finite networks" in text and "(n = 256)" in text


@pytest.mark.slow
def test_check_and_orders_stop_there(tpcalc: Run) -> None:
    checked = tpcalc("check", *DEEP, "--all")
    assert checked.code == 1 and "Steps followed         1 of 3" in checked.out
    assert "605" not in checked.out and "dW_x[2,2,1]" not in checked.out
    assert checked.out.count("After step 1 nothing is followed") == 1
    read = tpcalc("check", *DEEP, "--json")
    assert read.json["result"]["exploded"]["step"] == 1
    assert {row["step"] for row in read.json["result"]["updates"]} == {1}
    ordered = tpcalc("orders", *DEEP, "--json").json["result"]
    assert ordered["exploded"]["step"] == 1
    assert {row["step"] for row in ordered["rows"]} == {0, 1}


@pytest.mark.parametrize("command", ["simulate", pytest.param("compare", marks=pytest.mark.slow)])
def test_numbers_that_overflow_are_a_note(tpcalc: Run, command: str) -> None:
    found = tpcalc(command, *DEEP, "--widths", "256,1024", "--seeds", 4, "--all")
    assert found.code == 0 and found.err == ""
    assert "at width 1024: numbers leave the floating-point range at " in found.out
    assert "x[2,1,0]" in found.out
