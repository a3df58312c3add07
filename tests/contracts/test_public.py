"""The public face: its names stay, and each says what it does and shows it."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, get_origin

import pytest

import tpcalc
from tests.lines import FACES, face_module
from tpcalc import errors
from tpcalc.results.tables import provenance

# Scripts rely on these. A name may be added; one that is taken away or renamed breaks them.
PROMISED = {"L", "MLP", "compare", "limit", "n", "program", "report", "simulate", "train"}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Source|Example):", re.M)


def shown(room: ModuleType) -> dict[str, Any]:
    """What a room shows that can be called, by name; types of arguments are none of it."""
    names = getattr(room, "__all__", vars(room))
    values = {name: getattr(room, name) for name in names if not name.startswith("_")}
    return {
        f"{room.__name__.removeprefix('tpcalc.')}.{name}": value
        for name, value in values.items()
        if callable(value)
        and get_origin(value) is None
        and getattr(value, "__module__", "tpcalc").startswith("tpcalc")
    }


ROOMS = [import_module(face_module(face)) for face in FACES]
CALLABLES = {name: value for room in ROOMS for name, value in shown(room).items()}
FUNCTIONS = {name: value for name, value in CALLABLES.items() if inspect.isroutine(value)}
CLASSES = {
    name: value
    for name, value in CALLABLES.items()
    if inspect.isclass(value) and not issubclass(value, BaseException | Enum)
}


def described(value: object) -> str:
    return inspect.getdoc(value) or ""


def test_promised_names_are_there() -> None:
    assert set(tpcalc.__all__) >= PROMISED


def test_version_is_stated() -> None:
    assert tpcalc.__version__.count(".") == 2
    assert provenance("", None, {}, 0.0).version == tpcalc.__version__


def test_an_unknown_name_is_an_attribute_error() -> None:
    misspelt = "limitt"
    with pytest.raises(AttributeError, match=misspelt):
        getattr(tpcalc, misspelt)


def sections(value: object) -> dict[str, str]:
    """What stands under each heading of a docstring."""
    _, *parts = SECTION.split(described(value))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def raised(function: Any) -> set[str]:
    """The errors of this package that the lines of a function raise themselves."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    made = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = {getattr(call.func, "id", "") for call in made if isinstance(call, ast.Call)}
    return {name for name in names if hasattr(errors, name)}


def test_rooms_are_looked_through() -> None:
    assert {
        "tpcalc.limit",
        "signal.nlc",
        "signal.spectra.jacobian",
        "networks.layers.serial",
    } <= set(FUNCTIONS)
    assert {"results.Estimate", "tpcalc.Training", "dsl.Vector"} <= set(CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS | CLASSES)
def test_docstring_describes_every_argument(name: str) -> None:
    value = CALLABLES[name]
    found = sections(value)
    assert described(value), f"{name} has no docstring"
    if inspect.isclass(value) and "Attributes" in found:
        return  # an answer: users read it and do not make one
    told = {
        word
        for line in re.findall(r"^ +([\w*, ]+):", found.get("Args", ""), re.M)
        for word in re.findall(r"\w+", line)
    }
    parameters = {each for each in inspect.signature(value).parameters if each[0] != "_"}
    assert parameters <= told, f"{name} does not describe {', '.join(parameters - told)}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_says_what_is_returned_and_raised(name: str) -> None:
    value = FUNCTIONS[name]
    found = sections(value)
    if inspect.signature(value).return_annotation not in (None, "None"):
        assert "Returns" in found, f"{name} does not say what it returns"
    lacking = {error for error in raised(value) if error not in found.get("Raises", "")}
    assert not lacking, f"{name} does not say that it raises {', '.join(lacking)}"


# Answers and the parts of other rooms are met in the examples of what returns them.
WITH_EXAMPLES = [*FUNCTIONS, *(name for name in CLASSES if re.match("tpcalc|networks", name))]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstring_shows_an_example_or_names_its_source(name: str) -> None:
    value = CALLABLES[name]
    has_example = bool(doctest.DocTestParser().get_examples(described(value)))
    assert has_example or "Source" in sections(value), f"{name} has neither Example nor Source"


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_have_docstrings(name: str) -> None:
    lacking = [
        member
        for member, value in inspect.getmembers(CLASSES[name])
        if not member.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and not described(value)
    ]
    assert not lacking, f"{name} has members without docstring: {', '.join(lacking)}"
