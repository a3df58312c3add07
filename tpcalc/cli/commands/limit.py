"""``tpcalc limit MODEL``: what a program converges to."""

from __future__ import annotations

from tpcalc.cli.flags import ASKED, DATA, DEVICE, LIMIT, MODULE, NETWORK, RUN, Flags, takes
from tpcalc.cli.option import many


@many
@takes(NETWORK, MODULE, DATA, LIMIT, ASKED, RUN, DEVICE)
def limit(model: str, flags: Flags, given: list[str] | None = None, as_json: bool = False) -> None:
    """The infinite-width limit of a program, with error bars."""
    from tpcalc.cli.depths import deep
    from tpcalc.cli.runs import limit_of
    from tpcalc.cli.show import answer, check_gaps, check_tolerance
    from tpcalc.cli.values import point
    from tpcalc.errors import UsageError
    from tpcalc.study import open_model

    found_deep = deep(model, flags)
    if found_deep is not None:
        from tpcalc.cli.runs import depths_of

        if given:
            raise UsageError("--given belongs to programs of a depth that is a number.")
        network, depths = found_deep
        found = depths_of(network, depths)
        answer("limit", network.description, found, network.title, as_json)
        check_gaps(found)
        return
    values = {name: float(value) for name, value in point("--given", given or ()).items()}
    opened = open_model(model, flags)
    table = limit_of(opened, given=values)
    answer("limit", opened.description, table, opened.title, as_json)
    check_tolerance(table)
