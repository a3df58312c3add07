"""``tpcalc limit MODEL``: what a program converges to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from tpcalc.cli.exits import TOLERANCE_NOT_MET, clean
from tpcalc.cli.flags import (
    DATA,
    DEVICE,
    LIMIT,
    NETWORK,
    RUN,
    AsJson,
    Flags,
    Given,
    ModelWord,
    takes,
)

__all__ = ["limit"]

OO = "oo"


@clean
@takes(NETWORK, DATA, LIMIT, RUN, DEVICE)
def limit(model: ModelWord, flags: Flags, given: Given = None, as_json: AsJson = False) -> None:
    """The infinite-width limit of a program, with error bars."""
    from tpcalc.cli import payload
    from tpcalc.cli.runs import limit_of
    from tpcalc.cli.show import check_tolerance, put, put_table
    from tpcalc.cli.values import point
    from tpcalc.errors import UsageError
    from tpcalc.study import open_model

    depths = _depths(flags)
    if depths is not None:
        from tpcalc.cli.runs import depths_of
        from tpcalc.report.terminal import depth_limit_group
        from tpcalc.study import open_network

        if given:
            raise UsageError("--given belongs to programs of a depth that is a number.")
        network = open_network(model, depths[0])
        found = depths_of(network, depths[1])
        if as_json:
            result = payload.depths(found)
            made = payload.provenance(found.provenance)
            put(payload.document("limit", network.description, result, made))
        else:
            put_table(depth_limit_group(found), network.title)
        if found.lacking:
            raise typer.Exit(TOLERANCE_NOT_MET)
        return
    values = {name: float(value) for name, value in point("--given", given or ()).items()}
    opened = open_model(model, flags)
    table = limit_of(opened, given=values)
    if as_json:
        made = payload.provenance(table.provenance)
        put(payload.document("limit", opened.description, payload.limit(table), made))
    else:
        from tpcalc.report.terminal import limit_group

        put_table(limit_group(table), opened.title)
    check_tolerance(table)


def _depths(flags: Flags) -> tuple[Flags, Sequence[str]] | None:
    """The flags of a network of L blocks, and the depths that are asked; None of a number."""
    texts = [str(flag.value) for flag in flags if flag.key == "model.depth"]
    if not texts or texts[-1].isdigit():
        return None
    words = [word.strip() for word in texts[-1].split(",") if word.strip()]
    if not all(word.isdigit() or word in ("L", OO) for word in words):
        return None  # whatever it is, it is not read here
    symbol = [replace(flag, value="L") if flag.key == "model.depth" else flag for flag in flags]
    return symbol, [OO] if words == ["L"] else words
