"""``tpcalc simulate MODEL``: the program at finite widths."""

from __future__ import annotations

from tpcalc.cli.flags import ASKED, DATA, DEVICE, MODULE, NETWORK, RUN, SIMULATE, Flags, takes
from tpcalc.cli.option import many


@many
@takes(NETWORK, MODULE, DATA, SIMULATE, ASKED, RUN, DEVICE)
def simulate(model: str, flags: Flags, as_json: bool = False) -> None:
    """The same program at finite widths, averaged over random networks."""
    from tpcalc.cli.runs import networks_of
    from tpcalc.cli.show import answer
    from tpcalc.study import open_model

    opened = open_model(model, flags)
    answer("simulate", opened.description, networks_of(opened), opened.title, as_json)
