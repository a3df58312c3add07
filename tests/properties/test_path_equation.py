"""The path equation on random graphs: the coefficient is the same by paths and by ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from layered import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Lines,
    Word,
    chain,
)

from tpcalc import signal

NAMES = st.sampled_from(["relu", "erf", "abs", "relu^2", "sin"])
BATCHES = st.none() | st.integers(4, 300)
SIZES = st.sampled_from([0.3, 1.0, 1.7])


@st.composite
def graphs(draw: st.DrawFn) -> Lines:
    """Branches of up to two blocks, each added to what it starts from."""
    graph = chain(Input(1, draw(st.sampled_from([0.0, 0.4]))), [Dense(1)])
    batch = draw(BATCHES)
    for _ in range(draw(st.integers(1, 3))):
        before = graph.last
        for _ in range(draw(st.integers(1, 2))):
            norms: list[Word] = [BatchNorm(batch), LayerNorm(), Bias(0.2)]
            graph = graph.then(draw(st.sampled_from(norms)))
            graph = graph.then(Activation(draw(NAMES))).then(Dense(draw(SIZES)))
        graph = graph.then(Addition((draw(SIZES), draw(SIZES))), before, graph.last)
    return graph


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_the_coefficient_is_the_same_by_paths(graph: Lines) -> None:
    found, by_paths = signal.nlc(graph), signal.path_nlc(graph)
    assert abs(found.value - by_paths.value) <= found.stderr + by_paths.stderr
    assert by_paths.stderr <= 1e-9 * by_paths.value
    paths = signal.heaviest_paths(graph, count=1000)
    assert abs(sum(path.weight for path in paths) - 1) <= 1e-9
    square = sum(path.part for path in paths)
    assert abs(square**0.5 - found.value) <= by_paths.stderr + found.stderr


def test_S4_29_finite_batches_are_in_the_paths() -> None:
    """Three blocks with relu: each of their batch norms has the square (B - 2) / (B - 3)."""
    for batch, value in ((10, 1.21844), (5, 1.39677), (None, 1.14932)):
        graph = signal.resnet(3, signal.Design("relu", norm="batch", batch=batch))
        for found in (signal.nlc(graph), signal.path_nlc(graph)):
            assert abs(found.value - value) <= 5e-6 + found.stderr
