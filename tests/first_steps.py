"""First steps as tests compare them: exponents as text, by parameter and read point."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

import tpcalc as tp
from tpcalc.results import FirstOrder

NOTHING = "-oo"
FROM_ZERO = {"init": 0}
SUM = {"init": "n^(-1/2)", "rates": ("n^(-1)", 1)}  # a map whose output has order one, under Adam
READ = {"init": "n^(-1)", "rates": ("n^(-1)", 1)}
INTO = {"init": 1}
Pair = tuple[str, str]
LEARNS: Pair = ("0", "0")
LATER: Pair = ("-1/2", "0")
NEVER: Pair = (NOTHING, NOTHING)


def first_order(
    net: Any, rule: str = "mup", optimizer: str = "adam", measured: bool = False, **settings: Any
) -> FirstOrder:
    """The answer, by default without networks of finite width."""
    net = tp.network(net) if isinstance(net, type) else net
    widths = "auto" if measured else None
    return tp.first_order(net, rule, optimizer=optimizer, measure=widths, **settings)


def terms(found: FirstOrder) -> dict[str, Pair]:
    """What steps add to the output, by parameter: the first one, and later ones."""
    return {row.name: (str(row.output), str(row.later)) for row in found.rows}


def expect(found: FirstOrder, named: Mapping[str, Pair], rest: Pair = LEARNS) -> None:
    """All terms; patterns that fit nothing are an error."""
    wanted = dict.fromkeys(terms(found), rest)
    for pattern, pair in named.items():
        own = [name for name in wanted if fnmatch(name, pattern)]
        assert own, f"no parameter is called {pattern}"
        wanted |= dict.fromkeys(own, pair)
    assert terms(found) == wanted


def read(found: FirstOrder, what: str) -> tuple[str, str, str]:
    """A read point: its size, its change, and its later changes."""
    (own,) = {
        (str(point.size), str(point.change), str(point.later))
        for point in found.points
        if point.name.startswith(what)
    }
    return own


def words(found: FirstOrder) -> dict[str, str]:
    """The words of parameters."""
    return {row.name: row.word for row in found.rows}
