"""Networks of several classes: blocks of random outputs are what their cells are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.test_blocks import both
from tpcalc.passes import as_blocks

NETWORKS: dict[str, tuple[Any, str]] = {
    "tanh, ntk": (tp.MLP(2, "tanh"), "ntk"),
    "relu, mup": (tp.MLP(2, "relu"), "mup"),
    "relu, ntk": (tp.MLP(3, "relu"), "ntk"),
    "gelu, standard": (tp.MLP(1, "gelu"), "standard"),
    "resnet, ntk": (tp.ResNet(1, "tanh"), "ntk"),
    "biases, ntk": (tp.MLP(2, "tanh", bias="all"), "ntk"),
}
FAST = ("tanh, ntk", "relu, mup")
CASES = [*FAST, *(pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS if n not in FAST)]


def run_of(name: str, classes: int = 2) -> tp.Training:
    rng = np.random.default_rng(1)
    data = tp.Samples(rng.normal(size=(4, 3)), rng.normal(size=(4, classes)))
    return tp.Training(*NETWORKS[name], data, steps=1, batch=2, lr=0.5, watch=["h", "dh"])


@pytest.mark.parametrize("name", CASES)
def test_limits_of_several_outputs(name: str) -> None:
    cells, blocks = both(run_of(name))
    assert sorted(blocks) == sorted(cells)
    lost = {row.name for row in cells.table.uncovered}
    assert {row.name for row in blocks.table.uncovered} == lost
    for output in set(cells) - lost:
        one, two = cells[output], blocks[output]
        if hasattr(one, "mean"):
            assert one.n_power == two.n_power
            one, two = one.second_moment, two.second_moment
        assert one.random == two.random
        agree(one, two)
        if one.random:
            assert abs(one.std - two.std) < 5 * np.hypot(one.std_error, two.std_error)


@pytest.mark.parametrize("name", CASES)
def test_sizes_of_several_outputs(name: str) -> None:
    run = run_of(name)
    cells = tp.orders(run.unrolled.cells)
    blocks = tp.orders(run.unrolled.blocks, reading="blocks")
    for output in cells:
        assert (blocks[output].n, blocks[output].zero) == (cells[output].n, cells[output].zero)
        assert (cells[output].status, blocks[output].status) != ("exact", "upper"), output


def test_outputs_before_training_are_independent_over_classes() -> None:
    """One covariance for every class, that of the samples, and 0 between two classes."""
    cells, blocks = both(run_of("tanh, ntk", classes=3).replace(watch=[]))
    for one, two in (("0,0,0", "0,0,0"), ("0,0,2", "0,1,2"), ("0,0,0", "0,1,1")):
        pair = f"f[{one}]", f"f[{two}]"
        agree(cells.cov(*pair), blocks.cov(*pair))
    later = "f[0,0,0]", "f[1,0,0]"
    agree(cells.cov(*later), blocks.cov(*later))


@pytest.mark.slow
def test_the_kernel_regime_of_ten_classes_is_read_as_blocks() -> None:
    data = tp.digits(range(10), samples=112)
    run = tp.Training(
        tp.MLP(2, "tanh"), "ntk", data, steps=6, batch=16, loss="cross-entropy", watch=[]
    )
    assert as_blocks.cells_of(run.unrolled.written) > as_blocks.MANY
    found = tp.limit(run.blocks, samples=2**10)
    assert found.graph.has_blocks
    assert all(found[name].random for name in found)
