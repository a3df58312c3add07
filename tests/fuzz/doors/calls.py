"""Calls of public functions: those of their examples, with arguments that they should not have."""

from __future__ import annotations

import ast
import doctest
import inspect
import random
import re
from functools import cache
from importlib import import_module
from typing import Any

from tests.fuzz.doors.hostile import NAMES, OBJECTS, Own
from tests.lines import FACES, face_module

HOME = "# in "
OF_PYTHON = re.compile(
    r"unexpected keyword argument|multiple values for|required (positional|keyword-only) argument"
    r"|positional arguments? but|positional-only arguments passed"
)  # what Python says of a call itself


@cache
def examples() -> dict[str, tuple[Any, list[str]]]:
    """By public name what it is, and the lines of its example."""
    found: dict[str, tuple[Any, list[str]]] = {}
    for face in (*FACES, "torch/__init__.py"):
        if face.startswith(("dsl", "results")):
            continue  # of what answers and programs are made
        room = import_module(face_module(face))
        for name in getattr(room, "__all__", vars(room)):
            value = getattr(room, name)
            home = getattr(value, "__module__", None)
            if name.startswith("_") or not callable(value) or not str(home).startswith("tpcalc"):
                continue
            if "tpcalc.results" in value.__module__ or name in ("ClosedForm", "Atom", "Builder"):
                continue  # records of answers
            tests = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
            lines = [test.source for test in tests if test.exc_msg is None]
            if any(_called(node) == name for _, node in _calls(lines)):
                found[f"{room.__name__}.{name}"] = value, lines
    return found


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _calls(lines: list[str]) -> list[tuple[int, ast.Call]]:
    return [
        (place, node)
        for place, line in enumerate(lines)
        for node in ast.walk(ast.parse(line))
        if isinstance(node, ast.Call)
    ]


def changed(rng: random.Random) -> str:
    """An example up to a call in which one to three arguments are changed."""
    name = rng.choice(sorted(examples()))
    value, lines = examples()[name]
    own = name.rpartition(".")[2]
    place, node = rng.choice([one for one in _calls(lines) if _called(one[1]) == own])
    tree = ast.parse(lines[place])
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    call = next(one for one in calls if ast.dump(one) == ast.dump(node))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _spoil(call, value, rng)
    home = (
        inspect.unwrap(value).__globals__["__name__"]
        if inspect.isfunction(value)
        else value.__module__
    )
    head = f"{HOME}{home} {name.rpartition('.')[0]} {own}"
    return "\n".join([head, *lines[:place], ast.unparse(tree)])


def _spoil(call: ast.Call, function: Any, rng: random.Random) -> None:
    hostile = ast.parse(f"H[{rng.choice(NAMES)!r}]", mode="eval").body
    known = _keywords(function)
    kind = rng.random()
    if kind < 0.55 and call.args:
        call.args[rng.randrange(len(call.args))] = hostile
    elif kind < 0.75 and call.keywords:
        rng.choice(call.keywords).value = hostile
    elif kind < 0.97 and known:
        name = rng.choice(known)
        call.keywords = [one for one in call.keywords if one.arg != name]
        call.keywords.append(ast.keyword(name, hostile))
    elif kind < 0.985 and call.args:
        del call.args[-1]
    else:
        call.args.append(hostile)


def _keywords(function: Any) -> list[str]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in found if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]


class _Hostile:
    def __getitem__(self, name: str) -> Any:
        return OBJECTS[name]()


def execute(code: str) -> BaseException | None:
    """Run the lines; what the last of them raises, where it is not what a user may see."""
    import tpcalc as tp

    names: dict[str, Any] = {"tp": tp, "H": _Hostile()}
    if code.startswith(HOME):
        first, _, code = code.partition("\n")
        home, face, own = first.removeprefix(HOME).split()
        names = {**vars(import_module(home)), own: getattr(import_module(face), own), **names}
    body = ast.parse(code).body
    try:
        for node in body[:-1]:
            exec(compile(ast.Module([node], []), "<case>", "exec"), names)
    except tp.errors.TpcalcError as error:  # of the limits
        return error
    last = ast.Module(body[-1:], [])
    try:
        exec(compile(last, "<case>", "exec"), names)
    except tp.errors.TpcalcError as error:
        str(error)
        return error
    except Own:
        return None
    except TypeError as error:
        return None if OF_PYTHON.search(str(error)) else error
    except Exception as error:
        return error
    return None
