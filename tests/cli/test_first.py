"""``tpcalc check --first``: first steps alone, with exit codes of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
NET = ("check", "mlp", "--depth", 3, "--act", "tanh", "--first")


@pytest.mark.parametrize(
    ("param", "word", "code"),
    [
        ("mup", "feature learning", 0),
        ("ntk", "kernel", 0),
        ("standard", "unstable", 1),
        ("naive-ip", "trivial", 1),
    ],
)
def test_first_steps_have_exit_codes(tpcalc: Run, param: str, word: str, code: int) -> None:
    ran = tpcalc(*NET, "--param", param, "--json")
    assert (ran.json["result"]["word"], ran.code) == (word, code)
    assert ran.json["command"] == "check"


def test_first_steps_are_printed_alone(tpcalc: Run) -> None:
    ran = tpcalc(*NET, "--param", "mup")
    assert "Feature learning at first order (exact): " in ran.out
    assert "steps followed" not in ran.out


def test_what_is_not_tested_is_a_bound(tpcalc: Run) -> None:
    ran = tpcalc(*NET, "--param", "standard", "--no-verify", "--json")
    assert {row["status"] for row in ran.json["result"]["rows"]} == {"bound"}
    assert (ran.json["result"]["word"], ran.code) == ("may be unstable", 4)


def test_networks_have_the_widths_that_are_asked_for(tpcalc: Run) -> None:
    ran = tpcalc(*NET, "--param", "mup", "--measure", "--widths", "32,64", "--json")
    assert dict(ran.json["provenance"]["settings"])["widths"] == "32,64"
    assert {tuple(row["measured"]["widths"]) for row in ran.json["result"]["rows"]} == {(32, 64)}
    assert ran.code == 0


def test_values_are_told_at_a_width(tpcalc: Run) -> None:
    ran = tpcalc(*NET, "--param", "standard", "--at-width", 4096)
    assert "at n = 4096, 1 from n = " in ran.out
    assert "First steps of explicit networks" not in tpcalc(*NET, "--param", "standard").out


def test_a_check_begins_with_first_steps(tpcalc: Run) -> None:
    ran = tpcalc("check", "mlp", "--depth", 1, "--act", "tanh", "--param", "mup", "--steps", 1)
    lines = ran.out.splitlines()
    assert lines[1].startswith("Feature learning at first order (exact): ")
    assert lines[2].startswith("Feature learning: ")
