"""Every compiled pass, run once on little: afterwards it is kept on disk for all processes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tpcalc.engine import kernels_blocks, trunks
from tpcalc.engine.chains import Chain, Gram, chain_kernels
from tpcalc.engine.chains_series import Smooth
from tpcalc.engine.chains_tables import FAMILIES
from tpcalc.engine.execute import Workspace
from tpcalc.engine.instructions import (
    Dot,
    Instruction,
    Map,
    Matrix,
    Mean,
    Multiply,
    Script,
    Space,
    Starts,
    Sum,
)
from tpcalc.engine.planes import plane_kernels
from tpcalc.engine.planes_stages import Source, Stage
from tpcalc.engine.schedule import plan
from tpcalc.engine.setting import Mode, Setting
from tpcalc.functions import Fn, Var
from tpcalc.progress import Progress

MODES: tuple[Mode, ...] = ("limit", "finite")
STORAGES = ("float64", "float32")


def warm(progress: Progress | None = None) -> str | None:
    """Compile what is not on disk yet."""
    for index, (mode, storage) in enumerate(product(MODES, STORAGES)):
        if progress is not None:
            progress(index / 5, f"{mode}, {storage}")
        for batch, width, count in product((1, 2), (512, 2048), (1, 2)):
            seeds = [(seed,) for seed in range(count)]
            Workspace(plan(_script(batch)), Setting(mode, width, storage), count).run(seeds)
    if progress is not None:
        progress(8 / 10, "kernels")
    inputs = np.eye(3)
    for family, bias, others in product(FAMILIES, (0.0, 0.1), (None, 2 * inputs)):
        chain = Chain(family, 0.5, 0.4, 2, 2.0, bias, None, 2.0, bias)
        smooth = Smooth(np.sin, np.cos) if family == "smooth" else None
        chain_kernels(Gram(inputs, others), chain, smooth=smooth)
    chain_kernels(Gram(inputs), chain, smooth=Smooth(np.sin, np.cos, kinked=True))
    first = Source(0, np.arange(2)[:, None], np.ones((2, 1)), 1.0)
    read = Source(1, np.arange(2)[None], np.ones((1, 2)), 1.0)
    bend = "abrelu", 0.5, 0.5, (1.0, 0.0, 0.0, 0.0)
    stages = Stage(size=2), Stage((first,), bend=bend, size=2), Stage((read,))
    plane_kernels(np.ones((2, 2, 1)), None, stages)
    if progress is not None:
        progress(9 / 10, "depth")
    kets = trunks.store(2, 1, 1)
    for linear in (True, False):
        trunks.forward_edges(kets, 0, 1, 0, 2, 1.0, np.zeros(1), linear)
        trunks.backward_edges(kets, 0, 1, 2, 1.0, np.zeros(1), linear)
    place: Any = kernels_blocks.dots.stats.cache_path
    return None if place is None else str(place)


def _script(batch: int) -> Script:
    """Products in both directions of matrices of both laws, and everything vectors go through."""
    spaces: list[str] = []
    steps: list[Instruction] = []

    def new(count: int) -> tuple[int, ...]:
        spaces.extend(["n"] * count)
        return tuple(range(len(spaces) - count, len(spaces)))

    first = new(batch + 1)
    steps.append(Starts("n", (0.5,) * len(first), None, first))
    last, scalars, heads = first[:batch], 0, []
    for name, transpose in product(("W", "O"), (False, True, False, True)):
        out, mapped, sums = new(batch), new(batch), new(batch)
        steps.append(Multiply(name, transpose, last, out))
        heads.append(last[0])
        steps += [Map(Fn(Var(0) ** 2, 1), (x,), (), y) for x, y in zip(out, mapped, strict=True)]
        steps.append(Dot(out[0], (last[0],), (scalars,)))
        steps.append(Mean(Fn(Var(0), 1), (mapped[0],), (), scalars + 1))
        weights = (0.1, 1e-3, 1.0)  # the sum nearly lies in the span of what was multiplied
        parts = (None, scalars, None)
        steps += [
            Sum(weights, parts, (x, y, z), total)
            for x, y, z, total in zip(last, mapped, first[1:], sums, strict=True)
        ]
        if transpose:  # what several sums read is kept in a stack
            again = zip(mapped, first[1:], new(batch), strict=True)
            steps += [Sum(weights[:2], parts[1:], (y, z), total) for y, z, total in again]
        last, scalars = sums, scalars + 2
    inner = Fn(Var(0) * Var(1), 2)
    steps.append(Mean(inner, (heads[0], heads[2]), (), scalars))  # both were multiplied by W
    scalars += 1
    matrices = (Matrix("W", "n", "n"), Matrix("O", "n", "n", "orthogonal"))
    return Script(
        (Space("n"),), matrices, tuple(steps), tuple(spaces), scalars, ("",) * len(spaces),
        tuple(range(scalars)), last,
    )  # fmt: skip
