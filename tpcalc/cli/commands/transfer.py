"""``tpcalc transfer MODEL``: the best learning rate against the number of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import (
    DEVICE,
    NETWORK,
    RATES_OPEN,
    SEED,
    AsJson,
    Flags,
    NetworkWord,
    ReportOut,
    takes,
)
from tpcalc.cli.option import told

Rates = Annotated[str | None, told("transfer", "rates")]
Recipes = Annotated[str | None, told("transfer", "recipes")]
Multipliers = Annotated[str, told("transfer", "multipliers")]
Widths = Annotated[str | None, told("transfer", "widths")]
Seeds = Annotated[int, told("transfer", "seeds")]
Average = Annotated[int, told("transfer", "average")]
Work = Annotated[Path | None, told("transfer", "work")]


@clean
@takes(NETWORK, RATES_OPEN, SEED, DEVICE)
def transfer(
    model: NetworkWord,
    flags: Flags,
    rates: Rates = None,
    recipes: Recipes = None,
    multipliers: Multipliers = "1",
    widths: Widths = None,
    seeds: Seeds = 4,
    average: Average = 1,
    work: Work = None,
    out: ReportOut = None,
    as_json: AsJson = False,
) -> None:
    """Does the best learning rate stay where it is as blocks are added?"""
    from tpcalc.cli.depths import OO, deep
    from tpcalc.cli.places import check_page
    from tpcalc.cli.progress import progress_bar
    from tpcalc.cli.show import answer, write_page
    from tpcalc.cli.values import listed
    from tpcalc.errors import UsageError
    from tpcalc.experiments.transfer import RATES
    from tpcalc.experiments.transfer import transfer as found_transfer
    from tpcalc.results import DepthExperiment
    from tpcalc.study.build import data_of

    check_page(out)
    asked = deep(model, flags)
    if asked is None:
        raise UsageError("best rates are compared over depths.", hint="Give --depth 8,16,32.")
    opened, depths = asked
    run = opened.training
    run = run.replace(data=data_of(opened.study)) if run.data is None else run
    with progress_bar("transfer") as progress:
        found = found_transfer(
            run,
            depths or (OO,),
            RATES if rates is None else listed("--rates", rates),
            recipes=() if recipes is None else [word.strip() for word in recipes.split(",")],
            multipliers=listed("--multipliers", multipliers),
            widths=[] if widths is None else [int(n) for n in listed("--widths", widths)],
            seeds=seeds,
            average=average,
            seed=opened.study.limit.seed,
            device=opened.study.simulate.device or "cpu",
            work=work,
            progress=progress,
        )
    title = f"best learning rates of {run.network.heading}"
    shown = DepthExperiment("transfer", title, "", (), found, (), (), found.provenance, ())
    heading = f"{shown.name}: {title}"
    write_page(out, heading, shown)
    answer("transfer", opened.description, shown, heading, as_json, written={"out": out})
