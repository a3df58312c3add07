"""Layer graphs of the published study, kernels as bandwidths, stability, exponents (thesis)."""

from __future__ import annotations

import random
from fractions import Fraction
from math import log10, sqrt

import numpy as np
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
from tpcalc.errors import StudyError
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.covariance import bandwidth, covariance, kernel_slope
from tpcalc.meanfield.nonlinearity import heaviest_paths, nlc, path_nlc
from tpcalc.meanfield.notation.macro_layers import MacroLayers, drawn_macro_layers
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import propagate
from tpcalc.meanfield.spread import spread
from tpcalc.meanfield.stability import stability
from tpcalc.questions.orders import Orders

named = Activation

# count, activation, dilate, shift, debias, scale, bias, norm, skip, start: table A.1
ROWS = [
    (MacroLayers(25, "selu", 0.8, 0, True, 1.0, True), 1.7047, 1.6738, 1.68, 1.52),
    (MacroLayers(11, "tanh", 1.2, 0, True, 1.0), 3.1110, 1, 3.00, 1.00),
    (
        MacroLayers(19, "tanh", 0.8, -0.2, True, 1.0, False, "layer", 0.56, "norm"),
        *(2.1393, 1, 2.27, 1.00),
    ),
    (MacroLayers(27, "gaussian:1/2", 1, 0.2, False, 1.0, False, "batch"), 9.627e4, 1, 1.05e5, 1),
    (
        MacroLayers(33, "gaussian:1/2", 0.8, 0.2, False, 1.1, False, "layer"),
        *(1.5263, 8.412e11, 1.55, 7.30e11),
    ),
    (MacroLayers(25, "relu", 1.2, 0.2, True, 1.0, False, "batch"), 48.757, 1, 51.4, 1),
    (MacroLayers(27, "relu", 0.8, 0.2, False, 1.1, False, "batch"), 47.151, 1, 51.3, 1),
    (MacroLayers(29, "even_tanh", 1, 0.2, True, 1.1), 6.327e10, 1.0064, 5.97e10, 1.00),
    (MacroLayers(13, "tanh", 1, 0, True, 1.0, False, "batch", 0.36), 2.3961, 1, 2.52, 1.00),
    (
        MacroLayers(47, "odd_square", 0.8, 0.2, False, 1.0, False, "layer"),
        227.28,
        1.1627,
        250,
        1.16,
    ),
    (
        MacroLayers(11, "gaussian:1/2", 0.8, 0.2, False, 1.1, False, "batch", 0.22),
        *(36.225, 1, 37.3, 1),
    ),
]


@pytest.mark.parametrize(("design", "value", "bias", "measured", "lbias"), ROWS)
def test_S4_39_case27_table_A1(
    design: MacroLayers, value: float, bias: float, measured: float, lbias: float
) -> None:
    graph = design.network()
    states = propagate(graph)
    found = nlc(graph)
    assert found.value == pytest.approx(value, rel=1e-4)
    assert states[-1].bias == pytest.approx(bias, rel=1e-3 if bias > 100 else 1e-4)
    assert abs(log10(found.value / measured)) < 0.05
    assert states[-1].bias == pytest.approx(lbias, rel=0.16)
    assert path_nlc(graph).value == pytest.approx(found.value, rel=1e-8)


def test_S4_39_architectures_of_the_study_are_drawn_and_have_a_coefficient() -> None:
    designs = [drawn_macro_layers(seed) for seed in range(40)]
    assert {design.norm for design in designs} == {"none", "layer", "batch"}
    small = [d for d in designs if d.count <= 9 and d.norm != "none"]
    assert small
    assert all(nlc(design.network()).value > 1 for design in small)
    with pytest.raises(StudyError, match="there is none"):
        MacroLayers(3, "tanh", start="norm")


def test_S4_35_case17_bandwidth_of_the_kernel() -> None:
    layers: list[Word] = [
        Dense(1.5),
        LayerNorm(),
        named("softplus"),
        Dense(2),
        Bias(0.1),
        named("tanh"),
        Dense(1),
    ]
    graph = chain(Input(1.2, 0.3), layers)
    last = propagate(graph)[-1]
    assert kernel_slope(graph).value == pytest.approx(0.17306496, abs=1e-8)
    assert last.square.value == pytest.approx(0.51480346, abs=1e-8)
    assert last.comean.value == pytest.approx(0.38334438, abs=1e-8)
    assert bandwidth(graph).value == pytest.approx(1.08850524, abs=1e-8)
    assert bandwidth(graph).value == pytest.approx(nlc(graph).value, rel=1e-10)


def test_S4_35_case17_the_slope_is_that_of_the_kernel() -> None:
    """Also with batch norm, and where layers with means are added."""
    layers: list[Word] = [
        Dense(1.5),
        BatchNorm(),
        named("gelu"),
        Dense(2),
        Bias(0.1),
        named("tanh"),
        Dense(1),
    ]
    graph = chain(Input(1.2, 0.3), layers)
    assert bandwidth(graph).value == pytest.approx(nlc(graph).value, rel=1e-10)
    plain = chain(Input(1.2, 0.3), [Dense(1), named("relu")])
    plain = plain.then(Dense(1), 0).then(named("softplus")).then(Addition((1, -0.5)), 2, 4)
    h, r = 1e-4, 0.5

    def outer(comean: float) -> float:
        return float(covariance(plain, [[1.2, comean], [comean, 1.2]]).values[0, 1])

    slope = (outer(r + h) - outer(r - h)) / (2 * h)
    assert kernel_slope(plain, Bounded(r)).value == pytest.approx(slope, rel=1e-7)


def test_S4_19_any_number_of_inputs() -> None:
    """The kernel of a ReLU network with three arguments, case 38, and the recursion."""
    found = covariance(chain(Input(), [Dense(1), named("relu")]), [[1, 0.5], [0.5, 2]])
    assert found.values[0, 1] == pytest.approx(0.3642988817, abs=1e-10)
    layers: list[Word] = [
        Dense(1.5),
        Bias(0.1),
        LayerNorm(),
        named("gelu"),
        LayerNorm(),
        Dense(1),
    ]
    graph = chain(Input(1.3, 0.4), layers)
    gram = np.full((4, 4), 0.4) + 0.9 * np.eye(4)
    many, state = covariance(graph, gram), propagate(graph)[-1]
    assert many.values[2, 2] == pytest.approx(state.square.value, abs=1e-11)
    assert many.values[1, 3] == pytest.approx(state.comean.value, abs=1e-11)
    assert (many.errors < 1e-9).all()
    with pytest.raises(StudyError, match="eigenvalue -1"):
        covariance(graph, [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(StudyError, match="two of their batch"):
        covariance(chain(Input(1, 0.9), [Dense(1), BatchNorm()]), np.eye(2) - np.eye(2)[::-1])


def test_S4_36_case31_squares_amplify_deviations() -> None:
    square = named("square")
    layers: list[Word] = [Dense(1 / 3), square]
    found = stability(chain(Input(1, 0), [*(layers * 5), Dense(1 / 3)]))
    assert found.factors[-1].value == pytest.approx(2**5, rel=1e-12)
    assert found.label == "unstable"
    assert found.reach(1 / sqrt(1000)) == 10
    assert stability(chain(Input(), [Dense(2), named("relu")] * 3)).label == "edge"
    assert stability(chain(Input(), [Dense(1), named("tanh")] * 3)).label == "stable"


def test_S4_36_layer_norm_takes_deviations_out() -> None:
    layers: list[Word] = [Dense(1), LayerNorm(), named("swish")]
    found = stability(chain(Input(), layers * 4))
    assert found.factors[-1].value == 0
    assert (found.label, found.worst) == ("stable", 1.0)  # what the activations read is exact
    behind = stability(chain(Input(), [Dense(1), named("swish"), LayerNorm()] * 4))
    assert behind.label == "stable"  # each adds to a deviation that the next layer takes out
    assert behind.worst == pytest.approx(1.172594, abs=1e-2)
    mixed = stability(chain(Input(), [Dense(1), LayerNorm(), *[named("square"), Dense(1 / 3)] * 3]))
    assert (mixed.label, mixed.worst) == ("unstable", pytest.approx(4.0))
    before = stability(chain(Input(), [Dense(1), BatchNorm(), named("swish")] * 2))
    assert before.factors[-1].value == pytest.approx(1.172594**2, abs=1e-5)


def test_S4_36_deviations_grow_as_said() -> None:
    """Against the recursion at a start that is off by a little, skips and biases included."""
    rng = random.Random(3)
    for _ in range(3):
        q = rng.uniform(0.5, 2)

        def graph(q: float) -> Lines:
            layers: list[Word] = [Dense(1.3), Bias(0.2), named("gelu"), Dense(1.1)]
            return (
                chain(Input(q, 0), layers).then(Addition((0.7, 0.5)), 2, 4).then(named("tanh"), 4)
            )

        h = 1e-5
        up, down = (propagate(graph(q * (1 + k * h)))[-1].square.value for k in (1, -1))
        mid = propagate(graph(q))[-1].square.value
        assert stability(graph(q)).factors[-1].value == pytest.approx(
            (up - down) / (2 * h * mid), rel=1e-6
        )


@pytest.mark.parametrize("skip", [1, 0.5])
def test_S4_29_heaviest_paths_add_up(skip: float) -> None:
    """Case 14's graph and a residual one: all paths give the square of the coefficient."""
    graph = chain(Input(1, 0.25), [Dense(1.3)])
    for _ in range(3):
        before = graph.last
        for operation in (LayerNorm(), named("relu"), Dense(1)):
            graph = graph.then(operation)
        graph = graph.then(Addition((skip, 1)), before, graph.last)
    paths = heaviest_paths(graph, count=100)
    assert len(paths) == 8
    assert sum(path.weight for path in paths) == pytest.approx(1, abs=1e-12)
    assert sum(path.part for path in paths) == pytest.approx(nlc(graph).value ** 2, rel=1e-10)
    assert [p.layers for p in heaviest_paths(graph, 3)] == [p.layers for p in paths[:3]]


def test_S4_43_case40_exponents_of_dense_layers() -> None:
    """A layer is trivial, stationary or unstable by the sign of the exponent of q."""
    small, plain, large = (Dense(1, exponent=Fraction(e)) for e in (-1, 0, 1))
    tanh = named("tanh")

    def powers(*words: Word) -> Orders:
        return tp.orders(program_of(chain(Input(), words)))

    def said(found: Orders, *names: str) -> list[tuple[str, str]]:
        return [(found[name].status, found[name].text) for name in names]

    assert said(powers(small, tanh, plain), "q[h[h1]]") == [("exact", "-1")]
    assert said(powers(plain, tanh), "q[h[h1]]") == [("exact", "0")]
    assert said(powers(large, LayerNorm(), tanh), "q[h[h2]]") == [("exact", "0")]
    saturated = powers(large, tanh)  # no power of what grows: bounds and no exponents
    assert said(saturated, "q[h[h1]]") == [("exact", "1")]
    assert [saturated[f"{letter}[h[h2]]"].status for letter in "qvg"] == ["upper"] * 3
    relu = powers(large, named("relu^2"), plain)
    assert said(relu, "q[h[h1]]") == [("exact", "1")]
    assert said(relu, "q[h[h3]]", "g[h[h3]]") == [("exact", "2")] * 2
    flat = powers(small, named("gaussian"))  # it has no slope at 0
    assert said(flat, "q[h[h2]]", "g[h[h2]]") == [("exact", "0"), ("exact", "-2")]
    assert flat["v[h[h2]]"].status == "upper"
    with pytest.raises(StudyError, match=r"vanish or grow with n.*tp\.orders"):
        propagate(chain(Input(), [small]))


def test_S4_43_case40_exponents_of_biases_and_of_what_grows_again() -> None:
    layers: list[Word] = [
        Dense(1, exponent=Fraction(-1, 2)),
        named("tanh"),
        Dense(2),
        Bias(0.1),
    ]
    more: list[Word] = [named("relu"), Dense(1, exponent=Fraction(1)), named("relu")]
    cases: list[tuple[list[Word], str, str]] = [([], "0", "-1/2"), (more, "1", "1/2")]
    for extra, square, gradient in cases:
        graph = chain(Input(1, 0.5), [*layers, *extra])
        found = tp.orders(program_of(graph))
        for letter, value in (("q", square), ("g", gradient)):
            own = found[f"{letter}[h[{graph.named(graph.last)}]]"]
            assert own.status == "exact" and str(own.n) == value, (letter, own)


def test_S3_2_A19_shared_bias_is_random_at_any_width() -> None:
    """sigma_alpha^2 = 6, sigma_b^2 = 0.4, gamma = 1/4, tanh at q = 0.6."""
    tanh = named("tanh")
    common: list[Word] = [tanh, Dense(6, rank=0.25)]
    shared = spread(chain(Input(0.6, 0), [*common, SharedBias(0.4, 0.25)]), draws=1000, seed=1)[-1]
    each = propagate(chain(Input(0.6, 0), [*common, SpanBias(0.4, 0.25)]))[-1]
    assert each.square.value == pytest.approx(0.55594, abs=1e-5)
    assert abs(shared.mean.value - each.square.value) < 5 * shared.mean.stderr
    assert abs(shared.deviation.value - 0.141421) < 5 * shared.deviation.stderr
