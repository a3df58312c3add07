"""Every interpretation of programs answers for every node type."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tpcalc
from tpcalc.program.nodes import NODE_TYPES
from tpcalc.program.rules import Rules


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


TABLES = tables()


def test_there_are_interpretations() -> None:
    assert TABLES


@pytest.mark.parametrize("name", TABLES)
def test_table_is_complete(name: str) -> None:
    rules = TABLES[name]
    missing = sorted(node.__name__ for node in rules.missing)
    assert not missing, f"{name} ({rules.name}) has no rule and no reason for: {', '.join(missing)}"


@pytest.mark.parametrize("name", TABLES)
def test_table_is_about_nodes_and_its_gaps_have_reasons(name: str) -> None:
    rules = TABLES[name]
    assert set(rules.table) | set(rules.gaps) == set(NODE_TYPES)
    assert not set(rules.table) & set(rules.gaps)
    assert all(len(reason.split()) > 2 for reason in rules.gaps.values())
