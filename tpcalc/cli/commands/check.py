"""``tpcalc check MODEL``: what becomes of training at infinite width."""

from __future__ import annotations

import typer

from tpcalc.cli.exits import SAYS_NO, TOLERANCE_NOT_MET, clean
from tpcalc.cli.flags import (
    MEASURE,
    NETWORK,
    SEED,
    TRAINING,
    AsJson,
    At,
    Flags,
    Measured,
    NetworkWord,
    NoVerify,
    takes,
)

__all__ = ["check"]

EXITS = {
    "trivial": SAYS_NO,
    "unstable": SAYS_NO,
    "kernel": 0,
    "feature-learning": 0,
    "undecided": TOLERANCE_NOT_MET,
}


@clean
@takes(NETWORK, TRAINING, MEASURE, SEED)
def check(
    model: NetworkWord,
    flags: Flags,
    at: At = None,
    measured: Measured = False,
    no_verify: NoVerify = False,
    as_json: AsJson = False,
) -> None:
    """Trivial, unstable, kernel or feature learning, with the fact that decides."""
    from tpcalc.cli import payload
    from tpcalc.cli.runs import WATCHED, check_measured, checked, orders_of, slopes_of, theorems_of
    from tpcalc.cli.show import put, put_table
    from tpcalc.cli.values import point
    from tpcalc.study import open_model, open_network

    check_measured(flags, measured)
    chosen = point("--at", at or ())
    opened = open_network(model, flags)
    found = checked(opened, chosen, not no_verify)
    theorems = theorems_of(opened, found)
    slopes = None
    if measured:
        program = open_model(model, flags, WATCHED)
        slopes = slopes_of(program.study, orders_of(program, chosen, not no_verify))
    if as_json:
        made = payload.provenance(found.provenance)
        result = payload.check(found) | {"theorems": payload.theorems(theorems)}
        if slopes is not None:
            result["measured"] = payload.orders(slopes)["rows"]
        put(payload.document("check", opened.description, result, made))
    else:
        from tpcalc.report.terminal import check_group

        put_table(check_group(found, slopes, theorems=theorems), opened.title)
    code = EXITS.get(found.verdict, TOLERANCE_NOT_MET)
    if code:
        raise typer.Exit(code)
