"""``tpcalc recipe PARAM``: what to type in a training script of L blocks."""

from __future__ import annotations


def recipe(
    param: str | None = None,
    depth: int = 64,
    base: int | None = None,
    optimizer: str = "adam",
    lr: str = "1",
    multiplier: str = "1",
    alpha: str | None = None,
    raw: str | None = None,
    as_json: bool = False,
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
