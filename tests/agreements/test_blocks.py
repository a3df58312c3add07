"""Two readings of one training run: blocks as they are written, and a node for each cell."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, ClassVar

import numpy as np
import pytest

import tpcalc as tp
from tests.agree import agree
from tests.agreements.own_networks import NETWORKS
from tests.graph_text import from_text, to_text
from tpcalc.activations.entries import atom
from tpcalc.errors import LimitError, ProgramError, UnknownName
from tpcalc.limit.derive import derive
from tpcalc.passes import as_blocks
from tpcalc.passes.as_blocks import rows_written

SAMPLES, REPLICATES = 2**10, 12
RUNS: dict[str, tuple[Any, ...]] = {
    "tanh, mup": (tp.MLP(3, "tanh"), "mup"),
    "relu, mup": (tp.MLP(3, "relu"), "mup"),
    "gelu, ntk": (tp.MLP(2, "gelu"), "ntk"),
    "relu, ntk": (tp.MLP(2, "relu"), "ntk"),
    "tanh, standard": (tp.MLP(2, "tanh"), "standard"),
    "tanh, naive-ip": (tp.MLP(3, "tanh"), "naive-ip"),
    "biases, mup": (tp.MLP(2, "tanh", bias="all"), "mup"),
    "layer norm, mup": (tp.MLP(2, "tanh", norm="layer"), "mup"),
    "resnet, mup": (tp.ResNet(2, "tanh"), "mup"),
    "resnet, ntk": (tp.ResNet(2, "relu"), "ntk"),
    "momentum": (tp.MLP(2, "tanh"), "mup", "momentum"),
    "nesterov": (tp.ResNet(1, "tanh"), "mup", "nesterov"),
    "adam": (tp.MLP(2, "tanh"), "mup", "adam"),
    "adam, relu": (tp.MLP(3, "relu"), "mup", "adam"),
    "adam, resnet": (tp.ResNet(1, "tanh"), "mup", "adam"),
    "adam, ntk": (tp.MLP(2, "gelu"), "ntk", "adam"),
    "adam, standard": (tp.MLP(2, "tanh"), "standard", "adam"),
    "adamw": (tp.MLP(2, "tanh"), "mup", "adamw(decay=0.1)"),
    "adam with an eps": (tp.MLP(2, "gelu"), "mup", "adam(eps=0.1)"),
    "signsgd": (tp.MLP(2, "tanh"), "mup", "signsgd"),
    "rmsprop": (tp.MLP(2, "tanh"), "mup", "rmsprop"),
    "lion": (tp.MLP(2, "tanh"), "mup", "lion"),
}


# One of each kind: random outputs, biases, streams, what explodes, and updates entry by entry.
FEW = ("relu, ntk", "biases, mup", "resnet, mup", "tanh, standard", "adam with an eps")


def cases(runs: Iterable[str], fast: Container[str] = FEW) -> list[Any]:
    """Names of runs, all but a few of them slow."""
    return [pytest.param(one, marks=() if one in fast else pytest.mark.slow) for one in runs]


def run_of(
    network: Any, parameterization: str, optimizer: str = "sgd", steps: int = 2, batch: int = 2
) -> tp.Training:
    """A short run on generic data, with a query."""
    rng = np.random.default_rng(3)
    inputs, targets = (
        rng.normal(size=((steps + 1) * batch, 3)),
        rng.normal(size=(steps + 1) * batch),
    )
    return tp.Training(
        network,
        parameterization,
        tp.Samples(inputs, targets),
        steps=steps,
        batch=batch,
        optimizer=optimizer,
        lr=0.5,
        queries=[(1.0, 0.5, -1.0)],
        watch=["h", "dh"],
    )


def many(count: int) -> tp.Samples:
    """Samples of which no two are equal."""
    return tp.Samples(np.random.default_rng(0).normal(size=(count, 3)), np.ones(count))


def both(run: tp.Training, samples: int = SAMPLES) -> tuple[tp.Limit, tp.Limit]:
    """The limit of a run cell by cell, and of its blocks."""
    blocks = run.unrolled.blocks
    assert blocks is not None and blocks.has_blocks
    settings = {"samples": samples, "replicates": REPLICATES}
    cells = tp.limit(run.unrolled.cells, **settings)
    found = tp.limit(blocks, **settings, seed=1, reading="blocks")
    assert found.graph.has_blocks
    return cells, found


# Whether a sum over the samples of a block is 0 somewhere is told from its cells alone.
CELLS_ALONE = {"adam, ntk": {"f[2,0]", "f[2,1]", "f[2,2]"}}


@pytest.mark.parametrize("name", cases(RUNS))
def test_blocks_are_what_their_cells_are(name: str) -> None:
    cells, blocks = both(run_of(*RUNS[name]))
    assert sorted(blocks) == sorted(cells)
    lost = {row.name for row in cells.table.uncovered} | CELLS_ALONE.get(name, set())
    assert {row.name for row in blocks.table.uncovered} == lost
    for name_ in set(cells) - lost:
        one, two = cells[name_], blocks[name_]
        if hasattr(one, "mean"):
            assert one.n_power == two.n_power
            agree(one.second_moment, two.second_moment)
        else:
            assert one.random == two.random
            agree(one, two)
            if one.random:
                assert abs(one.std - two.std) < 5 * np.hypot(one.std_error, two.std_error)
            else:  # what vanishes is exactly 0 in both
                assert (one.value == 0) == (two.value == 0)


class Transformer(tp.Network):
    """One layer of attention with heads over three tokens."""

    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any, heads: int, causal: bool) -> None:
        self.embed, self.read = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.mix = tp.layers.Attention(t, heads=heads, causal=causal)

    def forward(self, x: Any) -> Any:
        x = tp.tanh(self.embed(x))
        y = tp.tanh(x + self.mix(x))
        return self.read((y.at(p=0) + y.at(p=1) + y.at(p=2)) / 3)


@pytest.mark.parametrize(
    ("heads", "causal", "parameterization", "optimizer", "steps"),
    [
        (1, False, "mup", "sgd", 2),
        pytest.param(2, True, "mup", "sgd", 2, marks=pytest.mark.slow),
        # Powers of n differ from position to position.
        pytest.param(2, True, "ntk", "sgd", 1, marks=pytest.mark.slow),
        pytest.param(2, True, "ntk", "sgd", 2, marks=pytest.mark.slow),
    ],
)
def test_transformers(
    heads: int, causal: bool, parameterization: str, optimizer: str, steps: int
) -> None:
    rng = np.random.default_rng(0)
    data = tp.Samples(rng.normal(size=(6, 9)), rng.normal(size=6))
    network = tp.network(Transformer, heads=heads, causal=causal)
    settings = {"steps": steps, "batch": 2, "lr": 0.5, "optimizer": optimizer, "watch": []}
    run = tp.Training(network, parameterization, data, **settings)
    cells, blocks = both(run)
    assert {row.name for row in blocks.table.uncovered} == set()
    for one in cells:
        assert cells[one].random == blocks[one].random
        agree(cells[one], blocks[one])


def test_derivations_do_not_depend_on_the_number_of_samples() -> None:
    rng = np.random.default_rng(0)  # no step has the numbers of another
    data = tp.Samples(rng.normal(size=(112, 3)), rng.normal(size=112))
    counts = set()
    for batch in (4, 16):
        run = tp.Training(
            tp.MLP(3, "tanh"), "mup", data, steps=6, batch=batch, optimizer="adam", watch=[]
        )
        assert run.unrolled.blocks is not None
        counts.add(len(derive(run.unrolled.blocks).nodes))
    assert len(counts) == 1


def test_kernels_of_all_cells_have_the_same_bits_everywhere() -> None:
    """A kernel of forms is applied to all samples together: threads and bundles change nothing."""
    program = run_of(tp.MLP(2, "tanh"), "mup", "adam", steps=3, batch=4).unrolled.blocks
    assert program is not None
    one, two, more = (
        tp.limit(
            program,
            outputs=["f[3,*"],
            samples=256,
            replicates=count,
            threads=threads,
            reading="blocks",
        )
        for count, threads in ((4, 1), (4, 2), (5, 1))
    )
    assert one.graph.has_blocks
    for name in one:
        assert one[name].value == two[name].value
        assert one[name].draws == more[name].draws[:4]


@pytest.mark.parametrize("name", ["gru", "convolution"])
def test_networks_of_ones_own(name: str) -> None:
    network, data = NETWORKS[name]
    run = tp.Training(network, "mup", data, steps=1, batch=2, lr=0.5, watch=[])
    cells, blocks = both(run)
    for one in cells:
        agree(cells[one], blocks[one])


def test_the_outputs_are_called_alike_and_chosen_alike() -> None:
    run = run_of(tp.MLP(2, "tanh"), "mup")
    asked = ["f[2,*", "f[1,0]"]
    found = tp.limit(run, outputs=asked, samples=256, replicates=2, reading="blocks")
    assert found.graph.has_blocks
    assert sorted(found) == ["f[1,0]", "f[2,0]", "f[2,1]", "f[2,2]"]  # the last one is the query


@pytest.mark.parametrize("reading", ["blocks", "cells"])
def test_cells_from_a_number_on_are_chosen(reading: Any) -> None:
    run, asked = run_of(tp.MLP(2, "tanh"), "mup"), ["f[2,1:]", "f[1,:]"]
    found = tp.limit(run, outputs=asked, samples=256, replicates=2, reading=reading)
    assert found.graph.has_blocks == (reading == "blocks")
    assert sorted(found) == ["f[1,0]", "f[1,1]", "f[1,2]", "f[2,1]", "f[2,2]"]


def test_a_graph_of_blocks_is_read_back_from_its_text() -> None:
    heads = tp.network(Transformer, heads=2, causal=False)
    data = tp.Samples(np.eye(9) + 0.1 * np.arange(81).reshape(9, 9) / 81, np.ones(9))
    transformer = tp.Training(heads, "mup", data, steps=1, batch=2, watch=[])
    for run in (
        run_of(tp.MLP(2, "relu"), "ntk"),
        run_of(tp.MLP(2, "tanh"), "mup", "adam"),
        transformer,
    ):
        program = run.unrolled.blocks
        assert program is not None
        graph = derive(rows_written(program))
        assert graph.has_blocks and from_text(to_text(graph), atom) == graph


def test_large_runs_stay_blocks_and_small_ones_do_not() -> None:
    data = tp.Samples(np.eye(3), np.ones(3))
    small = tp.Training(tp.MLP(2, "tanh"), "mup", data, steps=2, batch=3, watch=[])
    large = tp.Training(tp.MLP(3, "tanh"), "mup", many(208), steps=12, batch=16, watch=[])
    assert (
        as_blocks.cells_of(small.unrolled.written)
        < as_blocks.MANY
        < as_blocks.cells_of(large.unrolled.written)
    )
    assert not small.blocks.has_blocks
    assert [name for name, _ in large.blocks.outputs] == [f"f[{step},:]" for step in range(13)]


def test_a_kink_that_samples_sit_on_is_refused() -> None:
    """In IP-LLR with relu the leading term is 0 on a part of the coordinates."""
    run = run_of(tp.MLP(3, "relu"), "ip-llr", steps=3)
    assert run.unrolled.blocks is not None
    found = tp.limit(run.unrolled.blocks, samples=256, replicates=2, reading="blocks")
    with pytest.raises(LimitError, match="on a part of the coordinates"):
        found["f[3,0]"]


def test_values_are_given_cell_by_cell_or_refused() -> None:
    run = run_of(tp.MLP(2, "tanh"), "ntk")
    assert run.unrolled.blocks is not None
    with pytest.raises(LimitError, match="values are given"):
        tp.limit(run.unrolled.blocks, given={"f[0,0]": 0.5}, reading="blocks")


def test_a_reading_that_is_no_way_to_read() -> None:
    run = run_of(tp.MLP(2, "tanh"), "mup")
    for question in (tp.limit, tp.orders, tp.check, tp.dependencies, tp.initial_weights):
        with pytest.raises(UnknownName, match="'block'"):
            question(run, reading="block")
    with pytest.raises(UnknownName, match="'block'"):
        tp.simulate(run, [16], reading="block")


def test_samples_follow_the_directions() -> None:
    """Without a wish there are 16 samples for each vector of a side, and a note on what is left."""
    run = tp.Training(tp.MLP(2, "tanh"), "mup", many(600), steps=24, batch=24, watch=[])
    found = tp.limit(run, outputs=["f[1,0]"], replicates=2)
    assert found["f[1,0]"].samples == 2**12
    assert any("vectors that a matrix is applied to" in note for note in found.table.notes)


def test_threads_do_not_change_a_bit() -> None:
    data = tp.Samples(np.random.default_rng(0).normal(size=(26, 3)), np.ones(26))
    run = tp.Training(tp.MLP(3, "tanh"), "mup", data, steps=12, batch=16, lr=0.5, watch=[])
    one, two = (
        tp.limit(run, outputs=["f[12,:]"], samples=256, replicates=4, threads=count)
        for count in (1, 2)
    )
    assert [one[name].value for name in one] == [two[name].value for name in two]


def test_what_reads_cells_says_that_there_are_too_many() -> None:
    run = tp.Training(tp.MLP(3, "tanh"), "mup", many(816), steps=50, batch=16, watch=[])
    with pytest.raises(ProgramError, match="cells, and this question reads them one by one"):
        tp.equivalent(run, run)


def test_random_numbers_are_divided_by_cell_by_cell_only() -> None:
    """The mean of a random number does not show that it stays away from 0."""

    @tp.program
    def divided(t: tp.Tracer) -> None:
        v, x = t.gaussian("v"), t.gaussian("x", axes={"b": 3})
        f = tp.n ** "1/2" * t.inner(v, x)
        t.output("y", f**-1)

    with pytest.raises(LimitError, match="it is random"):
        tp.limit(divided, samples=256, replicates=2, reading="blocks")


def test_questions_about_a_run_of_many_cells_have_its_names() -> None:
    data = tp.digits((3, 8), samples=20)
    run = tp.Training(tp.MLP(3, "tanh"), "mup", data, steps=7, batch=16, lr=0.5)
    assert run.blocks.has_blocks and not run.program.has_blocks
    assert run.program.output.keys() >= {"f[7,15]", "h[3,7,0]"}
