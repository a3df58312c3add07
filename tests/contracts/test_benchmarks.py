"""The page of benchmarks is made of the figures that are kept, and of nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.benchmarks import figures

KEPT = figures.read()


def measured(question: str, case: str) -> dict[str, Any]:
    return {
        "question": question,
        "case": case,
        "time": 0.5,
        "error": None,
        "peer": "another, 2 s",
        "ratio": 4.0,
    }


def test_the_page_is_that_of_the_figures() -> None:
    text = figures.PAGE.read_text(encoding="utf-8")
    assert text == figures.page(KEPT)
    assert len(text.splitlines()) <= 150  # 15 of them functions, beside another library


def test_every_figure_says_where_it_was_measured() -> None:
    keys = {"question", "case", "time", "error", "peer", "ratio", "machine", "commit"}
    for row in KEPT["rows"]:
        assert row.keys() == keys
        assert row["question"] in KEPT["questions"] and row["machine"] in KEPT["machines"]
        assert row["time"] > 0 and re.fullmatch(r"[0-9a-f]{7,}\+?", row["commit"])
    assert {row["question"] for row in KEPT["rows"]} == set(KEPT["questions"])
    cases = [(row["question"], row["case"]) for row in KEPT["rows"]]
    assert len(set(cases)) == len(cases)


@pytest.mark.parametrize("add", [False, True])
def test_a_new_figure_takes_the_place_of_its_case(add: bool) -> None:
    first = KEPT["rows"][0]
    rows = [measured(first["question"], first["case"]), measured(first["question"], "a new case")]
    found = figures.replaced(KEPT, rows, "a new machine", "abcdef0", add)
    (letter,) = found["machines"].keys() - KEPT["machines"].keys()
    assert found["machines"][letter] == "a new machine"
    assert found["rows"][0] == rows[0] | {"machine": letter, "commit": "abcdef0"}
    assert [row["case"] for row in found["rows"][len(KEPT["rows"]) :]] == ["a new case"] * add
    assert f"| {first['case']} | 500 ms | | another, 2 s | 4 | {letter} | abcdef0 |" in (
        figures.page(found)
    )


def test_machines_of_no_figure_are_left_out() -> None:
    rows = [measured(row["question"], row["case"]) for row in KEPT["rows"]]
    found = figures.replaced(KEPT, rows, "a new machine", "abcdef0")
    assert list(found["machines"].values()) == ["a new machine"]


def test_a_figure_of_no_question_is_refused() -> None:
    with pytest.raises(KeyError, match="no question 'colour'"):
        figures.replaced(KEPT, [measured("colour", "red")], "a machine", "abcdef0")
