"""``tpcalc orders MODEL``: exact powers of the width."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.cli.flags import DATA, MEASURE, MODULE, NETWORK, SEED, VALUES, Flags, takes
from tpcalc.cli.option import many


@many
@takes(NETWORK, MODULE, DATA, MEASURE, VALUES, SEED)
def orders(
    model: str,
    flags: Flags,
    at: list[str] | None = None,
    measured: bool = False,
    no_verify: bool = False,
    budget: str | None = None,
    as_json: bool = False,
) -> None:
    """Exact orders of size n^e of all outputs, with the region where formulas in symbols hold."""
    from tpcalc.cli.runs import WATCHED, check_measured, orders_of, slopes_of
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point
    from tpcalc.study import open_model, open_network

    check_measured(flags, measured)
    chosen = point("--at", at or ())
    largest = _budget(budget)
    if any(flag.key == "model.depth" and flag.value == "L" for flag in flags):
        from tpcalc.questions.orders import depth_orders

        network = open_network(model, flags)
        deep = depth_orders(network.training, chosen)
        answer("orders", network.description, deep, network.title, as_json)
        return
    opened = open_model(model, flags, WATCHED)
    found = orders_of(opened, chosen, not no_verify, largest)
    table = slopes_of(opened.study, found) if measured else found.table
    answer("orders", opened.description, table, opened.title, as_json)


def _budget(text: str | None) -> Fraction | None:
    from tpcalc.cli.values import rational
    from tpcalc.errors import UsageError

    if text is None:
        return None
    found = rational("--budget", text)
    if found < 0:
        raise UsageError(f"--budget is {text}.", hint="It is a power from 0 on.")
    return found
