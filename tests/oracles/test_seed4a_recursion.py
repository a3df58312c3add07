"""Mean-field recursion and nonlinearity coefficient against the published cases (thesis, ch. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

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
    Word,
    chain,
)

from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import const, substitute
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.nonlinearity import coefficient, nlc, path_nlc
from tpcalc.meanfield.reading import propagate

ONE = Bounded(1.0)


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def calibrated(expr: Expr, mean: float = 0.0) -> Activation:
    """c tau + b with E tau^2 = 1 and the mean 0 where b is given, at variance 1."""
    second = Kernels(expr).second(ONE).value
    if mean == 0.0:
        return Activation(const(1 / sqrt(second)) * expr)
    c = 1 / sqrt(second - mean**2)
    return Activation(const(c) * expr + const(-c * mean))


def normalized(name: str) -> Activation:
    return calibrated(act(name))


def debiased(name: str) -> Activation:
    expr = act(name)
    return calibrated(expr, Kernels(expr).mean(ONE).value)


def plain(tau: Word, depth: int, variance: float = 1.0) -> Lines:
    return chain(Input(1, 0), [Dense(variance), tau] * depth)


def test_S4_24_case1_kernels() -> None:
    cases = {"relu": 0.2413721419, "abs": 0.6654885677}
    for name, value in cases.items():
        found = Kernels(act(name)).product(ONE, ONE, Bounded(0.3))
        assert found.value == pytest.approx(value, abs=1e-9)
    q = Bounded(1.3)
    assert Kernels(act("square")).product(q, q, Bounded(0.3)).value == pytest.approx(1.87)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "softplus", "elu", "erf", "abs"])
@pytest.mark.parametrize(("q", "c"), [(1.0, 0.25), (2.0, 1.5), (0.3, 0.29)])
def test_S4_24_case2_the_gap_is_the_difference(name: str, q: float, c: float) -> None:
    kernels = Kernels(act(name))
    direct = kernels.second(Bounded(q)).value - kernels.product(*map(Bounded, (q, q, c))).value
    assert kernels.gap(Bounded(q), Bounded(q - c)).value == pytest.approx(direct, abs=1e-11)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("relu", sqrt(pi / (pi - 1))),
        ("selu", 1.035169),
        ("tanh", 1.085268),
        ("sigmoid", 1.016657),
        ("softplus", 1.039485),
        ("swish", 1.100946),
        ("abs", sqrt(pi / (pi - 2))),
        ("square", sqrt(2)),
    ],
)
def test_S4_30_case3_activation_nlc(name: str, value: float) -> None:
    found = nlc(plain(Activation(act(name)), 1))
    assert found.value == pytest.approx(value, abs=1e-6)
    assert found.stderr < 1e-9


def test_S4_24_case11_tanh_with_biases() -> None:
    tanh = Activation(act("tanh"))
    graph = chain(Input(1.0, 0.3), [*[Dense(1.5), Bias(0.05), tanh] * 3, Dense(1)])
    states = propagate(graph)
    last = states[-1]
    assert last.square.value == pytest.approx(0.29470230, abs=1e-7)
    assert last.comean.value == pytest.approx(0.10881513, abs=1e-7)
    assert last.gradient == pytest.approx(0.38415194, abs=1e-7)
    assert last.bias == pytest.approx(1.25911980, abs=1e-7)
    assert nlc(graph).value == pytest.approx(1.20275129, abs=1e-7)
    first = states[3]
    assert [first.square.value, first.comean.value, first.gradient] == pytest.approx(
        [0.474243, 0.139380, 0.584278], abs=1e-6
    )


@pytest.mark.parametrize(
    ("norm", "numbers"),
    [
        (LayerNorm(), (0.5, 0.36542595, 0.39354585, 1.43075747, 1.92754417)),
        (BatchNorm(), (0.5, 1 / (2 * pi), 1.53708531, (pi / (pi - 1)) ** 1.5, 1.21117390)),
    ],
)
def test_S4_24_case12_13_normalized(norm: Word, numbers: Sequence[float]) -> None:
    block = [Dense(2), Bias(0.1), norm, Activation(act("relu"))]
    graph = chain(Input(1.0, 0.3), [*block * 3, Dense(1)])
    last = propagate(graph)[-1]
    found = [last.square.value, last.comean.value, last.gradient, nlc(graph).value, last.bias]
    assert found == pytest.approx(numbers, abs=1e-7)


def test_S4_24_29_case14_three_way_addition() -> None:
    graph = chain(Input(1, 0), [Dense(1)])
    graph = graph.then(debiased("relu"), 1).then(Dense(1), 2)
    graph = graph.then(normalized("tanh"), 1).then(Dense(1), 4)
    graph = graph.then(Addition((0.5, 1, 2)), 1, 3, 5)
    last = propagate(graph)[-1]
    assert last.square.value == pytest.approx(5.25, abs=1e-9)
    assert last.gap.value == pytest.approx(5.25, abs=1e-9)
    assert last.gradient == pytest.approx(6.42817114, abs=1e-7)
    assert nlc(graph).value == pytest.approx(1.10653222, abs=1e-7)
    assert path_nlc(graph).value == pytest.approx(nlc(graph).value, rel=1e-10)


def residual(norm: Word) -> Lines:
    """Dense(1.3), then 4 blocks out = a + Bias(.05) Dense(1) sqrt(2) relu(norm(a))."""
    rectified = Activation(const(sqrt(2)) * act("relu"))
    graph = chain(Input(1.0, 0.25), [Dense(1.3)])
    for _ in range(4):
        start = graph.last
        for operation in (norm, rectified, Dense(1), Bias(0.05)):
            graph = graph.then(operation)
        graph = graph.then(Addition((1, 1)), start, graph.last)
    return graph


@pytest.mark.parametrize(
    ("norm", "numbers"),
    [
        (LayerNorm(), (2.882168, 5.196549, 1.16286287, 1.381407)),
        (BatchNorm(), (3.701760, 8.024957, 1.27511054, 1.218926)),
    ],
)
def test_S4_24_29_case15_16_residual(norm: Word, numbers: Sequence[float]) -> None:
    graph = residual(norm)
    last = propagate(graph)[-1]
    assert last.square.value == pytest.approx(5.5, abs=1e-9)
    found = [last.gap.value, last.gradient, nlc(graph).value, last.bias]
    assert found == pytest.approx(numbers, abs=1e-6)
    assert found[2] == pytest.approx(numbers[2], abs=1e-8)
    assert path_nlc(graph).value == pytest.approx(nlc(graph).value, rel=1e-10)


def test_S4_34_case18_relu_of_many_depths() -> None:
    graph = plain(Activation(act("relu")), 50, 2.0)
    states = propagate(graph)
    for depth, value in ((1, 1.211174), (2, 1.405430), (10, 2.790027), (50, 9.076647)):
        assert coefficient(states[0], states[2 * depth]).value == pytest.approx(value, abs=2e-6)
        assert states[2 * depth].bias == pytest.approx(value, abs=2e-6)
        assert states[2 * depth].gradient == pytest.approx(1, abs=1e-9)


def test_S4_34_case22_squares() -> None:
    graph = plain(normalized("square"), 5).then(Dense(1))
    last = propagate(graph)[-1]
    assert last.comean.value == pytest.approx(0.47732822, abs=1e-7)
    assert nlc(graph).value == pytest.approx(2.83943752, abs=1e-7)
    assert last.bias == pytest.approx(1.38320158, abs=1e-7)


def test_S4_24_case26_no_cancellation() -> None:
    """33 layers of a Gaussian bump with layer norm: v / q = 1.4e-24, far below rounding of q."""
    bump = Activation(_bump(0.8, 0.2))
    block = [Dense(1.21), LayerNorm(), bump]
    graph = chain(Input(1, 0), [*block * 32, Dense(1.21), LayerNorm()])
    last = propagate(graph)[-1]
    assert last.bias == pytest.approx(8.412e11, rel=1e-3)
    assert nlc(graph).value == pytest.approx(1.5263, rel=1e-4)
    assert last.gap.error < 1e-9 * last.gap.value
    assert last.square.value - last.comean.value == 0  # what a difference would have made of it


def _bump(scale: float, shift: float) -> Expr:
    """exp(-(scale s + shift)^2 / 2), up to a factor."""
    inner = const(scale) * Var(0) + const(shift)
    return substitute(act("normal_pdf"), {Var(0): inner})
