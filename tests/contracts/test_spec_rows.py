"""Every row and every acceptance case of the specifications has a test by its name.

A test says in its name what it is about: ``test_S0_13_14_case3_words`` is about the rows S0.13 and
S0.14 of spec 0 (Hajjar, Chizat, Giraud) and about its case 3. Numbers after ``S0`` are rows,
numbers after ``case`` are cases. So it is with ``S4`` and ``S4b`` (Schoenherr); cases of ``S1``
(Tensor Programs VI), ``S2`` (Marion, Fermanian, Biau, Vert) and ``S3`` (low-rank networks) are
written ``A7``, and traps of all, which need no test, ``T9``.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REST = r"(?:_[a-zA-Z]\w*)?"
NUMBERED = rf"((?:_\d+)*)(?:_case(\d+(?:_\d+)*))?{REST}"
LETTERED = rf"((?:_\d+)*)((?:_A\d+)*){REST}"


@dataclass(frozen=True)
class Spec:
    """A specification: how many rows and cases it has, and how names of tests are written."""

    name: str
    rows: int
    cases: int
    form: str

    @property
    def names(self) -> list[tuple[str, str]]:
        """Where they are, and what they are called."""
        return [(place, name) for place, name in named() if name.startswith(f"test_{self.name}_")]

    def read(self, name: str) -> tuple[set[int], set[int]]:
        """The rows and the cases in a name; none where it is not written as above."""
        found = re.fullmatch(f"test_{self.name}{self.form}", name)
        rows, cases = found.groups() if found else ("", "")
        return numbers(rows), numbers(cases)


SPECS = (
    Spec("S0", 39, 45, NUMBERED),
    Spec("S1", 34, 31, LETTERED),
    Spec("S2", 24, 25, LETTERED),
    Spec("S3", 17, 25, LETTERED),
    Spec("S4", 45, 40, NUMBERED),
    Spec("S4b", 49, 40, NUMBERED),
)


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


@cache
def named() -> list[tuple[str, str]]:
    """The tests about a specification: where they are, and what they are called."""
    return [
        (f"{path.relative_to(TESTS)}::{name}", name)
        for path in sorted(TESTS.rglob("test_*.py"))
        if "benchmarks" not in path.parts  # these run only when asked for
        for name in names_of_tests(path)
        if re.match(r"test_(S\d|case\d)", name)
    ]


def test_names_say_which_spec_is_meant() -> None:
    assert [place for place, name in named() if name.startswith("test_case")] == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_names_can_be_read(spec: Spec) -> None:
    for place, name in spec.names:
        rows, cases = spec.read(name)
        assert rows | cases, place
        assert rows <= set(range(1, spec.rows + 1)), place
        assert cases <= set(range(1, spec.cases + 1)), place


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_all_are_named(spec: Spec) -> None:
    read = [spec.read(name) for _, name in spec.names]
    rows, cases = (set().union(*(found[part] for found in read)) for part in (0, 1))
    assert sorted(set(range(1, spec.rows + 1)) - rows) == []
    assert sorted(set(range(1, spec.cases + 1)) - cases) == []
