"""``tpcalc solve MODEL``: the learning rates at which every layer learns."""

from __future__ import annotations

from typing import Annotated

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import NETWORK, RATES_OPEN, AsJson, At, Flags, NetworkWord, takes

SYMBOLS = ("p", "L")
Symbolic = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Keep as symbols: p, the degree of homogeneity of the activation; L, the depth; p,L.",
    ),
]
Multipliers = Annotated[
    bool,
    typer.Option("--multipliers", help="Solve for the powers a_l of the weights as well: muP."),
]


@clean
@takes(NETWORK, RATES_OPEN)
def solve(
    model: NetworkWord,
    flags: Flags,
    symbolic: Symbolic = None,
    multipliers: Multipliers = False,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """The largest learning-rate exponents c_l(t) at which nothing that is read grows."""
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point, words
    from tpcalc.questions.solve import solve as solved
    from tpcalc.study import open_network

    names = words("--symbolic", symbolic, SYMBOLS) if symbolic is not None else ()
    chosen = point("--at", at or ()) or None
    opened = open_network(model, flags)
    found = solved(opened.training, symbolic=names, multipliers=multipliers, at=chosen)
    answer("solve", opened.description, found, opened.title, as_json)
