"""The public face: its names stay, and each says what it does and shows it."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import tpcalc
from tpcalc.results.provenance import provenance

# Scripts rely on these. A name may be added; one that is taken away or renamed breaks them.
PROMISED = {"L", "MLP", "compare", "limit", "n", "program", "report", "simulate", "train"}
CALLABLES = {
    name: value
    for name in tpcalc.__all__
    if callable(value := getattr(tpcalc, name)) and not isinstance(value, ModuleType)
} | {f"layers.{name}": getattr(tpcalc.layers, name) for name in tpcalc.layers.__all__}


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


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_shows_an_example_or_names_its_source(name: str) -> None:
    value = CALLABLES[name]
    text = described(value)
    assert text, f"tpcalc.{name} has no docstring"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    has_example = bool(doctest.DocTestParser().get_examples(text))
    assert has_example or "Source" in text, f"tpcalc.{name} has neither Example nor Source"


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_names_every_argument(name: str) -> None:
    value = CALLABLES[name]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # a builtin without a signature
        return
    text = described(value)
    if inspect.isclass(value) and "Attributes:" in text:
        return  # an answer: users read it and do not make one
    lacking = [
        parameter.name
        for parameter in parameters
        if not parameter.name.startswith("_") and f"{parameter.name}:" not in text
    ]
    assert not lacking, f"the docstring of tpcalc.{name} does not describe {', '.join(lacking)}"


@pytest.mark.parametrize(
    "name", [name for name, value in CALLABLES.items() if inspect.isclass(value)]
)
def test_public_methods_have_docstrings(name: str) -> None:
    lacking = [
        member
        for member, value in inspect.getmembers(CALLABLES[name])
        if not member.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and not described(value)
    ]
    assert not lacking, f"tpcalc.{name} has members without docstring: {', '.join(lacking)}"
