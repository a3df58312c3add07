"""The grids have the cells that their page speaks of, and its tables count them by kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.grids.cells import Cell, cells
from tests.grids.examine import examine, kind, kind_of
from tests.grids.page import BEGIN, causes, rewrite, tables
from tpcalc.results import NotCovered

ONE = Cell("one output", "relu", "mup", 2, 1, "one", "none", "mse")


def test_sizes_of_the_grids() -> None:
    sizes = Counter(cell.grid for cell in cells())
    assert sizes == {
        "one output": 7776,
        "two outputs": 1152,
        "layer norm": 864,
        "layer norm, resnet": 36,
    }
    assert len(set(cells())) == len(cells()) and cells()[0].act == "relu"


@pytest.mark.parametrize("grid", ["one output", "two outputs", "layer norm", "layer norm, resnet"])
def test_a_cell_that_is_covered(grid: str) -> None:
    found = examine(Cell(grid, "relu", "mup", 2, 1, "one", "none", "mse"), 60)
    assert (kind(found), found["refused"]) == (".", [])
    assert found["outputs"] >= 18


def test_what_is_lost_after_an_explosion_is_no_refusal() -> None:
    found = examine(Cell("one output", "tanh", "standard", 2, 2, "one", "none", "mse"), 60)
    assert kind(found) == "X" and found["refused"]


def test_what_takes_too_long_is_told() -> None:
    found = examine(ONE, 1e-3)
    assert "CPU time" in found["note"] and kind(found) == "!"


@pytest.mark.parametrize(
    ("code", "reason", "letter"),
    [
        ("TPC400", "the scalar f grows like n^(1/2), unless its moment vanishes.", "G"),
        ("TPC400", "its argument explodes like n^(1/2).", "X"),
        ("TPC400", "its coordinates may be near 0", "K"),
        ("TPC500", "it depends on terms that are not expanded", "K"),
        ("TPC603", "f is inf", "E"),
    ],
)
def test_kinds(code: str, reason: str, letter: str) -> None:
    assert kind_of(NotCovered("f[1,0]", "%1", "scale", reason, code=code)) == letter


def line(letter: str, reason: str = "", **other: Any) -> dict[str, Any]:
    group = {
        "kind": letter,
        "outputs": ["dh[1,1,0]"],
        "node": "%7",
        "term": "map {relu(x0)} (%6)",
    }
    cell = {**asdict(ONE), **other}
    refused = [] if letter == "." else [{**group, "reason": reason}]
    return {"cell": cell, "outputs": 18, "refused": refused}


def test_the_page_counts_cells_and_keeps_its_words(tmp_path: Path) -> None:
    found = [
        line("."),
        line("K", "its slope may be 0 on 0.12 of the coordinates", bias="first"),
        line("K", "its slope may be 0 on 0.034 of the coordinates", loss="linear", steps=2),
        line("G", "grows", param="standard"),
    ]
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{BEGIN}\n\nold\n")
    rewrite(page, found)
    text = page.read_text()
    assert text.startswith("# Title") and "old" not in text and text.endswith(tables(found))
    assert "4 of 9828 cells were run: 1 are covered, 2 K" in text
    assert "| mup | 2 | 1 | 1K [2 of 16] |" in text
    assert "| standard | 2 | 1 | 1G [1 of 16] |" in text
    (cause,) = causes(found)
    assert cause.startswith("**2 cells, at `map {relu(x0)}`: its slope may be 0 on # of")
    assert "first `dh[1,1,0]` (1 of 18 outputs) at `%7`" in cause and ", 1 step, data one" in cause
