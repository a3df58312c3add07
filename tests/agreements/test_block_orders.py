"""Orders and verdicts of training runs: of blocks as they are written, and cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.test_blocks import RUNS, cases, run_of
from tpcalc.training import training

MORE: dict[str, tuple[Any, ...]] = {
    "kinks that samples sit on": (tp.MLP(3, "relu"), "ip-llr"),  # read cell by cell after all
    "adam": (tp.MLP(2, "tanh"), "mup", "adam"),
}


FEW = ("biases, mup",)
# Each kind once, the limits of all are compared: Lion takes signs as signsgd does. The blocks of
# RMSprop take four minutes; those of Adam hold the same averages of squares.
OTHERS = {
    *("rmsprop", "nesterov", "adamw", "adam with an eps", "adam, resnet", "adam, ntk"),
    *("adam, relu", "adam, standard", "gelu, ntk", "resnet, ntk", "tanh, standard", "lion"),
}
SIZED = {name: run for name, run in (RUNS | MORE).items() if name not in OTHERS}


@pytest.mark.parametrize("name", cases(SIZED, FEW))
def test_sizes_of_blocks_are_those_of_their_cells(name: str) -> None:
    run = run_of(*SIZED[name])
    cells = tp.orders(run.unrolled.cells)
    assert run.unrolled.blocks is not None
    blocks = tp.orders(run.unrolled.blocks, reading="blocks")
    assert sorted(blocks) == sorted(cells)
    assert {one: cells[one].n for one in cells} == {one: blocks[one].n for one in cells}
    # Samples of the engine have smaller errors: no exact size is lost, and some are won.
    assert not [
        one
        for one in cells
        if (cells[one].status, blocks[one].status) == ("exact", "upper")
        or cells[one].zero != blocks[one].zero
    ]


@pytest.mark.parametrize(
    ("depth", "parameterization", "verdict"),
    [
        (2, "mup", "feature-learning"),
        pytest.param(3, "mup", "feature-learning", marks=pytest.mark.slow),
        pytest.param(3, "ntk", "kernel", marks=pytest.mark.slow),
        pytest.param(3, "naive-ip", "trivial", marks=pytest.mark.slow),
        pytest.param(3, "sp", "unstable", marks=pytest.mark.slow),
    ],
)
def test_verdicts_do_not_depend_on_the_reading(
    depth: int, parameterization: str, verdict: str
) -> None:
    run = run_of(tp.MLP(depth, "tanh"), parameterization)
    run = run.replace(queries=(), watch=training.NAMES)
    cells = tp.check(run)
    blocks = tp.check(run, reading="blocks")
    assert cells.verdict == blocks.verdict == verdict
    assert blocks.valid_for == cells.valid_for
    assert [(row.name, row.n, row.status) for row in blocks.outputs] == [
        (row.name, row.n, row.status) for row in cells.outputs
    ]
    assert [(layer.weights, layer.moves) for layer in blocks.layers] == [
        (layer.weights, layer.moves) for layer in cells.layers
    ]


@pytest.mark.slow
def test_a_verdict_with_sixteen_samples_a_step() -> None:
    run = tp.Training(tp.MLP(3, "tanh"), "mup", tp.digits((3, 8), samples=64), steps=3, batch=16)
    assert run.named("auto").has_blocks
    found = tp.check(run)
    assert (found.verdict, found.valid_for) == ("feature-learning", "all t")


@pytest.mark.slow
def test_few_samples_for_many_directions_shift_nothing() -> None:
    """Two hundred directions on 512 samples: averages would be off by seven standard errors."""
    rng = np.random.default_rng(0)
    data = tp.Samples(rng.normal(size=(220, 6)), rng.choice([-1.0, 1.0], size=220))
    run = tp.Training(tp.MLP(3, "tanh"), "mup", data, steps=12, batch=16, lr=0.5, watch=[])
    few = tp.limit(run, outputs=["f[12,*"], samples=2**9, replicates=16)
    many = tp.limit(run, outputs=["f[12,*"], samples=2**12, replicates=16, seed=1)
    for name in few:
        agree(few[name], many[name])
    together = np.mean([few[name].value ** 2 - many[name].value ** 2 for name in few])
    spread = np.mean([2 * abs(few[name].value) * few[name].stderr for name in few])
    assert abs(together) < spread
