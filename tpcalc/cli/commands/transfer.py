"""``tpcalc transfer MODEL``: the best learning rate against the width and the number of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from tpcalc.cli.many import many
from tpcalc.cli.option import told

Range = Annotated[str | None, told("transfer", "lr")]
Rates = Annotated[str | None, told("transfer", "rates")]
Recipes = Annotated[str | None, told("transfer", "recipes")]
Multipliers = Annotated[str, told("transfer", "multipliers")]
Widths = Annotated[str | None, told("transfer", "widths")]
Seeds = Annotated[int, told("transfer", "seeds")]
Average = Annotated[int, told("transfer", "average")]
Work = Annotated[Path | None, told("transfer", "work")]


@many
@takes(NETWORK, RATES_OPEN, SEED, DEVICE)
def transfer(
    model: NetworkWord,
    flags: Flags,
    lr: Range = None,
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
    """Does the best learning rate stay where it is as the width or the number of blocks grows?"""
    from tpcalc.cli.depths import OO, deep
    from tpcalc.cli.places import check_page
    from tpcalc.cli.progress import progress_bar
    from tpcalc.cli.show import answer, write_page
    from tpcalc.cli.values import ladder, listed
    from tpcalc.errors import Incomplete, UsageError
    from tpcalc.experiments.transfer import RATES
    from tpcalc.experiments.transfer import transfer as found_transfer
    from tpcalc.results import DepthExperiment
    from tpcalc.study import open_network
    from tpcalc.study.build import data_of

    check_page(out)
    if lr is not None and rates is not None:
        raise UsageError("--lr and --rates both say which rates are tried.", hint="Give one.")
    typed = RATES if rates is None else listed("--rates", rates)
    sizes = [] if widths is None else listed("--widths", widths)
    asked = deep(model, flags)
    if asked is None and widths is None:
        raise UsageError(
            "best rates are compared over widths, or over depths.",
            hint="Give --depth 8,16,32 of residual blocks, or --widths 128,512,2048.",
        )
    opened, depths = (open_network(model, flags), None) if asked is None else asked
    run = opened.training
    run = run.replace(data=data_of(opened.study)) if run.data is None else run
    with progress_bar("transfer") as progress:
        found = found_transfer(
            run,
            () if depths is None else depths or (OO,),
            typed if lr is None else ladder("--lr", lr),
            recipes=() if recipes is None else [word.strip() for word in recipes.split(",")],
            multipliers=listed("--multipliers", multipliers),
            widths=[*sizes, OO],
            seeds=seeds,
            average=average,
            seed=opened.study.limit.seed,
            device=opened.study.simulate.device or "cpu",
            work=work,
            progress=progress,
        )
    beside = "depth" if widths is None else "width"
    title = f"best learning rates of {run.network.heading} by {beside}"
    shown = DepthExperiment("transfer", title, "", (), found, (), (), found.provenance, ())
    heading = f"{shown.name}: {title}"
    write_page(out, heading, shown)
    answer("transfer", opened.description, shown, heading, as_json, written={"out": out})
    if not found.optima:
        raise Incomplete("no loss is finite, so no rate is best.", hint="Try smaller rates, --lr.")
