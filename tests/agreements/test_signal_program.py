"""The mean-field recursion against the limit of the program of the same layer graph."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from layered import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Lines,
    SharedBias,
    SpanBias,
    Word,
    chain,
)

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.errors import StudyError
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import propagate
from tpcalc.results import Estimate

ACTS = ("relu", "tanh", "gelu", "erf", "softplus", "abs")


def act(name: str) -> Activation:
    return Activation(lookup(name).fn.expr, name)


def drawn(seed: int) -> Lines:
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


def outputs(graph: Lines, letters: str = "qcg") -> list[str]:
    """The names of what a program says of the last line."""
    return [f"{letter}[h[{graph.named(graph.last)}]]" for letter in letters]


def agrees(found: Estimate, value: float, error: float) -> bool:
    return abs(found.value - value) <= 5 * found.stderr + error + 1e-9 * abs(value)


@pytest.mark.parametrize("seed", range(8))
def test_S4_16_24_recursion_is_the_limit_of_the_program(seed: int) -> None:
    graph = drawn(seed)
    states = propagate(graph)
    names = outputs(graph)
    found = tp.limit(program_of(graph), outputs=names, samples=2**12, seed=seed)
    state = states[-1]
    wanted = (state.square.value, state.comean.value, state.gradient)
    for name, value in zip(names, wanted, strict=True):
        assert agrees(found[name], value, 1e-9), (seed, name, found[name], value)


def test_networks_approach_the_state() -> None:
    graph = chain(Input(1.0, 0.3), [Dense(1.5), LayerNorm(), act("tanh"), Dense(1), act("relu")])
    table = tp.simulate(program_of(graph), widths=(2048,), seeds=24, seed=1)
    state = propagate(graph)[-1]
    values = (state.square.value, state.comean.value, state.gradient)
    wanted = dict(zip(outputs(graph), values, strict=True))
    for row in table.rows:
        if row.name in wanted:
            mean = sum(row.values) / len(row.values)
            spread = (sum((v - mean) ** 2 for v in row.values) / 23 / 24) ** 0.5
            assert abs(mean - wanted[row.name]) < 5 * spread + 2e-3 * wanted[row.name]


@pytest.mark.parametrize(("batch", "count"), [(None, "infinitely many"), (8, "8")])
def test_a_batch_has_no_program(batch: int | None, count: str) -> None:
    with pytest.raises(StudyError, match=f"is {count} vectors"):
        program_of(chain(Input(1.0, 0.3), [Dense(), BatchNorm(batch)]))


@pytest.mark.parametrize("family", ["gaussian", "orthogonal", "gaussian-gaussian", "padded"])
def test_S3_1_low_rank_layers_of_all_families_have_the_same_state(family: str) -> None:
    """Haar matrices included: the limit of the program is the recursion's."""
    quarter, tanh = Fraction(1, 4), act("tanh")
    layers: list[Word] = [Dense(4, family, quarter), Bias(0.1), tanh, Dense(2, family, 0.5)]
    if family != "padded":
        layers[1] = SpanBias(0.4, quarter)
    graph = chain(Input(1, 0.3), [*layers, tanh])
    states = propagate(graph)
    state, names = states[-1], outputs(graph)
    found = tp.limit(program_of(graph), outputs=names)
    wanted = (state.square.value, state.comean.value, state.gradient)
    for name, value in zip(names, wanted, strict=True):
        assert agrees(found[name], value, 1e-9), name


@pytest.mark.parametrize("width", [Fraction(1, 2), Fraction(2)])
def test_widths_have_no_part_in_states(width: Fraction) -> None:
    tanh = act("tanh")
    layers: list[Word] = [Dense(1.5, "orthogonal", width=width), tanh, Dense(2), tanh]
    graph = chain(Input(1, 0.3), layers)
    q, c = outputs(graph, "qc")
    found = tp.limit(program_of(graph), outputs=[q, c])
    state = propagate(graph)[-1]
    assert agrees(found[q], state.square.value, 1e-9)
    assert agrees(found[c], state.comean.value, 1e-9)


def test_S3_2_a_shared_bias_is_a_random_scalar_of_the_program() -> None:
    half = Fraction(1, 2)
    graph = chain(Input(1, 0), [Dense(1, rank=half), SharedBias(0.4, half)])
    (q,) = outputs(graph, "q")
    found = tp.limit(program_of(graph), outputs=[q])[q]
    assert abs(found.value - 0.7) < 5 * found.stderr
    assert found.std == pytest.approx(0.2 * 2**0.5, rel=0.5)
    drawn = chain(Input(1, 0), [Dense(1, rank=half), SharedBias(0.4, half, drawn=1.0)])
    assert agrees(tp.limit(program_of(drawn))[q], 1.0, 1e-12)
