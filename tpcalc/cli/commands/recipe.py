"""``tpcalc recipe PARAM``: what to type in a training script of L blocks."""

from __future__ import annotations

from typing import Annotated

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import AsJson

__all__ = ["recipe"]

ParamWord = Annotated[
    str | None,
    typer.Argument(
        metavar="[PARAM]",
        help="depth-mup, complete-p, depth:ALPHA;GAMMA, ...; leave it out with --alpha and --raw.",
        show_default=False,
    ),
]
Depth = Annotated[int, typer.Option("--depth", metavar="L", help="Number of blocks.")]
Base = Annotated[
    int | None,
    typer.Option(
        "--base",
        metavar="L0",
        help="Number of blocks at which the numbers were tuned.",
        show_default=False,
    ),
]
OptimizerName = Annotated[str, typer.Option("--optimizer", metavar="NAME", help="Optimizer.")]
Rate = Annotated[str, typer.Option("--lr", metavar="ETA", help="Learning rate at the base depth.")]
Front = Annotated[
    str, typer.Option("--multiplier", metavar="A", help="Number in front of a block there.")
]
Alpha = Annotated[
    str | None,
    typer.Option(
        "--alpha",
        metavar="A",
        help="The power of 1/L that a script has in front of a block.",
        show_default=False,
    ),
]
Raw = Annotated[
    str | None,
    typer.Option(
        "--raw",
        metavar="P",
        help="The power of L that the learning rate of a script has.",
        show_default=False,
    ),
]


@clean
def recipe(
    param: ParamWord = None,
    depth: Depth = 64,
    base: Base = None,
    optimizer: OptimizerName = "adam",
    lr: Rate = "1",
    multiplier: Front = "1",
    alpha: Alpha = None,
    raw: Raw = None,
    as_json: AsJson = False,
) -> None:
    """What to type in a training script of L blocks, from numbers tuned at a base depth."""
    from tpcalc.catalog.recipe import recipe as found_recipe
    from tpcalc.cli import payload
    from tpcalc.cli.show import put

    found = found_recipe(
        param,
        depth,
        base=base,
        optimizer=optimizer,
        lr=lr,
        multiplier=multiplier,
        alpha=alpha,
        raw=raw,
    )
    if as_json:
        put(payload.document("recipe", {"param": found.name}, payload.record(found), {}))
    else:
        put(str(found))
