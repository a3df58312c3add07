"""Every reading of programs answers for every node type: a rule, a lowering, or a reason."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import tpcalc
from tpcalc.program.nodes import NODE_TYPES
from tpcalc.program.rules import LOWERED, Level, Rules

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
BEGIN, END = "<!-- readings: begin -->", "<!-- readings: end -->"


@cache
def tables() -> dict[str, Rules]:
    """Every module-level ``Rules``, by the module and name that define it."""
    found: dict[int, tuple[str, Rules]] = {}
    for module in pkgutil.walk_packages(tpcalc.__path__, "tpcalc."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Rules):
                found.setdefault(id(value), (f"{module.name}.{name}", value))
    return dict(found.values())


def entry(rules: Rules, node: type) -> str:
    """What a reading does with a node: ``rule``, the pass that lowers it, or ``-`` for a reason."""
    if node in rules.table:
        return "rule"
    if node in LOWERED[Level.BLOCKS]:
        return "at_depth"
    return "split" if node in LOWERED[rules.level] else "-" if node in rules.gaps else ""


def matrix() -> str:
    """The node types down, the readings across, and below them the reasons."""
    readings = sorted(tables().values(), key=lambda rules: rules.name)
    rows = [["node", *(rules.name for rules in readings)], ["---"] * (len(readings) + 1)]
    rows += [[f"`{node.__name__}`", *(entry(r, node) for r in readings)] for node in NODE_TYPES]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    gaps = [
        f"- {rules.name}, `{node.__name__}`: {reason}"
        for rules in readings
        for node, reason in rules.gaps.items()
    ]
    return "\n".join([*lines, *([""] if gaps else []), *gaps])


@pytest.mark.parametrize("name", tables())
def test_table_is_complete(name: str) -> None:
    rules = tables()[name]
    missing = sorted(node.__name__ for node in rules.missing)
    assert not missing, f"{name} ({rules.name}) has no rule and no reason for: {', '.join(missing)}"


@pytest.mark.parametrize("name", tables())
def test_table_is_about_nodes_and_its_gaps_have_reasons(name: str) -> None:
    rules = tables()[name]
    parts = [set(rules.table), set(rules.gaps), set(LOWERED[rules.level])]
    assert set().union(*parts) == set(NODE_TYPES)
    assert sum(map(len, parts)) == len(NODE_TYPES)
    assert all(len(reason.split()) > 2 for reason in rules.gaps.values())


def test_the_page_of_the_language_shows_all_readings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0].strip()
    print(matrix())  # what belongs there
    assert shown == matrix()
    assert len(tables()) >= 6


def test_the_page_of_the_language_describes_all_nodes() -> None:
    shown = re.findall(r"^\| `(\w+)` \| `%\d+ : \S+ = (\w+) ", PAGE.read_text("utf-8"), re.M)
    assert shown == [(node.__name__, node.grammar.partition(" ")[0]) for node in NODE_TYPES]


def test_a_missing_rule_is_seen() -> None:
    rules = next(iter(tables().values()))
    table = dict(rules.table)
    taken = table.popitem()[0]
    assert Rules("broken", table, rules.gaps, level=rules.level).missing == {taken}
