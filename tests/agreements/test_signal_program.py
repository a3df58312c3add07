"""The mean-field recursion against the limit of the program of the same layer graph."""

from __future__ import annotations

import random

import pytest

import tpcalc as tp
from tpcalc.catalog.activations import lookup
from tpcalc.errors import StudyError
from tpcalc.results import Estimate
from tpcalc.signal.graph import LayerGraph, chain, propagate
from tpcalc.signal.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
)
from tpcalc.signal.program import program_of

ACTS = ("relu", "tanh", "gelu", "erf", "softplus", "abs")


def act(name: str) -> Activation:
    return Activation(lookup(name).fn.expr, name)


def drawn(seed: int) -> LayerGraph:
    """Two or three blocks dense, bias, (norm), activation, a skip around some of them."""
    rng = random.Random(seed)
    graph = chain(Input(rng.uniform(0.5, 2), rng.uniform(0, 0.4)), [Dense(rng.uniform(0.5, 2))])
    for _ in range(rng.choice((2, 3))):
        skip = graph.last
        if rng.random() < 0.5:
            graph = graph.then(LayerNorm())
        graph = graph.then(act(rng.choice(ACTS))).then(Dense(rng.uniform(0.5, 2)))
        if rng.random() < 0.7:
            graph = graph.then(Bias(rng.uniform(0.05, 0.5)))
        if rng.random() < 0.5:
            graph = graph.then(
                Addition((rng.uniform(0.3, 1), rng.uniform(0.3, 1))), skip, graph.last
            )
    return graph


def agrees(found: Estimate, value: float, error: float) -> bool:
    return abs(found.value - value) <= 5 * found.stderr + error + 1e-9 * abs(value)


@pytest.mark.parametrize("seed", range(8))
def test_S4_23_recursion_is_the_limit_of_the_program(seed: int) -> None:
    graph = drawn(seed)
    states, last = propagate(graph), graph.last
    names = [f"{letter}[{last}]" for letter in "qcg"]
    found = tp.limit(program_of(graph), outputs=names, samples=2**12, seed=seed)
    state = states[-1]
    wanted = (state.square.value, state.comean.value, state.gradient)
    for name, value in zip(names, wanted, strict=True):
        assert agrees(found[name], value, 1e-9), (seed, name, found[name], value)


def test_networks_approach_the_state() -> None:
    graph = chain(Input(1.0, 0.3), [Dense(1.5), LayerNorm(), act("tanh"), Dense(1), act("relu")])
    table = tp.simulate(program_of(graph), widths=(2048,), seeds=24, seed=1)
    state = propagate(graph)[-1]
    wanted = {"q[5]": state.square.value, "c[5]": state.comean.value, "g[5]": state.gradient}
    for row in table.rows:
        if row.name in wanted:
            mean = sum(row.values) / len(row.values)
            spread = (sum((v - mean) ** 2 for v in row.values) / 23 / 24) ** 0.5
            assert abs(mean - wanted[row.name]) < 5 * spread + 2e-3 * wanted[row.name]


def test_a_batch_has_no_program() -> None:
    with pytest.raises(StudyError, match="layer 1: batch norm has no program"):
        program_of(chain(Input(1.0, 0.3), [BatchNorm()]))
