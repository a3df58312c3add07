"""One of each: what is written in one place, and must not come back in a second one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import tpcalc as tp
from tests.lines import matches
from tpcalc.nonlinearity.measured import sampled_nlc

# What the source may hold below these places alone.
PLACES = {
    "nodes of Gauss rules": (
        r"\b(?:hermegauss|hermgauss|leggauss|laggauss|roots_\w+)\(",
        "tpcalc/integrals/rules.py",
    ),
    "ways to an average": (
        r"\b(?:exact|quadrature)\.(?:expectation|supported)\b",
        "tpcalc/integrals/",
    ),
}


@pytest.mark.parametrize("what", PLACES)
def test_it_stands_in_one_place(what: str) -> None:
    pattern, place = PLACES[what]
    found = set(matches(pattern))
    assert found and all(name.startswith(place) for name in found), found


def test_the_face_of_signals_is_small() -> None:
    names = [name for name in vars(tp.signal) if name[0] != "_"]
    assert sum(not isinstance(getattr(tp.signal, name), ModuleType) for name in names) <= 45


@pytest.mark.parametrize(
    ("old", "new"), [("jacobian", tp.signal.spectra.jacobian), ("sampled_nlc", sampled_nlc)]
)
def test_old_names_of_signals_warn(old: str, new: Callable[..., Any]) -> None:
    with pytest.warns(DeprecationWarning, match=rf"tp\.signal\.{old} is tp\.signal\.\w+"):
        assert inspect.unwrap(getattr(tp.signal, old)) is inspect.unwrap(new)
