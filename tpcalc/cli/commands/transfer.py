"""``tpcalc transfer MODEL``: the best learning rate against the width and the number of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tpcalc.cli.flags import DEVICE, NETWORK, RATES_OPEN, SEED, Flags, takes
from tpcalc.cli.option import many


@many
@takes(NETWORK, RATES_OPEN, SEED, DEVICE)
def transfer(
    model: str,
    flags: Flags,
    lr: str | None = None,
    rates: str | None = None,
    recipes: str | None = None,
    multipliers: str = "1",
    widths: str | None = None,
    seeds: int = 4,
    average: int = 1,
    work: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Does the best learning rate stay where it is as the width or the number of blocks grows?"""
    from tpcalc.cli.depths import OO, deep
    from tpcalc.cli.show import answer, check_page, progress_bar, write_page
    from tpcalc.cli.values import listed
    from tpcalc.errors import Incomplete, UsageError
    from tpcalc.experiments.transfer import transfer as found_transfer
    from tpcalc.results import DepthExperiment
    from tpcalc.study import open_network
    from tpcalc.study.build import data_of

    check_page(out)
    tried = _rates(lr, rates)
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
            tried,
            recipes=() if recipes is None else [word.strip() for word in recipes.split(",")],
            multipliers=listed("--multipliers", multipliers),
            widths=[*([] if widths is None else listed("--widths", widths)), OO],
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
    heading = f"transfer: {title}"
    write_page(out, heading, shown)
    answer("transfer", opened.description, shown, heading, as_json, written={"out": out})
    if not found.optima:
        raise Incomplete("no loss is finite, so no rate is best.", hint="Try smaller rates, --lr.")


def _rates(lr: str | None, rates: str | None) -> Sequence[float]:
    """The rates that are tried, as either flag says."""
    from tpcalc.cli.values import ladder, listed
    from tpcalc.errors import UsageError
    from tpcalc.experiments.transfer import RATES

    if lr is not None and rates is not None:
        raise UsageError("--lr and --rates both say which rates are tried.", hint="Give one.")
    if lr is not None:
        return ladder("--lr", lr)
    return RATES if rates is None else listed("--rates", rates)
