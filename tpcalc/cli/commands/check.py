"""``tpcalc check MODEL``: what becomes of training at infinite width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from tpcalc.cli.exits import SAYS_NO, TOLERANCE_NOT_MET
from tpcalc.cli.flags import MEASURE, MODULE, NETWORK, SEED, TRAINING, VALUES, Flags, takes
from tpcalc.cli.option import many

if TYPE_CHECKING:
    from tpcalc.results import FirstOrder, OrderTable
    from tpcalc.study.model import Network

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
    from tpcalc.cli.runs import check_measured, coordinates_of, suggested, theorems_of
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point
    from tpcalc.errors import UsageError
    from tpcalc.questions.check import check as checked
    from tpcalc.questions.verdict.probe import DEEP
    from tpcalc.study import open_network

    check_measured(flags, measured)
    opened = open_network(model, flags)
    chosen = {**point("--at", at or ()), **(opened.study.limit.values or {})}
    if at_width is not None and not (first or suggest):
        raise UsageError("--at-width tells sizes of first steps.", hint="Add --first.")
    instead = None if suggest is None else suggested(opened, suggest, at_width)
    slopes: Any = coordinates_of(opened) if measured and opened.study.module.make else None
    networks, theorems = measured and slopes is None, None
    found: Any
    if first:
        found = _first(opened, chosen, networks, at_width, not no_verify)
        code = TOLERANCE_NOT_MET if found.status == "open" else AT_FIRST[found.word]
    else:
        own: dict[str, Any] = {"verify": not no_verify, "seed": opened.study.limit.seed}
        most = DEEP if deep is None else deep
        found = checked(opened.training, at=chosen or None, deep=most, **own)
        theorems = theorems_of(opened, found)
        slopes = _slopes(model, flags, found, chosen, not no_verify) if networks else slopes
        code = EXITS.get(found.verdict, TOLERANCE_NOT_MET)
    parts = {"suggested": instead, "theorems": theorems, "measured": slopes}
    more = {key: payload.result(part) for key, part in parts.items() if part is not None}
    beside = (instead, slopes, theorems if theorems and theorems.rows else None)
    answer("check", opened.description, found, opened.title, as_json, more=more, beside=beside)
    if code:
        raise typer.Exit(code)


def _first(
    opened: Network, at: Mapping[str, Any], measured: bool, width: int | None, verify: bool
) -> FirstOrder:
    """What first steps do, beside networks where they are measured."""
    from tpcalc.questions.first_order import first_order
    from tpcalc.questions.start.measured import SEEDS, WIDTHS

    part = opened.study.simulate
    widths = part.widths if "widths" in part.model_fields_set else WIDTHS
    return first_order(
        opened.training,
        at=at,
        measure=widths if measured else "auto",
        width=width,
        seeds=part.seeds or SEEDS,
        verify=verify,
        seed=opened.study.limit.seed,
    )


def _slopes(
    model: str, flags: Flags, found: Any, at: Mapping[str, Any], verify: bool
) -> OrderTable:
    """Orders of the same network, measured."""
    from tpcalc.cli.runs import WATCHED, orders_of, slopes_of
    from tpcalc.errors import UsageError
    from tpcalc.study import open_model

    if found.at != "width":
        raise UsageError(
            "--measured compares with networks, and these have L blocks.",
            hint="Give --depth a number.",
        )
    program = open_model(model, flags, WATCHED)
    return slopes_of(program.study, orders_of(program, at, verify))
