"""``tpcalc limit MODEL``: what a program converges to."""

from __future__ import annotations

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import DATA, LIMIT, NETWORK, RUN, AsJson, Flags, ModelWord, takes

__all__ = ["limit"]


@clean
@takes(NETWORK, DATA, LIMIT, RUN)
def limit(model: ModelWord, flags: Flags, as_json: AsJson = False) -> None:
    """The infinite-width limit of a program, with error bars."""
    from tpcalc.cli import payload
    from tpcalc.cli.runs import limit_of
    from tpcalc.cli.show import check_tolerance, put, put_table
    from tpcalc.study import open_model

    opened = open_model(model, flags)
    table = limit_of(opened)
    if as_json:
        made = payload.provenance(table.provenance)
        put(payload.document("limit", opened.description, payload.limit(table), made))
    else:
        from tpcalc.report.terminal import limit_group

        put_table(limit_group(table), opened.title)
    check_tolerance(table)
