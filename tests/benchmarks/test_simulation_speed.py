"""Finite networks of blocks beside a loop in torch that a user would write.

The latest figures are on ``docs/benchmarks.md``. Run with ``python -m tests.benchmarks``.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.benchmarks.figures import fastest, figure
from tests.run_blocks import on_digits
from tests.torch_loop import looped
from tpcalc.finite.dense import run_dense
from tpcalc.finite.simulate import run_lazy

pytest.importorskip("torch")

BATCH = 16
seconds_of = partial(fastest, warm=False)


@pytest.mark.parametrize(("steps", "width"), [(20, 1024), (50, 1024), (50, 4096)])
def test_blocks_beside_a_loop(steps: int, width: int) -> None:
    run = on_digits(steps, BATCH)
    loop = seconds_of(lambda: looped(steps, BATCH, width, 0))
    dense = seconds_of(lambda: run_dense(run.blocks, width, [0]))
    lazy = seconds_of(lambda: run_lazy(run.blocks, width, [0], threads=1))
    print(
        f"\n{steps} steps of {BATCH}, width {width}: loop {loop:.2f} s, "
        f"dense {dense:.2f} s ({dense / loop:.2f}), lazy {lazy:.2f} s ({lazy / loop:.2f})"
    )
    for backend, seconds in (("dense", dense), ("lazy", lazy)):
        case = f"{steps} steps of {BATCH}, width {width}, {backend}"
        figure("finite", case, seconds, peer=("loop in torch", loop))


def test_blocks_beside_single_vectors() -> None:
    run = on_digits(6, 8)
    for name, read in (("dense", run_dense), ("lazy", run_lazy)):
        assert run.split.nodes
        whole, cells = (
            seconds_of(lambda p=program, r=read: r(p, 512, [0]))  # type: ignore[misc]
            for program in (run.blocks, run.split)
        )
        print(f"\n{name}, 6 steps of 8, width 512: blocks {whole:.3f} s, split {cells:.3f} s")
