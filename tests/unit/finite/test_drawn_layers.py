"""Networks drawn layer by layer: the laws of weights, derivatives, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Any

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
    chain,
    drawn,
    matrix,
)

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.errors import DimMismatch, NotDifferentiable, TpcalcError, UnknownName, UsageError
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.functions import Fn, Var
from tpcalc.meanfield.network import network_of
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs

pytestmark = pytest.mark.torch

FAMILIES = ("gaussian", "orthogonal", "padded", "gaussian-gaussian")
RELU, TANH = Activation("relu"), Activation("tanh")
EVERYTHING = (
    chain(
        Input(),
        [
            Dense(1.5, width=2),
            LayerNorm(1e-3),
            RELU,
            Dense(2.0, "orthogonal", rank=0.5),
            SpanBias(0.1, 0.5),
            BatchNorm(None, 1e-3),
            TANH,
        ],
    )
    .then(Addition((0.5, -1.0)), 5, 7)
    .then(Dense(outputs=3))
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [0.25, 1.0])
def test_second_moment_and_rank_of_weights(family: Any, rank: float) -> None:
    """E W_ij^2 = rank variance / fan-in for all families; 12 rows, fan-in 20."""
    n, k, variance = 12, 20, 3.0
    word = Dense(variance, family, rank if rank < 1 or family[-1] != "l" else None)
    found = [matrix(word, n, k, seed) for seed in range(60)]
    squares = np.array([float((w**2).mean()) for w in found])
    expected = rank * variance / k
    assert squares.mean() == pytest.approx(expected, abs=5 * squares.std() / sqrt(60) + 1e-12)
    values = np.linalg.svd(found[0].numpy(), compute_uv=False)
    assert np.sum(values > 1e-10) == rank * n


@pytest.mark.parametrize(
    ("rows", "columns", "rank"),
    [(8, 8, 0.5), (8, 8, 1), (8, 20, 0.25), (20, 8, Fraction(2, 5)), (20, 8, 1)],
)
def test_singular_values_of_orthogonal_weights(
    rows: int, columns: int, rank: float | Fraction
) -> None:
    word = Dense(4.0, "orthogonal", rank if rank < 1 else None)
    values = np.linalg.svd(matrix(word, rows, columns).numpy(), compute_uv=False)
    # A full rank that the fan-in does not allow keeps the second moment instead.
    expected = 2.0 * (sqrt(rows / columns) if rank == 1 and rows > columns else 1)
    kept = round(min(rank * rows, columns))
    assert values[:kept] == pytest.approx([expected] * kept)
    assert values[kept:] == pytest.approx([0.0] * (len(values) - kept), abs=1e-12)


def test_padded_weights_have_orthonormal_columns_first() -> None:
    w = matrix(Dense(4.0, "padded", 0.5), 6, 6).numpy()
    assert w[:, 3:] == pytest.approx(np.zeros((6, 3)))
    assert w.T[:3] @ w[:, :3] == pytest.approx(4.0 * np.eye(3))


def test_low_rank_gaussian_weights_are_orthonormal_columns_times_gaussians() -> None:
    network = drawn([Dense(4.0, rank=0.5)], 6, 8)
    span, product = network.parameters["h1.left"], network.between(0, 2)(unit(8)).T
    assert (span.T @ span).numpy() == pytest.approx(np.eye(3))
    assert (span @ (span.T @ product)).numpy() == pytest.approx(product.numpy())


@pytest.mark.parametrize(("bias", "fluctuates"), [(SpanBias, False), (SharedBias, True)])
def test_biases_in_the_span_of_columns(bias: Any, fluctuates: bool) -> None:
    """Both have the mean square rank * variance; with one scalar it is as random as that."""
    squares = []
    for seed in range(100):
        network = drawn([Dense(1.0, rank=0.5), bias(2.0, 0.5)], 40, 4, seed)
        shift, columns = network(0 * unit(4))[0], network.parameters["h1.left"]
        assert float((columns @ (columns.T @ shift) - shift).abs().max()) < 1e-12
        squares.append(float((shift**2).mean()))
    error = float(np.std(squares)) / sqrt(100)
    assert np.mean(squares) == pytest.approx(1.0, abs=5 * error)
    # Of b^2: sqrt(2) of its mean. Of 20 independent entries: sqrt(2 / 20).
    expected = sqrt(2) if fluctuates else sqrt(2 / 20)
    assert np.std(squares) == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("bias", [SpanBias, SharedBias])
def test_biases_in_the_span_of_full_rank_weights(bias: Any) -> None:
    words = [Dense(1.0, rank=1), bias(2.0, 1)]
    squares = [
        float((drawn(words, 30, 4, seed)(0 * unit(4))[0] ** 2).mean()) for seed in range(100)
    ]
    assert np.mean(squares) == pytest.approx(2.0, abs=5 * float(np.std(squares)) / sqrt(100))


def test_layers_are_what_their_words_say() -> None:
    network, x = network_of(EVERYTHING, 6, 5, seed=3), gaussian_inputs(7, 5)
    found = {name: value.numpy() for name, value in network.values(x).items()}
    w = {name: value.numpy() for name, value in network.parameters.items()}
    assert {name: value.shape for name, value in w.items()} == {
        "h1": (5, 12),
        "h4.right": (3, 12),
        "h4.bias": (3,),
        "h4.left": (6, 3),
        "h9": (3, 6),
    }
    h1, h3, h5, h7 = (found[f"h[h{k}]"] for k in (1, 3, 5, 7))
    assert h1 == pytest.approx(sqrt(1.5) * x.numpy() @ w["h1"])
    away = h1 - h1.mean(1, keepdims=True)
    assert found["h[h2]"] == pytest.approx(away / np.sqrt(h1.var(1, keepdims=True) + 1e-3))
    assert h3 == pytest.approx(np.maximum(found["h[h2]"], 0))
    inner = h3 @ w["h4.right"].T  # the input of the map is twice as wide as its output
    assert h5 == pytest.approx((inner + sqrt(0.1) * w["h4.bias"]) @ w["h4.left"].T)
    away = h5 - h5.mean(0)
    assert found["h[h6]"] == pytest.approx(away / np.sqrt(h5.var(0) + 1e-3))
    assert h7 == pytest.approx(np.tanh(found["h[h6]"]))
    assert found["h[h8]"] == pytest.approx(0.5 * h5 - h7)
    assert network(x).numpy() == pytest.approx(found["h[h8]"] @ w["h9"].T)
    place = [tap.node for tap in network.taps].index(network.program.ref("h[h5]"))
    tail = network.between(place, len(network.taps) - 1)
    assert tail(network.layers(x)[place]).numpy() == pytest.approx(network(x).numpy())


def test_both_modes_of_differentiation_agree_with_differences() -> None:
    import torch

    network, x = network_of(EVERYTHING, 6, 5), gaussian_inputs(4, 5)
    v = gaussian_inputs(4, 5, seed=1)
    _, along = torch.func.jvp(network, (x,), (v,))
    full = torch.autograd.functional.jacobian(network, x)
    assert torch.einsum("abcd,cd->ab", full, v).numpy() == pytest.approx(along.numpy())
    step = 1e-6
    near = (network(x + step * v) - network(x - step * v)) / (2 * step)
    assert along.numpy() == pytest.approx(near.numpy(), abs=1e-6)
    each = torch.func.vmap(network)(torch.stack([x, v]))
    assert each[1].numpy() == pytest.approx(network(v).numpy())


@pytest.mark.parametrize(("name", "slope"), [("relu", 0.0), ("abs", 0.0), ("leaky_relu:0.2", 0.2)])
def test_derivative_at_a_kink_is_the_catalogues(name: str, slope: float) -> None:
    import torch

    fn, zero = lookup(name).fn, torch.zeros(1, requires_grad=True)
    (back,) = torch.autograd.grad(coordinatewise(fn, zero), zero)
    _, ahead = torch.func.jvp(lambda x: coordinatewise(fn, x), (torch.zeros(1),), (torch.ones(1),))
    assert [float(back), float(ahead)] == pytest.approx([slope, slope])


def test_functions_of_several_layers_and_second_derivatives() -> None:
    import torch

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        g = t.linear(t.n, t.n, name="w")(h)
        t.watch("x", "product", h * g**2)
        return h * g**2

    network, x = network_of(net, 3, 3), gaussian_inputs(2, 3)
    found = network.values(x)
    h, g = found["W_x[u]"], found["W_x[w]"]
    assert network(x).numpy() == pytest.approx((h * g**2).numpy())
    assert found["x[product]"].numpy() == pytest.approx((h * g**2).numpy())
    start = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(
        coordinatewise(Fn(Var(0) ** 3, 1), start), start, create_graph=True
    )
    assert float(torch.autograd.grad(first, start)[0]) == pytest.approx(6 * 0.3)


def test_a_constant_layer_has_the_shape_of_its_input() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        return 0 * t.linear(t.n, "in", name="u")(x) + 2

    assert network_of(net, 3, 3)(gaussian_inputs(2, 3)).tolist() == [[2.0] * 3] * 2


def test_seeds_and_number_formats() -> None:
    lines = chain(Input(), [Dense(2.0, rank=0.5), SpanBias(1.0, 0.5), RELU])
    x = gaussian_inputs(3, 4)
    one, again, other = (network_of(lines, 6, 4, seed)(x) for seed in (1, 1, 2))
    assert bool((one == again).all()) and not bool((one == other).any(dim=0).all())
    half = network_of(lines, 6, 4, seed=1, dtype="float32")(x.float())
    assert half.numpy() == pytest.approx(one.numpy(), rel=1e-5)
    with pytest.raises(UnknownName):
        network_of(lines, 6, 4, dtype="float8")
    with pytest.raises(UnknownName):
        network_of(lines, 6, 4, device="tpu")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Dense(-1.0), "the variance of the weights is -1.0"),
        (lambda: Dense(float("nan")), "the variance of the weights is nan"),
        (lambda: Dense(rank=0), "rank is 0"),
        (lambda: Dense(rank=1.5), "at most 1"),
        (lambda: Dense(family="sparse"), "'sparse'"),
        (lambda: Dense(outputs=0), "with 0 outputs"),
        (lambda: Bias(0), "variance of the biases is 0"),
        (lambda: SpanBias(0, 0.5), "variance of the biases is 0"),
        (lambda: LayerNorm(-1), "epsilon is -1"),
        (lambda: BatchNorm(None, -1), "epsilon is -1"),
        (lambda: Addition((1.0, 0)), "none of them 0"),
        (lambda: Lines(()), "first layer is no input"),
        (lambda: chain(Input(), [Input()]), "layer 1 .*there is one input"),
        (lambda: chain(Input(), []).then(Dense(), 1), r"layer 1 \(dense\) reads the layers 1"),
        (lambda: chain(Input(), [Dense()]).then(Addition((1.0,)), 0, 1), "it takes 1 that come"),
        (lambda: chain(Input(), [RELU, SharedBias(1.0, 1)]), "reads layer 1 .relu"),
        (lambda: drawn([Dense(rank=Fraction(3, 10))], 8, 5), "0.3|3/10"),
        (lambda: drawn([Dense(width=Fraction(3, 10))], 8, 5), "0.3|3/10"),
        (lambda: drawn([Dense(rank=Fraction(1, 100))], 8, 5), "1/100"),
        (lambda: matrix(Dense(family="orthogonal", rank=0.75), 8, 5), "rank is 0.75 .*more than"),
        (lambda: matrix(Dense(family="padded", rank=1), 8, 5), "rank is 1 .*more than"),
        (
            lambda: chain(Input(), [Dense(), Dense(width=2)]).then(Addition((1, 1)), 1, 2),
            "layers of the widths 1 n, 2 n",
        ),
    ],
)
def test_words_and_layers_that_make_no_sense(made: Callable[[], object], said: str) -> None:
    with pytest.raises(TpcalcError, match=said):
        made()


def test_batches_that_do_not_fit() -> None:
    network = drawn([Dense(), BatchNorm()], 4, 3)
    with pytest.raises(DimMismatch, match="an input has 3 numbers"):
        network(gaussian_inputs(2, 5))
    with pytest.raises(UsageError, match="single input"):
        network(gaussian_inputs(1, 3))


def test_bottlenecks() -> None:
    lines = chain(Input(), [Dense(), RELU, Dense()]).then(Addition((1, 1)), 1, 3).then(Dense())
    network = network_of(lines, 4, 3)
    found = [network.is_bottleneck(start, 5) for start in range(6)]
    assert found == [True, True, False, False, True, True]
    with pytest.raises(UsageError, match="no bottleneck"):
        network.between(2, 5)
    with pytest.raises(UsageError, match="no layers 3 and 2"):
        network.is_bottleneck(3, 2)


def test_a_jump_has_no_derivative() -> None:
    import torch

    x = gaussian_inputs(3, 4).requires_grad_()
    value = network_of(tp.network(lambda t, x: tp.sign(x)), 4, 4)(x)
    assert value.abs().sum() == 12
    with pytest.raises(NotDifferentiable):
        torch.autograd.grad(value.sum(), x)


def unit(size: int) -> Any:
    import torch

    return torch.eye(size, dtype=torch.float64)
