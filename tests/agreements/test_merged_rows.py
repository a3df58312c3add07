"""Equal rows of a batch are one before training: the same run, with fewer cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.test_blocks import both
from tpcalc.finite.dense import run_dense
from tpcalc.limit.derive import derive
from tpcalc.passes.as_blocks import cells_of
from tpcalc.passes.step import Merged
from tpcalc.program.program import selected

RNG = np.random.default_rng(5)
INPUTS, TARGETS = RNG.normal(size=(12, 3)), RNG.normal(size=12)
SEVERAL = RNG.normal(size=(12, 2))
ROWS = [0, 1, 0, 0, 2, 2, 3, 3, 4, 5, 4, 5]  # 3 + 1, 2 + 2, 2 + 2 times
UNEVEN = [0, 0, 0, 0, 2, 2, 3, 1, 4, 5, 4, 5]  # one, then three, then two that differ


def run_on(network: Any, parameterization: str, rows: list[int], **settings: Any) -> tp.Training:
    targets = settings.pop("targets", TARGETS)
    settings = {"steps": 2, "batch": 4, "lr": 0.5, "watch": ["h", "dh"], **settings}
    data = tp.Samples(INPUTS[rows], targets[rows])
    return tp.Training(network, parameterization, data, **settings)


RUNS: dict[str, Callable[[], tp.Training]] = {
    "tanh, mup": lambda: run_on(tp.MLP(2, "tanh"), "mup", ROWS, queries=[(1.0, 0.5, -1.0)]),
    "biases": lambda: run_on(tp.MLP(2, "relu", bias="all"), "ntk", ROWS),
    "two outputs": lambda: run_on(tp.MLP(2, "tanh"), "mup", ROWS, targets=SEVERAL),
    "momentum": lambda: run_on(tp.MLP(2, "tanh"), "mup", UNEVEN, optimizer="momentum"),
    "adam": lambda: run_on(tp.ResNet(1, "tanh"), "mup", UNEVEN, optimizer="adam"),
    "contributions": lambda: run_on(
        tp.MLP(2, "tanh", bias="all"), "mup", ROWS, watch=["dW_x", "dB", "x"]
    ),
}


def apart(run: tp.Training, monkeypatch: pytest.MonkeyPatch) -> tp.Training:
    """The same run with a cell for every row."""
    with monkeypatch.context() as patch:
        patch.setattr(Merged, "of", lambda rows: None)
        found = run.replace()
        assert found.unrolled
        return found


def test_rows_are_merged_where_inputs_and_targets_are_equal() -> None:
    assert Merged.of(["a", "b"]) is None
    assert Merged.of(["a", "b", "a", "a"]) == Merged((0, 1, 0, 0), (3, 1))
    same = run_on(tp.MLP(2, "tanh"), "mup", [0] * 12)
    other = tp.Samples(INPUTS[[0] * 12], TARGETS)
    assert cells_of(same.unrolled.written) < cells_of(same.replace(data=other).unrolled.written)


@pytest.mark.parametrize("name", RUNS)
def test_finite_networks_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    run = RUNS[name]()
    other = apart(run, monkeypatch)
    assert cells_of(run.unrolled.written) < cells_of(other.unrolled.written)
    for merged, whole in (
        (run.unrolled.blocks, other.unrolled.blocks),
        (run.unrolled.cells, other.unrolled.cells),
        (run.unrolled.named, other.unrolled.named),
    ):
        assert merged is not None and whole is not None
        found, wanted = run_dense(merged, 16, [3]), run_dense(whole, 16, [3])
        assert found.keys() == wanted.keys()
        size = max(float(np.abs(value).max()) for value in wanted.values())
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-11, atol=1e-13 * size)


@pytest.mark.parametrize(
    "name",
    [
        "tanh, mup",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("biases", "momentum", "adam")),
    ],
)
def test_limits_and_sizes_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RUNS[name]()
    other = apart(run, monkeypatch)
    cells, blocks = both(run)
    _, whole = both(other)
    assert sorted(blocks) == sorted(whole) == sorted(cells)
    for output in whole:
        for found in (cells[output], blocks[output]):
            wanted = whole[output]
            if hasattr(wanted, "mean"):
                assert found.n_power == wanted.n_power
                agree(found.second_moment, wanted.second_moment)
            else:
                assert found.random == wanted.random
                assert found.random or (found.value == 0) == (wanted.value == 0)
                agree(found, wanted)


@pytest.mark.parametrize("reading", ["cells", "blocks"])
def test_orders_and_statuses_are_the_same(reading: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_on(tp.MLP(2, "relu"), "ntk", ROWS, steps=1)
    other = apart(run, monkeypatch)
    found, wanted = (tp.orders(one.unrolled.blocks, reading=reading) for one in (run, other))
    assert {name: (one.n, one.status, one.zero) for name, one in found.found.items()} == {
        name: (one.n, one.status, one.zero) for name, one in wanted.found.items()
    }


def test_derivations_take_what_differing_rows_take(monkeypatch: pytest.MonkeyPatch) -> None:
    once = run_on(tp.MLP(2, "tanh"), "mup", [*range(8)], batch=4, steps=1)
    twice = run_on(
        tp.MLP(2, "tanh"),
        "mup",
        [*range(4), *range(4), *range(4, 8), *range(4, 8)],
        batch=8,
        steps=1,
    )
    assert len(twice.unrolled.cells.nodes) == len(once.unrolled.cells.nodes)
    whole = apart(twice, monkeypatch)
    sizes = []
    for run in (once, twice, whole):
        program = selected(run.unrolled.named, ["f[1,0]", "dh[1,1,0]"])
        graph = derive(program)
        sizes.append(sum(int(np.prod([size for _, size in own])) for own in graph.axes))
    assert sizes[0] == sizes[1] < sizes[2]


def test_samples_that_draw_numbers_of_their_own_are_not_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Noisy(tp.Network):
        def __init__(self, t: Any) -> None:
            self.first, self.last = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
            self.drop = tp.layers.Dropout(t, 0.5)

        def forward(self, x: Any) -> Any:
            return self.last(self.drop(tp.tanh(self.first(x))))

    run = run_on(tp.network(Noisy), "mup", ROWS, watch=[], steps=1)
    assert cells_of(run.unrolled.written) == cells_of(apart(run, monkeypatch).unrolled.written)
