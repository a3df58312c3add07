"""The contract of tables: no code asks for the class of a node; tables answer by it."""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pytest

import tpcalc
from tpcalc.limit.graph import LNode, Root
from tpcalc.meanfield.operations import Operation
from tpcalc.program.nodes import NODE_TYPES

ROOT = Path(tpcalc.__file__).parent
LAYERS = {Operation, *Operation.__subclasses__()}
NODES = {*NODE_TYPES, *get_args(LNode), *get_args(Root), *LAYERS} - {str}


def _names(tree: ast.Module, module: str) -> dict[str, Any]:
    """What the names of a module stand for, those that a function imports included."""
    known = dict(vars(importlib.import_module(module))) if module else {}
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom) and part.module and not part.level:
            origin = importlib.import_module(part.module)
            for alias in part.names:
                if not hasattr(origin, alias.name):
                    importlib.import_module(f"{part.module}.{alias.name}")
                known[alias.asname or alias.name] = getattr(origin, alias.name)
    return known


def _classes(part: ast.expr, known: dict[str, Any]) -> set[type]:
    """The node classes that an expression names, in unions and in tuples too."""
    if isinstance(part, ast.BinOp):
        return _classes(part.left, known) | _classes(part.right, known)
    if isinstance(part, ast.Tuple | ast.List | ast.Set):
        return set().union(*(_classes(one, known) for one in part.elts))
    if isinstance(part, ast.Attribute):
        owners = ast.unparse(part).split(".")
        value = known.get(owners[0])
        for name in owners[1:]:
            value = getattr(value, name, None)
    else:
        value = known.get(part.id) if isinstance(part, ast.Name) else None
    several = get_args(value) if isinstance(value, UnionType) else value
    kinds = several if isinstance(several, tuple | set | frozenset) else (several,)
    return {kind for kind in kinds if isinstance(kind, type) and kind in NODES}


def _asked(part: ast.AST) -> list[ast.expr]:
    """What a piece of code compares a class with."""
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and len(part.args) == 2:
        return [part.args[1]] if part.func.id in ("isinstance", "issubclass") else []
    if isinstance(part, ast.Compare):
        sides = [part.left, *part.comparators]
        calls = [one for one in sides if isinstance(one, ast.Call)]
        if any(isinstance(one.func, ast.Name) and one.func.id == "type" for one in calls):
            return sides
    return [part.cls] if isinstance(part, ast.MatchClass) else []


def found(source: str, module: str = "") -> Iterator[str]:
    """The places of a text where the class of a node is asked for."""
    tree = ast.parse(source)
    known = vars(builtins) | _names(tree, module)
    for part in ast.walk(tree):
        if any(_classes(one, known) for one in _asked(part)):
            yield f"{module}:{getattr(part, 'lineno', 0)} {ast.unparse(part)}"


def test_nodes_are_asked_through_tables() -> None:
    """No file asks for the class of a node, or of a layer of the mean-field recursion."""
    places: list[str] = []
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        source = path.read_text()
        if path.name != "__main__.py":  # to import it is to run it
            places += found(source, module)
    assert not places, "\n".join(places)


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(node, MatMul)",
        "isinstance(node, (int, Start))",
        "isinstance(node, int | nodes.Expect)",
        "issubclass(kind, LNode)",
        "type(node) is Lines",
        "isinstance(layer.operation, Dense | Activation)",
        "type(node) == graph.Number",
        "type(node) in (MatMul, Start)",
        "match node:\n    case MatMul(a, b): pass",
    ],
)
def test_a_question_for_a_class_is_found(line: str) -> None:
    """Each form of the question is seen, under whatever name a class was imported."""
    head = """
import tpcalc.limit.graph as whole
from tpcalc.limit import graph
from tpcalc.limit import graph as nodes
from tpcalc.limit.graph import LNode, Rows as Lines, Start
from tpcalc.meanfield.operations import Activation, Dense
from tpcalc.program.nodes import MatMul
"""
    assert list(found(head + line))


@pytest.mark.parametrize(
    "line", ["isinstance(node, Fn)", "type(node) is int", "Table({MatMul: f})"]
)
def test_other_questions_are_none(line: str) -> None:
    """Other classes may be asked for, and tables name the classes of nodes."""
    head = """
from tpcalc.functions import Fn
from tpcalc.program.base import Table
from tpcalc.program.nodes import MatMul
"""
    assert not list(found(head + line))
