"""``tpcalc compare MODEL``: the limit beside finite networks."""

from __future__ import annotations

from tpcalc.cli.flags import (
    ASKED,
    DATA,
    DEVICE,
    LIMIT,
    MODULE,
    NETWORK,
    RUN,
    SIMULATE,
    Flags,
    takes,
)
from tpcalc.cli.option import many


@many
@takes(NETWORK, MODULE, DATA, LIMIT, SIMULATE, ASKED, RUN, DEVICE)
def compare(model: str, flags: Flags, as_json: bool = False) -> None:
    """The limit beside finite networks, in standard errors, with slopes in the width."""
    from tpcalc.cli.runs import limit_of, networks_of
    from tpcalc.cli.show import answer, check_tolerance
    from tpcalc.questions.compare import compare as compared
    from tpcalc.questions.studies import check_seeds
    from tpcalc.study import open_model

    opened = open_model(model, flags)
    check_seeds(opened)
    table = limit_of(opened)
    found = compared(table, networks_of(opened))
    answer("compare", opened.description, found, opened.title, as_json)
    check_tolerance(table)
