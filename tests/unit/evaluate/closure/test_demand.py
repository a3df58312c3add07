"""Values that ask for each other."""

from __future__ import annotations

import pytest

from tpcalc.integrals.demand import Demands, Rule, Unknown


def test_deep_chains_do_not_recurse() -> None:
    def depth(k: int) -> Rule:
        return 1 + (yield ("depth", k - 1)) if k else 0

    assert Demands({"depth": depth}).get(("depth", 20_000)) == 20_000


def test_each_value_is_computed_once() -> None:
    calls: list[int] = []

    def fibonacci(k: int) -> Rule:
        calls.append(k)
        if k < 2:
            return k
        return (yield ("f", k - 1)) + (yield ("f", k - 2))

    table = Demands({"f": fibonacci})
    assert table.get(("f", 60)) == 1548008755920
    assert table.get(("f", 59)) == 956722026041
    assert sorted(calls) == list(range(61))


def test_what_needs_an_unknown_value_is_unknown_and_says_why() -> None:
    def value(k: int) -> Rule:
        if k == 0:
            raise Unknown("no closed form")
        return (yield ("v", k - 1))

    table = Demands({"v": value})
    for _ in range(2):
        with pytest.raises(Unknown, match="no closed form"):
            table.get(("v", 3))


def test_a_rule_may_do_without_an_unknown_value() -> None:
    def value(k: int) -> Rule:
        if k == 0:
            raise Unknown("none")
        try:
            return (yield ("v", k - 1))
        except Unknown:
            return 7

    assert Demands({"v": value}).get(("v", 1)) == 7


def test_none_is_a_value() -> None:
    def value(k: int) -> Rule:
        if k == 0:
            return None
        below = yield ("v", k - 1)
        return below is None

    assert Demands({"v": value}).get(("v", 1)) is True
