"""Layer graphs: what is refused, where, and what numbers carry."""

from __future__ import annotations

import pytest
from layered import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Line,
    Lines,
    SharedBias,
    SpanBias,
    chain,
)

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.functions import Var
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.conditions import findings
from tpcalc.meanfield.maps.layer_map import LayerMap, edge_of_chaos
from tpcalc.meanfield.nonlinearity import nlc, path_nlc
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import layers, propagate

TANH = Activation(lookup("tanh").fn.expr, "tanh")
RELU = Activation(lookup("relu").fn.expr, "relu")
START = chain(Input(1, 0), [Dense(1)])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Input(1.0, 1.0), "q = 1.0 and c = 1.0"),
        (lambda: Input(1.0, -0.1), "c is at least 0"),
        (lambda: Dense(0), "variance of the weights is 0"),
        (lambda: Bias(-1.0), "variance of the biases is -1.0"),
        (lambda: Addition((1.0, 0)), "none of them 0"),
        (lambda: Addition(()), "weights of a sum are none"),
        (lambda: Addition((1.0, 0)), r"22\.3"),
        (lambda: Activation(0 * Var(0) + 1, "one"), r"activation one is a constant.*22\.2"),
        (lambda: Dense(1, rank=0), "A layer of rank 0"),
        (lambda: Dense(1, rank=1.5), "the rank is 1.5"),
        (lambda: Dense(1, "diagonal"), "weights are 'diagonal'"),
        (lambda: Dense(float("nan")), "variance of the weights is nan"),
        (lambda: BatchNorm(3), "the batch has 3 inputs"),
        (lambda: LayerNorm(-1), r"epsilon is -1; .*22\.7"),
        (lambda: SpanBias(0.1, 0), "the rank is 0"),
        (lambda: START.then(SpanBias(0.1, 0.5)), r"layer 2 \(bias in the span\).*of the rank 0.5"),
        (lambda: START.then(Dense(1, width=2)).then(Addition((1, 1)), 1, 2), "widths 1 n, 2 n"),
        (lambda: START.then(Dense(1, "orthogonal", 0.75, 2)), r"layer 2 \(dense\).*more than"),
        (lambda: START.then(Dense(1, outputs=3)).then(Dense(1)), "it reads a readout"),
        (lambda: Lines(()), "first layer is no input"),
        (lambda: Lines((Line(Dense(1), ()),)), "first layer is no input"),
        (lambda: chain(Input(), [Dense(1)]).then(TANH, 5), r"layer 2 \(tanh\) reads the layers 5"),
        (lambda: chain(Input(), []).then(Addition((1, 1)), 0), "it takes 2 that come before it"),
    ],
)
def test_S4_23_case34_graphs_that_make_no_sense(made: object, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        made()  # type: ignore[operator]


def test_a_layer_without_a_state_is_named() -> None:
    graph = chain(Input(1, 0.5), [Dense(0.5, rank=0.25), SharedBias(0.4, 0.25)])
    said = r"layer 2 \(shared bias\).*self-average.*0\.4 .*0\.565685"  # C takes a quarter of it
    with pytest.raises(StudyError, match=said):
        propagate(graph)


def test_linear_layers_have_the_coefficient_1() -> None:
    layers = [Dense(1.7), Bias(0.3), LayerNorm(), Dense(0.2), BatchNorm(), Bias(1.0)]
    graph = chain(Input(1.3, 0.4), layers)
    assert nlc(graph).value == pytest.approx(1, abs=1e-12)
    assert path_nlc(graph).value == pytest.approx(1, abs=1e-12)


def test_S4_28_the_coefficient_is_a_product_along_bottlenecks() -> None:
    graph = chain(Input(1.0, 0.2), [Dense(2), TANH, Dense(2), TANH, Dense(1)])
    parts = nlc(graph, 0, 2).value * nlc(graph, 2, 5).value
    assert nlc(graph).value == pytest.approx(parts, rel=1e-12)
    assert nlc(graph, 0, 1).value == pytest.approx(1, abs=1e-12)


def test_paths_around_a_layer_are_seen() -> None:
    graph = chain(Input(1, 0), [Dense(1), TANH, Dense(1)]).then(Addition((1, 1)), 1, 3)
    with pytest.raises(UsageError, match="layer 2 is no bottleneck for layer 4"):
        nlc(graph, 2)
    with pytest.raises(UsageError, match="no layers 3 and 9"):
        nlc(graph, 3, 9)
    assert nlc(graph, 1).value > 1


def test_errors_are_carried() -> None:
    """An uncertain variance makes every average uncertain by its slope."""
    kernels, q = Kernels(lookup("relu").fn.expr), Bounded(2.0, 1e-3)
    assert kernels.second(q).error == pytest.approx(0.5e-3, rel=1e-6)
    assert kernels.slope(q).error < 1e-12
    assert kernels.gap(q, Bounded(1.0, 1e-4)).error >= 0.4e-4
    assert kernels.gap(q, Bounded(0.0)).value == 0


def test_what_leaves_the_range_of_floats_is_refused_where_it_does() -> None:
    with pytest.raises(EvaluationError, match=r"layer 11 \(dense\): a number of the"):
        propagate(chain(Input(1, 0), [Dense(1e30)] * 12))


def test_S4_23_case34_functions_of_functions_are_one_function() -> None:
    """Conditions 22.10 and 22.11: no layer bends an activation, nor adds to it what it is of."""
    curved = START.then(RELU).then(TANH)
    assert [layer.operation.name for layer in layers(curved).layers[2:]] == ["tanh(relu(x0))"]
    added = START.then(TANH).then(Addition((1, 1)), 1, 2)
    assert [layer.operation.name for layer in layers(added).layers[2:]] == ["tanh(x0) + x0"]


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (START.then(TANH).then(BatchNorm()), "normalises over the batch what is not Gaussian"),
        (
            START.then(TANH).then(Dense(1)).then(Addition((1, 1)), 2, 3).then(RELU),
            "bends a vector that h1, h3 wrote .*which is a sum of functions and not Gaussian",
        ),
        (
            START.then(TANH)
            .then(Dense(1))
            .then(Addition((1, 1)), 1, 3)
            .then(RELU)
            .then(Addition((1, 1)), 2, 5),
            "two vectors that are not independent, a vector that h1 wrote .*and .*h1, h3 wrote",
        ),
    ],
)
def test_S4_23_case34_where_the_recursion_does_not_hold(graph: Lines, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        propagate(graph)


def test_S4_23_case34_what_holds_beyond_the_conditions() -> None:
    """relu(a) - softplus(b) / 2: means multiply, where the table would give 0.730311."""
    softplus = Activation(lookup("softplus").fn.expr, "softplus")
    graph = START.then(RELU).then(Dense(1), 0).then(softplus).then(Addition((1, -0.5)), 2, 4)
    found = findings(graph)
    assert [(each.condition, each.kind) for each in found] == [
        ("22.2", "limit"),
        ("22.9", "extended"),
    ]
    assert "layers 3, 4" in str(found[1])
    assert propagate(graph)[-1].square.value == pytest.approx(0.408740, abs=1e-6)
    other = tp.limit(program_of(graph), outputs=["q[h[h5]]", "c[h[h5]]"])
    assert other["q[h[h5]]"].value == pytest.approx(propagate(graph)[-1].square.value, abs=1e-9)
    assert other["c[h[h5]]"].value == pytest.approx(propagate(graph)[-1].comean.value, abs=1e-9)
    norms = chain(Input(1, 0), [Dense(1), LayerNorm(1e-5), Dense(1), BatchNorm(epsilon=1e-5)])
    assert [each.condition for each in findings(norms)] == ["22.8"]


def test_S4_15_case35_layer_norm_after_an_activation() -> None:
    """Case 35."""
    scaled = Activation(2**0.5 * lookup("relu").fn.expr, "relu")
    graph = chain(Input(1, 0), [Dense(1), scaled, LayerNorm()])
    assert propagate(graph)[-1].comean.value == pytest.approx(0, abs=1e-12)
    assert nlc(graph).value == pytest.approx(1.211173896, abs=1e-9)


def test_S4_23_case34_a_residual_unit_passes() -> None:
    graph = START.then(LayerNorm()).then(TANH).then(Dense(1)).then(Addition((1, 1)), 1, 4)
    assert propagate(graph)[-1].square.value > 1


def test_S4_16_23_case34_programs_cover_what_the_recursion_does_not() -> None:
    """a + tanh(a): E (s + tanh s)^2, where adding second moments would give 1.394294."""
    graph = START.then(TANH).then(Addition((1, 1)), 1, 2)
    found = tp.limit(program_of(graph), outputs=["q[h[h3]]"])["q[h[h3]]"]
    assert found.value == pytest.approx(2.605706, abs=1e-6)
    assert propagate(graph)[-1].square.value == pytest.approx(2.605706, abs=1e-6)


def test_just_above_the_edge_of_chaos() -> None:
    weights, biases = edge_of_chaos(lookup("tanh").fn.expr, 1.0)
    layer = LayerMap(lookup("tanh").fn.expr, weights * (1 + 2e-8), biases)
    assert layer.phase == "chaotic"
    gap = 1.0 - layer.stable_correlation
    assert 10 * gap.error < gap.value < 1e-6
