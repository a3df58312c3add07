"""Layer graphs: what is refused, where, and what numbers carry."""

from __future__ import annotations

import pytest

from tpcalc.catalog.activations import lookup
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.evaluate.bounded import Bounded
from tpcalc.functions import Var
from tpcalc.signal.graph import Layer, LayerGraph, chain, propagate
from tpcalc.signal.kernels import Kernels
from tpcalc.signal.nonlinearity import nlc, path_nlc
from tpcalc.signal.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
)

TANH = Activation(lookup("tanh").fn.expr, "tanh")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Input(1.0, 1.0), "q = 1.0 and c = 1.0"),
        (lambda: Input(1.0, -0.1), "c is at least 0"),
        (lambda: Dense(0), "variance of the weights is 0"),
        (lambda: Bias(-1.0), "variance of the biases is -1.0"),
        (lambda: Addition((1.0, 0)), "none of them 0"),
        (lambda: Addition(()), "weights of a sum are none"),
        (lambda: LayerGraph(()), "first layer is no input"),
        (lambda: LayerGraph((Layer(Dense(1), ()),)), "first layer is no input"),
        (lambda: chain(Input(), [Dense(1)]).then(TANH, 5), r"layer 2 \(tanh\) reads the layers 5"),
        (lambda: chain(Input(), []).then(Addition((1, 1)), 0), "it takes 2 that come before it"),
    ],
)
def test_graphs_that_make_no_sense(made: object, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        made()  # type: ignore[operator]


def test_a_layer_without_a_state_is_named() -> None:
    constant = Activation(0 * Var(0) + 1, "one")
    with pytest.raises(EvaluationError, match=r"layer 2 \(one\)"):
        propagate(chain(Input(1, 0.5), [Dense(1), constant]))


def test_linear_layers_have_the_coefficient_1() -> None:
    layers = [Dense(1.7), Bias(0.3), LayerNorm(), Dense(0.2), BatchNorm(), Bias(1.0)]
    graph = chain(Input(1.3, 0.4), layers)
    assert nlc(graph).value == pytest.approx(1, abs=1e-12)
    assert path_nlc(graph) == pytest.approx(1, abs=1e-12)


def test_the_coefficient_is_a_product_along_bottlenecks() -> None:
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
