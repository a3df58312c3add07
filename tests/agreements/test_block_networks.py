"""Finite networks of blocks: dense ones are the split networks, lazy ones have their law."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tests.agreements import optimizer_networks, own_networks
from tests.agreements.test_blocks import cases
from tests.corpus.networks import REGIMES, STRUCTURES
from tests.run_blocks import BlockRun, block_run, on_digits
from tests.torch_loop import looped
from tpcalc.finite.dense import run_dense
from tpcalc.finite.simulate import run_lazy
from tpcalc.finite.statistics import summary
from tpcalc.passes.as_blocks import MANY, cells_of

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

WIDTH, SEEDS = 24, (3, 4)


def own(name: str) -> Callable[[], tp.Program]:
    network, data = own_networks.NETWORKS[name]
    return lambda: tp.train(network, "mup", data, steps=2, batch=2, lr=0.3)


def optimized(name: str, optimizer: str) -> Callable[[], tp.Program]:
    network, features = optimizer_networks.NETWORKS[name]
    rng = np.random.default_rng(0)
    targets = rng.standard_normal((4, 3 if name == "embedding" else 1))
    data = tp.Samples(rng.standard_normal((4, features)).tolist(), targets.tolist())
    settings: dict[str, Any] = {"steps": 2, "batch": 2, "lr": 0.1, "optimizer": optimizer}
    return lambda: tp.train(network, "mup", data, **settings)


RUNS: dict[str, Callable[[], tp.Program]] = {
    **{name: make for name, make in (REGIMES | STRUCTURES).items() if name != "ntk-moved"},
    **{name: own(name) for name in own_networks.NETWORKS},
    **{
        f"{name}, {optimizer}": optimized(name, optimizer)
        for name in optimizer_networks.NETWORKS
        for optimizer in ("sgd", "momentum", "adam")
    },
}
# Blocks and cells draw the same numbers in one order here.
ONE_ORDER = ("ntk-all-biases", "ip-llr-batch-2", "rnn-batch-2", "blocks", "gated, adam")
IN_LAW = ("ntk-relu-batch-2", "gru", "tied, momentum", "heads, adam")


@cache
def run_of(name: str) -> BlockRun:
    return block_run(RUNS[name])


# Momentum is followed like a gradient in any network: one with shared weights stands for all.
USUAL = [one for one in RUNS if not one.endswith("momentum") or one.startswith("tied")]


@pytest.mark.parametrize("name", cases(RUNS, USUAL))
def test_dense_blocks_are_the_split_networks(name: str) -> None:
    run = run_of(name)
    assert run.blocks.has_blocks and not run.split.has_blocks
    found = run_dense(run.blocks, WIDTH, SEEDS)
    wanted = run_dense(run.split, WIDTH, SEEDS)
    assert {label for label, _ in wanted} == set(run.split.output)
    size = max(float(np.abs(value).max()) for value in wanted.values())
    for (label, statistic), value in wanted.items():
        own_value = found[run.names[label], statistic]
        np.testing.assert_allclose(own_value, value, rtol=1e-12, atol=1e-14 * size, err_msg=label)


@pytest.mark.parametrize("name", ONE_ORDER)
def test_lazy_blocks_are_the_split_networks_where_draws_have_one_order(name: str) -> None:
    run = run_of(name)
    found, wanted = (run_lazy(program, 64, SEEDS) for program in (run.blocks, run.split))
    for (label, statistic), value in wanted.items():
        np.testing.assert_allclose(found[run.names[label], statistic], value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", IN_LAW)
def test_lazy_blocks_have_the_law_of_the_split_networks(name: str) -> None:
    run = run_of(name)
    found, wanted = run_lazy(run.blocks, 48, range(60)), run_lazy(run.split, 48, range(100, 160))
    for (label, statistic), value in wanted.items():
        agree(summary(found[run.names[label], statistic]), summary(value))


def test_dense_blocks_are_a_loop_written_by_hand() -> None:
    run = on_digits(8, 6)
    found = run_dense(run.blocks, 40, [5])
    for step, row in enumerate(looped(8, 6, 40, 5)):
        for place, value in enumerate(row):
            (own_value,) = found[run.names[f"f[{step},{place}]"], "value"]
            assert own_value == pytest.approx(value, rel=1e-11, abs=1e-13)


@pytest.mark.slow
def test_both_readings_of_a_long_run_agree() -> None:
    """12 steps of batches of 12: a hundred thousand cells and terms, not one of them split."""
    run = on_digits(12, 12)
    assert cells_of(run.blocks) > MANY
    tables = [
        tp.simulate(run.blocks, widths=[256], seeds=8, seed=8 * place, backend=backend)
        for place, backend in enumerate(("dense", "lazy"))
    ]
    dense, lazy = ({row.name: row.values for row in table.rows} for table in tables)
    assert len(dense) == 13 * 12 and dense.keys() == lazy.keys()
    assert {run.names["f[0,0]"], run.names["f[12,11]"]} < dense.keys()
    for name, values in dense.items():
        agree(summary(np.array(values)), summary(np.array(lazy[name])))
    first, last = (np.array(dense[run.names[f"f[{t},0]"]]) for t in (0, 12))
    assert abs(last.mean()) > 5 * abs(first.mean())  # it learns


def test_the_estimate_of_cells_is_no_less_than_what_split_writes() -> None:
    for name in ("mup-tanh-2-steps", "digits-batch-4", "blocks", "tied, adam"):
        run = run_of(name)
        assert len(run.split.nodes) <= cells_of(run.blocks), name
