"""``tpcalc recipe PARAM``: what to type in a training script of L blocks."""

from __future__ import annotations

from typing import Annotated

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import AsJson

ParamWord = Annotated[
    str | None,
    typer.Argument(
        metavar="[PARAM]",
        help="depth-mup, complete-p, depth:ALPHA;GAMMA, ...; leave it out with --alpha and --raw.",
    ),
]
Depth = Annotated[int, typer.Option(metavar="L", help="Number of blocks.")]
Base = Annotated[
    int | None, typer.Option(metavar="L0", help="Number of blocks at which the numbers were tuned.")
]
OptimizerName = Annotated[str, typer.Option(metavar="NAME", help="Optimizer.")]
Rate = Annotated[str, typer.Option(metavar="ETA", help="Learning rate at the base depth.")]
Front = Annotated[str, typer.Option(metavar="A", help="Number in front of a block there.")]
Alpha = Annotated[
    str | None,
    typer.Option(metavar="A", help="The power of 1/L that a script has in front of a block."),
]
Raw = Annotated[
    str | None,
    typer.Option(metavar="P", help="The power of L that the learning rate of a script has."),
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
    from tpcalc.cli import payload
    from tpcalc.cli.show import put
    from tpcalc.training.recipe import recipe as found_recipe

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
