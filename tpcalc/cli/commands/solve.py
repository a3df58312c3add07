"""``tpcalc solve MODEL``: the learning rates at which every layer learns."""

from __future__ import annotations

from typing import Annotated

from tpcalc.cli.flags import (
    MODULE,
    NETWORK,
    RATES_OPEN,
    VALUES,
    AsJson,
    At,
    Deep,
    Flags,
    NetworkWord,
    takes,
)
from tpcalc.cli.option import told

SYMBOLS = ("p", "L")
Symbolic = Annotated[str | None, told("solve", "symbolic")]
Multipliers = Annotated[bool, told("solve", "multipliers")]
Base = Annotated[int | None, told("solve", "base")]
Width = Annotated[int | None, told("solve", "at-width")]


@takes(NETWORK, MODULE, RATES_OPEN, VALUES)
def solve(
    model: NetworkWord,
    flags: Flags,
    symbolic: Symbolic = None,
    multipliers: Multipliers = False,
    at: At = None,
    base: Base = None,
    at_width: Width = None,
    deep: Deep = None,
    as_json: AsJson = False,
) -> None:
    """The largest learning-rate exponents c_l(t) at which nothing that is read grows."""
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point, words
    from tpcalc.questions.solve import solve as solved
    from tpcalc.questions.verdict.watched import DEEP
    from tpcalc.study import open_network

    names = words("--symbolic", symbolic, SYMBOLS) if symbolic is not None else ()
    opened = open_network(model, flags)
    chosen = {**point("--at", at or ()), **(opened.study.limit.values or {})} or None
    found = solved(
        opened.training,
        symbolic=names,
        multipliers=multipliers,
        at=chosen,
        base=base,
        width=at_width,
        deep=DEEP if deep is None else deep,
    )
    answer("solve", opened.description, found, opened.title, as_json)
