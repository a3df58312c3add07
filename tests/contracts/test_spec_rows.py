"""Every row and every acceptance case of spec 0 (Hajjar, Chizat, Giraud) has a test by its name.

A test says in its name what it is about: ``test_S0_13_14_case3_words`` is about the rows S0.13 and
S0.14 and about case 3. Numbers after ``S0`` are rows, numbers after ``case`` are cases.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAME = re.compile(r"test_S0((?:_\d+)*)(?:_case(\d+(?:_\d+)*))?(?:_[a-zA-Z]\w*)?")
ROWS, CASES = range(1, 40), range(1, 46)


def numbers(text: str | None) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text or "")}


def names_of_tests(path: Path) -> list[str]:
    """Names of the tests of a file: functions at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


NAMED = [
    (f"{path.relative_to(TESTS)}::{name}", name)
    for path in sorted(TESTS.rglob("test_*.py"))
    if "benchmarks" not in path.parts  # these run only when asked for
    for name in names_of_tests(path)
    if name.startswith("test_S0")
]


def read(name: str) -> tuple[set[int], set[int]]:
    """The rows and the cases in a name; none where it is not written as above."""
    found = NAME.fullmatch(name)
    rows, cases = found.groups() if found else ("", "")
    return numbers(rows), numbers(cases)


def test_names_can_be_read() -> None:
    for place, name in NAMED:
        rows, cases = read(name)
        assert rows | cases, place
        assert rows <= set(ROWS) and cases <= set(CASES), place


@pytest.mark.parametrize(("part", "wanted"), [(0, ROWS), (1, CASES)], ids=["rows", "cases"])
def test_all_are_named(part: int, wanted: range) -> None:
    named = set().union(*(read(name)[part] for _, name in NAMED))
    assert sorted(set(wanted) - named) == []
