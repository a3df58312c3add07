"""``tpcalc recipe PARAM``: what to type in a training script of L blocks."""

from __future__ import annotations

from typing import Annotated

from tpcalc.cli.flags import AsJson
from tpcalc.cli.option import told

ParamWord = Annotated[str | None, told("recipe", "PARAM-WORD")]
Depth = Annotated[int, told("recipe", "depth")]
Base = Annotated[int | None, told("recipe", "base")]
OptimizerName = Annotated[str, told("recipe", "optimizer-name")]
Rate = Annotated[str, told("recipe", "rate")]
Front = Annotated[str, told("recipe", "front")]
Alpha = Annotated[str | None, told("recipe", "alpha")]
Raw = Annotated[str | None, told("recipe", "raw")]


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
        put(payload.document("recipe", {"param": found.name}, payload.result(found), {}))
    else:
        put(str(found))
