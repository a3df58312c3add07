"""``tpcalc advise``: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]
LINES = ("x = input(1, 0)", "a = dense(x, 2)", "b = relu(a)", "c = dense(b)", "d = b + c")
OFF = "\n".join((*LINES, "e = tanh(d)", "f = dense(e)"))


def test_what_fails_comes_first(tpcalc: Run) -> None:
    ran = tpcalc("advise", "mlp", "--depth", 30)
    assert ran.code == 1 and "The network breaks guidelines: G7" in ran.out
    found = tpcalc("advise", "mlp", "--depth", 30, "--json")
    assert found.code == 1 and found.json["command"] == "advise"
    grades = [each["grade"] for each in found.json["result"]["guidelines"]]
    assert grades == sorted(grades, key=["fail", "open", "warn", "pass", "report"].index)
    assert {each["key"] for each in found.json["result"]["guidelines"]} == {
        f"G{k}" for k in range(1, 10)
    }


def test_what_to_change_is_printed_with_whole_lines_of_code(tpcalc: Run) -> None:
    ran = tpcalc("advise", "mlp", "--depth", 30, "--weights", 2)
    assert "What to change" in ran.out and len(ran.out.splitlines()) <= 61
    found = tpcalc("advise", "mlp", "--depth", 30, "--weights", 2, "--json").json["result"]
    printed = ran.out.split()
    for change in found["changes"][:2]:
        assert set(change["code"].split()) <= set(printed)


def test_thresholds_and_a_page(tpcalc: Run, tmp_path: Path) -> None:
    out = tmp_path / "advice.md"
    flags = ("--thresholds", "inequality=20:40,growth=2:3,bias=20:30,nlc=5:30", "-o", out)
    ran = tpcalc("advise", "mlp", "--depth", 30, *flags)
    assert ran.code == 0 and "The network is near the limits of guidelines" in ran.out
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Advice: mlp, depth 30, relu") and "What to change" in text


def test_what_the_recursion_does_not_follow_is_answered_in_part(
    tpcalc: Run, tmp_path: Path
) -> None:
    place = tmp_path / "net.txt"
    place.write_text(OFF)
    ran = tpcalc("advise", place)
    assert ran.code == 4 and "no number of G2, G4, G7, G8" in ran.err.replace(", ...", ", G8")
    assert "Open: G2, G4, G7, G8" in ran.out


def test_what_is_refused(tpcalc: Run) -> None:
    for flags, said in (
        (("--thresholds", "bias=3:2"), "the thresholds of bias are 3, 2"),
        (("--thresholds", "bias"), "has no numbers"),
        (("--thresholds", "love=1:2"), "no threshold called 'love'"),
        (("--noise", "much"), "--noise"),
        (("--dtype", "float8"), "float8"),
    ):
        ran = tpcalc("advise", "mlp", "--depth", 2, *flags)
        assert ran.code == 2 and said in ran.err, ran.err
