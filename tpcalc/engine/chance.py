"""The streams of random numbers of a script: one for each replicate and space, and one beside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpcalc.engine.draws import Draws, PlainDraws, SobolDraws
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Setting

__all__ = ["generators", "streams"]


def streams(plan: Plan, setting: Setting, seeds: Sequence[Sequence[int]]) -> dict[str, Draws]:
    """The normal draws on each space, for the seeds of replicates."""
    return {
        space.name: _draws(plan, setting, space.name, space.ratio, [(*s, 1 + i) for s in seeds])
        for i, space in enumerate(plan.script.spaces)
    }


def _draws(
    plan: Plan, setting: Setting, name: str, ratio: float, seeds: Sequence[Sequence[int]]
) -> Draws:
    size = setting.size(ratio)
    if setting.mode == "limit":
        return SobolDraws(max(1, plan.normals.get(name, 0)), size.bit_length() - 1, *seeds)
    return PlainDraws(size, *seeds)


def generators(seeds: Sequence[Sequence[int]]) -> list[np.random.Generator]:
    """For each replicate the generator of single numbers.

    A fourth word of a seed draws coordinates anew beside the same numbers.
    """
    return [np.random.default_rng((*seed[:3], 0)) for seed in seeds]
