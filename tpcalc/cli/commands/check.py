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
    "identity": SAYS_NO,
    "vanishing": SAYS_NO,
    "stationary": 0,
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
    from tpcalc.errors import UsageError
    from tpcalc.results import DepthVerdict
    from tpcalc.study import open_model, open_network

    check_measured(flags, measured)
    chosen = point("--at", at or ())
    opened = open_network(model, flags)
    found = checked(opened, chosen, not no_verify)
    if isinstance(found, DepthVerdict):
        if measured:
            raise UsageError("--measured compares with networks, and these have L blocks.",
                             hint="Give --depth a number.")  # fmt: skip
        theorems = theorems_of(opened, found)
        if as_json:
            made = payload.provenance(found.provenance)
            result = payload.depth(found) | {"theorems": payload.theorems(theorems)}
            put(payload.document("check", opened.description, result, made))
        else:
            from tpcalc.report.terminal import depth_group

            put_table(depth_group(found, theorems=theorems), opened.title)
        _end(found.verdict)
        return
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
    _end(found.verdict)


def _end(verdict: str) -> None:
    """End with the exit code of a verdict."""
    code = EXITS.get(verdict, TOLERANCE_NOT_MET)
    if code:
        raise typer.Exit(code)
