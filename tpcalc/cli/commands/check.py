"""``tpcalc check MODEL``: what becomes of training at infinite width."""

from __future__ import annotations

from typing import Any

import typer

from tpcalc.cli.exits import SAYS_NO, TOLERANCE_NOT_MET
from tpcalc.cli.flags import MEASURE, MODULE, NETWORK, SEED, TRAINING, VALUES, Flags, takes
from tpcalc.cli.option import many

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
AT_FIRST = {
    "unstable at the start": SAYS_NO,
    "unstable": SAYS_NO,
    "output grows": SAYS_NO,
    "may be unstable": TOLERANCE_NOT_MET,
    "trivial": SAYS_NO,
    "kernel": 0,
    "feature learning": 0,
}


@many
@takes(NETWORK, MODULE, TRAINING, MEASURE, VALUES, SEED)
def check(
    model: str,
    flags: Flags,
    at: list[str] | None = None,
    measured: bool = False,
    no_verify: bool = False,
    first: bool = False,
    at_width: int | None = None,
    suggest: int | None = None,
    deep: int | None = None,
    as_json: bool = False,
) -> None:
    """Trivial, unstable, kernel or feature learning, with the fact that decides."""
    from tpcalc.cli import payload
    from tpcalc.cli.runs import (
        WATCHED,
        check_measured,
        coordinates_of,
        orders_of,
        slopes_of,
        suggested,
        theorems_of,
    )
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point
    from tpcalc.errors import UsageError
    from tpcalc.questions.check import check as checked
    from tpcalc.questions.first_order import first_order
    from tpcalc.questions.start.measured import SEEDS, WIDTHS
    from tpcalc.questions.verdict.watched import DEEP
    from tpcalc.results import DepthVerdict
    from tpcalc.study import open_model, open_network

    check_measured(flags, measured)
    more: dict[str, Any] = {}
    opened = open_network(model, flags)
    chosen = {**point("--at", at or ()), **(opened.study.limit.values or {})}
    seed = opened.study.limit.seed
    if at_width is not None and not (first or suggest):
        raise UsageError("--at-width tells sizes of first steps.", hint="Add --first.")
    instead = None if suggest is None else suggested(opened, suggest, at_width)
    if instead is not None:
        more["suggested"] = payload.result(instead)
    real = coordinates_of(opened) if measured and opened.study.module.make else None
    if first:
        part = opened.study.simulate
        widths = part.widths if "widths" in part.model_fields_set else WIDTHS
        steps = first_order(
            opened.training,
            at=chosen,
            measure=widths if measured and real is None else "auto",
            width=at_width,
            seeds=part.seeds or SEEDS,
            verify=not no_verify,
            seed=seed,
        )
        if real is not None:
            more["measured"] = payload.result(real)
        answer("check", opened.description, steps, opened.title, as_json, more=more,
               beside=(instead, real))  # fmt: skip
        raise typer.Exit(TOLERANCE_NOT_MET if steps.status == "open" else AT_FIRST[steps.word])
    most = DEEP if deep is None else deep
    found = checked(opened.training, at=chosen or None, verify=not no_verify, seed=seed, deep=most)
    if measured and isinstance(found, DepthVerdict):
        raise UsageError(
            "--measured compares with networks, and these have L blocks.",
            hint="Give --depth a number.",
        )
    theorems = theorems_of(opened, found)
    more["theorems"] = payload.result(theorems)
    slopes: Any = real
    if measured and real is None:
        program = open_model(model, flags, WATCHED)
        slopes = slopes_of(program.study, orders_of(program, chosen, not no_verify))
    if slopes is not None:
        more["measured"] = payload.result(slopes)
    beside = (instead, slopes, theorems if theorems and theorems.rows else None)
    answer("check", opened.description, found, opened.title, as_json, more=more, beside=beside)
    if code := EXITS.get(found.verdict, TOLERANCE_NOT_MET):
        raise typer.Exit(code)
