"""The streams of random numbers of a script: one for each replicate and group, and one beside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpcalc.engine.draws import Draws, PlainDraws, SobolDraws
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Setting


def streams(plan: Plan, setting: Setting, seeds: Sequence[Sequence[int]]) -> list[Draws]:
    """The normal draws of each group of vectors with joint samples, for the seeds of replicates.

    Pseudorandom ones are as good from one stream for each space.
    """
    spaces = {space.name: (i, space.ratio) for i, space in enumerate(plan.script.spaces)}

    def own(i: int) -> list[tuple[int, ...]]:
        return [(*seed, 1 + i) for seed in seeds]

    if setting.mode == "finite":
        plain = {
            name: PlainDraws(setting.size(ratio), *own(i)) for name, (i, ratio) in spaces.items()
        }
        return [plain[name] for name in plan.joint.spaces]
    sizes = [setting.size(spaces[name][1]).bit_length() - 1 for name in plan.joint.spaces]
    return [
        SobolDraws(count, size, *own(i))
        for i, (count, size) in enumerate(zip(plan.normals, sizes, strict=True))
    ]


def generators(seeds: Sequence[Sequence[int]]) -> list[np.random.Generator]:
    """For each replicate the generator of single numbers.

    A fourth word of a seed draws coordinates anew beside the same numbers.
    """
    return [np.random.default_rng((*seed[:3], 0)) for seed in seeds]
