"""``tpcalc simulate MODEL``: the program at finite widths."""

from __future__ import annotations

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import DATA, DEVICE, NETWORK, RUN, SIMULATE, AsJson, Flags, ModelWord, takes

__all__ = ["simulate"]


@clean
@takes(NETWORK, DATA, SIMULATE, RUN, DEVICE)
def simulate(model: ModelWord, flags: Flags, as_json: AsJson = False) -> None:
    """The same program at finite widths, averaged over random networks."""
    from tpcalc.cli import payload
    from tpcalc.cli.runs import networks_of
    from tpcalc.cli.show import put, put_table
    from tpcalc.study import open_model

    opened = open_model(model, flags)
    table = networks_of(opened)
    if as_json:
        made = payload.provenance(table.provenance)
        put(payload.document("simulate", opened.description, payload.finite(table), made))
    else:
        from tpcalc.report.terminal import finite_group

        put_table(finite_group(table), opened.title)
