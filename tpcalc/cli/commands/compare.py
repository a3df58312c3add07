"""``tpcalc compare MODEL``: the limit beside finite networks."""

from __future__ import annotations

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import (
    DATA,
    DEVICE,
    LIMIT,
    NETWORK,
    RUN,
    SIMULATE,
    AsJson,
    Flags,
    ModelWord,
    takes,
)

__all__ = ["compare"]


@clean
@takes(NETWORK, DATA, LIMIT, SIMULATE, RUN, DEVICE)
def compare(model: ModelWord, flags: Flags, as_json: AsJson = False) -> None:
    """The limit beside finite networks, in standard errors, with slopes in the width."""
    from tpcalc.analyses.compare import compare as compared
    from tpcalc.cli import payload
    from tpcalc.cli.runs import check_seeds, limit_of, networks_of
    from tpcalc.cli.show import check_tolerance, put, put_table
    from tpcalc.study import open_model

    opened = open_model(model, flags)
    check_seeds(opened)
    table = limit_of(opened)
    found = compared(table, networks_of(opened))
    if as_json:
        made = payload.provenance(found.provenance)
        put(payload.document("compare", opened.description, payload.comparison(found), made))
    else:
        from tpcalc.report.terminal import comparison_group

        put_table(comparison_group(found, table), opened.title)
    check_tolerance(table)
