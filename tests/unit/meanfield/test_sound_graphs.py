"""Layer graphs at their edges: what was wrong without a word is right or refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from layered import (
    Activation,
    Addition,
    BatchNorm,
    Dense,
    Input,
    LayerNorm,
    Lines,
    SharedBias,
    SpanBias,
    chain,
)

import tpcalc as tp
from tpcalc.errors import TpcalcError
from tpcalc.functions import Var
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.covariance import bandwidth, covariance, kernel_slope
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.nonlinearity import nlc
from tpcalc.meanfield.notation.notation import parse_graph
from tpcalc.meanfield.program import program_of
from tpcalc.meanfield.reading import propagate
from tpcalc.meanfield.stability import stability

HALF = Fraction(1, 2)
SMALL = Dense(1, exponent=Fraction(-1))
SHARED = chain(Input(), [Dense(1, rank=HALF), SharedBias(0.4, HALF, drawn=1.0)])


def act(name: str) -> Activation:
    return Activation(name)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: covariance(chain(Input(), [SMALL]), np.eye(2)),
            r"%5 \(f\) at .*n\^\(-1/2\) vanish",
        ),
        (lambda: propagate(chain(Input(), [SMALL])), r"%5 \(f\) at .*n\^\(-1/2\) vanish or grow"),
        (lambda: kernel_slope(chain(Input(1, 0), [Dense(1)]), Bounded(5.0)), "no co-mean of 5"),
        (lambda: chain(Input(), [Input()]), r"layer 1 \(input\).*one input"),
        (
            lambda: propagate(chain(Input(), [SMALL]).then(Addition((1, -1)), 1, 1)),
            "the output of the network is a constant",
        ),
        (lambda: Dense(10**400), "variance of the weights is 1000"),
        (lambda: Input(10**400), "second moments q = 1000"),
        (lambda: Addition((10**400,)), "weights of a sum are 1000"),
        (lambda: Dense(1, outputs=2.5), "outputs are a whole number"),  # type: ignore[arg-type]
        (lambda: Dense(1, exponent=0.5), "power of n"),  # type: ignore[arg-type]
        (lambda: BatchNorm(4.5), "whole number from 4 on"),  # type: ignore[arg-type]
        (lambda: SharedBias(0.4, HALF, drawn=float("nan")), "the bias that is drawn is nan"),
        (
            lambda: program_of(chain(Input(), [Dense(1, width=1e-11)])),
            "must be exact, and the float 1e-11",
        ),
        (lambda: parse_graph("x = input()\na = b = dense(x)"), "line 2: 'a = b.*is no layer"),
        (lambda: parse_graph("x = input()\na = " + "+".join(["x"] * 20000)), "line 2.*many parts"),
        (lambda: parse_graph("x = input()\na = batch_norm(x, batch=9/2)"), "line 2.*whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(made: object, said: str) -> None:
    with pytest.raises(TpcalcError, match=said):
        made()  # type: ignore[operator]


def test_maps_with_a_power_of_n_are_drawn_at_their_width() -> None:
    import torch

    x = torch.eye(8, dtype=torch.float64)
    small, large = (network_of(chain(Input(), [own]), 8, 8)(x) for own in (SMALL, Dense(1)))
    assert (8**0.5 * small).numpy() == pytest.approx(large.numpy(), rel=1e-12)


def test_counts_in_texts_are_whole_numbers() -> None:
    graph = parse_graph(
        "x = input()\nh = dense(x)\na = batch_norm(h, batch=8)\nb = dense(a, 1, outputs=3)"
    )
    norm, readout = (line.word for line in graph.lines[2:])
    assert isinstance(norm, BatchNorm) and isinstance(readout, Dense)
    assert type(norm.batch) is type(readout.outputs) is int


def test_equal_inputs_stay_equal_in_the_kernel() -> None:
    """Rounding below q moves the slope of a kinked activation by its square root, 1e-8."""
    text = "x = input(1.2887300989775399, 0)\na = dense(x, 2.9899637543385826)"
    graph = parse_graph(f"{text}\nb = layer_norm(a)\nc = leaky_relu(b, 1/5)\nd = dense(c, 0.67)")
    found = bandwidth(graph)
    assert found.value == pytest.approx(nlc(graph).value, rel=1e-13)
    assert found.error < 1e-13


def test_what_an_activation_leaves_besides_its_mean_has_an_order_of_its_own() -> None:
    """sigmoid of what vanishes is 1/2 and little more, which a layer norm makes large again."""
    graph = chain(Input(1, 0.5), [SMALL, act("sigmoid"), LayerNorm()])
    found = tp.orders(program_of(graph))
    gaps = [found[f"v[h[h{k}]]"] for k in (1, 2, 3)]
    assert [(gap.status, gap.text) for gap in gaps] == [
        ("exact", "-1"),
        ("exact", "-1"),
        ("exact", "0"),
    ]
    kept = tp.orders(program_of(chain(Input(1, 0.5), [SMALL, LayerNorm(1e-5)])))
    both = [kept[f"{letter}[h[h2]]"] for letter in "qv"]
    assert [(each.status, each.text) for each in both] == [("exact", "-1")] * 2


def two(first: float, second: float) -> Lines:
    relu = act("relu")
    graph = chain(Input(1, 0), [Dense(1), relu]).then(Dense(1), 0).then(relu)
    return graph.then(Addition((first, second)), 2, 4)


@pytest.mark.parametrize("second", [-1.0, 0.5])
def test_sums_of_homogeneous_activations_are_homogeneous(second: float) -> None:
    """Products of means grow as well; without them the factor of relu - relu is 1.467."""
    found = stability(two(1.0, second))
    assert found.factors[-1].value == pytest.approx(1.0, abs=1e-12)
    assert found.worst == pytest.approx(1.0, abs=1e-12)


def test_an_epsilon_leaves_some_of_a_deviation() -> None:
    found = stability(chain(Input(1, 0), [Dense(1), LayerNorm(5.0)]))
    assert found.factors[-1].value == pytest.approx(5 / 6)
    square = Activation(Var(0) ** 2, "square")
    ends = [
        propagate(chain(Input(q, 0), [Dense(1), square, LayerNorm(3.0)]))[-1].square.value
        for q in (1 - 1e-5, 1 + 1e-5)
    ]
    growth = (ends[1] - ends[0]) / (ends[1] + ends[0]) / 1e-5
    found = stability(chain(Input(1, 0), [Dense(1), square, LayerNorm(3.0)]))
    assert found.factors[-1].value == pytest.approx(growth, rel=1e-6)


def test_programs_name_a_width_in_one_way() -> None:
    """1/4 and 0.25 are one dimension, 1/4 and 1.4 two."""
    graph = chain(Input(1, 0.5), [Dense(1, width=0.25)]).then(Dense(1, width=Fraction(1, 4)), 0)
    sums = graph.then(Addition((1, 1)), 1, 2)
    assert tp.limit(program_of(sums), outputs=["q[h[h3]]"])["q[h[h3]]"].value == pytest.approx(2)
    other = chain(Input(1, 0.5), [Dense(1, width=1.4), Dense(3, width=Fraction(1, 4))])
    assert tp.limit(program_of(other), outputs=["q[h[h2]]"])["q[h[h2]]"].value == pytest.approx(3)


def test_biases_in_the_span_of_padded_weights() -> None:
    graph = chain(Input(1, 0.5), [Dense(1, "padded", HALF), SpanBias(0.4, HALF)])
    found = tp.limit(program_of(graph), outputs=["q[h[h2]]", "c[h[h2]]"])
    assert propagate(graph)[-1].square.value == pytest.approx(0.7)
    assert found["q[h[h2]]"].value == pytest.approx(propagate(graph)[-1].square.value)
    assert found["c[h[h2]]"].value == pytest.approx(propagate(graph)[-1].comean.value)
