"""One of each: what is written in one place, and must not come back in a second one."""

from __future__ import annotations

import pytest

from tests.lines import matches

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
