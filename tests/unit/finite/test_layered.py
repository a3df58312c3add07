"""Networks from layers: the laws of their weights, their derivatives, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest

from tpcalc.catalog.activations import lookup
from tpcalc.errors import DimMismatch, NotDifferentiable, StudyError, UnknownName, UsageError
from tpcalc.finite.layered.network import Layered
from tpcalc.finite.layered.steps import (
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Elementwise,
    Input,
    LayerNorm,
    Step,
)
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.finite.surrogates import gaussian_inputs
from tpcalc.functions import Fn, Var

pytestmark = pytest.mark.torch

FAMILIES = ("gaussian", "orthogonal", "padded", "gaussian-gaussian")
RELU = Elementwise(lookup("relu").fn)
EVERYTHING: list[Step] = [
    Input(),
    Dense(1.5, width=2),
    LayerNorm(1e-3),
    RELU,
    Dense(2.0, "orthogonal", rank=0.5),
    Bias(0.1, "directions"),
    BatchNorm(1e-3),
    Elementwise(lookup("tanh").fn),
    Addition((0.5, -1.0), (5, 7)),
    Dense(size=3),
]


def single(step: Dense, width: int, inputs: int, seed: int = 0) -> Any:
    return Layered([Input(), step], width, inputs, seed).weights[1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [0.25, 1.0])
def test_second_moment_and_rank_of_weights(family: Any, rank: float) -> None:
    """E W_ij^2 = rank variance / fan-in for all families; 12 rows, fan-in 20."""
    n, k, variance = 12, 20, 3.0
    drawn = [single(Dense(variance, family, rank), n, k, seed).product for seed in range(200)]
    squares = np.array([float((w**2).mean()) for w in drawn])
    expected = rank * variance / k
    assert squares.mean() == pytest.approx(expected, abs=5 * squares.std() / sqrt(200) + 1e-12)
    values = np.linalg.svd(drawn[0].numpy(), compute_uv=False)
    assert np.sum(values > 1e-10) == rank * n


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), [(8, 8, 0.5), (8, 8, 1), (8, 20, 0.25), (20, 8, 0.4), (20, 8, 1)]
)
def test_singular_values_of_orthogonal_weights(rows: int, columns: int, rank: float) -> None:
    values = np.linalg.svd(
        single(Dense(4.0, "orthogonal", rank), rows, columns).product.numpy(), compute_uv=False
    )
    # A full rank that the fan-in does not allow keeps the second moment instead.
    expected = 2.0 * (sqrt(rows / columns) if rank == 1 and rows > columns else 1)
    kept = round(min(rank * rows, columns))
    assert values[:kept] == pytest.approx([expected] * kept)
    assert values[kept:] == pytest.approx([0.0] * (len(values) - kept), abs=1e-12)


def test_padded_weights_have_orthonormal_columns_first() -> None:
    w = single(Dense(4.0, "padded", 0.5), 6, 8).product.numpy()
    assert w[:, 3:] == pytest.approx(np.zeros((6, 5)))
    assert w.T[:3] @ w[:, :3] == pytest.approx(4.0 * np.eye(3))


def test_low_rank_gaussian_weights_are_orthonormal_columns_times_gaussians() -> None:
    found = single(Dense(4.0, rank=0.5), 6, 8)
    assert (found.span.T @ found.span).numpy() == pytest.approx(np.eye(3))
    inside = found.span @ (found.span.T @ found.product)
    assert inside.numpy() == pytest.approx(found.product.numpy())


@pytest.mark.parametrize(("span", "fluctuates"), [("directions", False), ("scalar", True)])
def test_biases_in_the_span_of_columns(span: Any, fluctuates: bool) -> None:
    """Both have the mean square rank * variance; with one scalar it is as random as that."""
    squares = []
    for seed in range(300):
        network = Layered([Input(), Dense(1.0, rank=0.5), Bias(2.0, span)], 40, 4, seed)
        bias, columns = network.biases[2], network.weights[1].span
        assert float((columns @ (columns.T @ bias) - bias).abs().max()) < 1e-12
        squares.append(float((bias**2).mean()))
    error = float(np.std(squares)) / sqrt(300)
    assert np.mean(squares) == pytest.approx(1.0, abs=5 * error)
    # Of b^2: sqrt(2) of its mean. Of 20 independent entries: sqrt(2 / 20).
    expected = sqrt(2) if fluctuates else sqrt(2 / 20)
    assert np.std(squares) == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("span", ["directions", "scalar"])
def test_biases_in_the_span_of_full_rank_weights(span: Any) -> None:
    squares = [
        float((Layered([Input(), Dense(1.0), Bias(2.0, span)], 30, 4, k).biases[2] ** 2).mean())
        for k in range(300)
    ]
    assert np.mean(squares) == pytest.approx(2.0, abs=5 * float(np.std(squares)) / sqrt(300))


def test_layers_are_what_their_steps_say() -> None:
    network = Layered(EVERYTHING, 6, 5, seed=3)
    x = gaussian_inputs(7, 5)
    found = [layer.numpy() for layer in network.layers(x)]
    assert network.sizes == (5, 12, 12, 12, 6, 6, 6, 6, 6, 3)
    assert found[1] == pytest.approx(found[0] @ network.weights[1].product.numpy().T)
    away = found[1] - found[1].mean(1, keepdims=True)
    assert found[2] == pytest.approx(away / np.sqrt(found[1].var(1, keepdims=True) + 1e-3))
    assert found[3] == pytest.approx(np.maximum(found[2], 0))
    assert found[4] == pytest.approx(found[3] @ network.weights[4].product.numpy().T)
    assert found[5] == pytest.approx(found[4] + network.biases[5].numpy())
    away = found[5] - found[5].mean(0)
    assert found[6] == pytest.approx(away / np.sqrt(found[5].var(0) + 1e-3))
    assert found[8] == pytest.approx(0.5 * found[5] - found[7])
    assert network(x).numpy() == pytest.approx(found[9])
    assert network.between(5, 9)(network.layers(x)[5]).numpy() == pytest.approx(found[9])
    assert [tuple(p.shape) for p in network.parameters] == [(12, 5), (3, 12), (6, 3), (6,), (3, 6)]


def test_both_modes_of_differentiation_agree_with_differences() -> None:
    import torch

    network, x = Layered(EVERYTHING, 6, 5), gaussian_inputs(4, 5)
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

    product = Fn(Var(0) * Var(1) ** 2, 2)
    network = Layered([Input(), Dense(), Elementwise(product, (0, 1))], 3, 3)
    x = gaussian_inputs(2, 3)
    layers = network.layers(x)
    assert layers[2].numpy() == pytest.approx((layers[0] * layers[1] ** 2).numpy())
    start = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(
        coordinatewise(Fn(Var(0) ** 3, 1), start), start, create_graph=True
    )
    assert float(torch.autograd.grad(first, start)[0]) == pytest.approx(6 * 0.3)


def test_a_constant_layer_has_the_shape_of_its_input() -> None:
    network = Layered([Input(), Elementwise(Fn(Var(0) * 0 + 2, 1))], 3, 3)
    assert network(gaussian_inputs(2, 3)).tolist() == [[2.0] * 3] * 2


def test_seeds_and_number_formats() -> None:
    steps = [Input(), Dense(2.0, rank=0.5), Bias(1.0), RELU]
    x = gaussian_inputs(3, 4)
    one, again = Layered(steps, 6, 4, seed=1)(x), Layered(steps, 6, 4, seed=1)(x)
    other = Layered(steps, 6, 4, seed=2)(x)
    assert bool((one == again).all()) and not bool((one == other).any(dim=0).all())
    half = Layered(steps, 6, 4, seed=1, dtype="float32")(x.float())
    assert half.numpy() == pytest.approx(one.numpy(), rel=1e-5)
    with pytest.raises(UnknownName):
        Layered(steps, 6, 4, dtype="float8")
    with pytest.raises(UnknownName):
        Layered(steps, 6, 4, device="tpu")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Dense(-1.0), "the variance of the weights is -1.0"),
        (lambda: Dense(float("nan")), "the variance of the weights is nan"),
        (lambda: Dense(rank=0), "rank is 0"),
        (lambda: Dense(rank=1.5), "at most 1"),
        (lambda: Dense(family="sparse"), "'sparse'"),
        (lambda: Dense(size=0), "size is 0"),
        (lambda: Bias(0), "variance of the biases is 0"),
        (lambda: Bias(1, "row"), "'row'"),
        (lambda: LayerNorm(-1), "eps is -1"),
        (lambda: Addition((1.0, 0), (0, 1)), "none of them 0"),
        (lambda: Addition((1.0,), (0, 1)), "2 layers are added"),
        (lambda: Elementwise(Fn(Var(0), 1, 1)), "1 scalars"),
    ],
)
def test_steps_that_make_no_sense(made: Callable[[], Step], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        made()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "first layer is no input"),
        ([Dense()], "first layer is no input"),
        ([Input(), Input()], "layer 1: an input comes after"),
        ([Input(), Dense(parents=(1,))], r"layer 1 \(dense\): it reads the layers 1"),
        ([Input(), RELU, Bias(1.0, "scalar")], "layer 1, which is not dense"),
        ([Input(), Dense(rank=0.3)], "a rank of 0.3 times 8 neurons is 2.4"),
        ([Input(), Dense(width=0.3)], "a width of 0.3"),
        ([Input(), Dense(rank=0.01)], "not a whole number above 0"),
        ([Input(), Dense(family="orthogonal", rank=0.75)], "its rank is 6 and its fan-in 5"),
        ([Input(), Dense(family="padded")], "its rank is 8 and its fan-in 5"),
        ([Input(), Dense(), Addition((1, 1), (0, 1))], "layers of 5 and 8 neurons"),
    ],
)
def test_layers_that_do_not_fit(steps: Sequence[Step], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        Layered(steps, 8, 5)


def test_batches_that_do_not_fit() -> None:
    network = Layered([Input(), Dense(), BatchNorm()], 4, 3)
    with pytest.raises(DimMismatch, match="layer 0 has 3"):
        network(gaussian_inputs(2, 5))
    with pytest.raises(UsageError, match="single input"):
        network(gaussian_inputs(1, 3))


def test_bottlenecks() -> None:
    network = Layered([Input(), Dense(), RELU, Dense(), Addition((1, 1), (1, 3)), Dense()], 4, 3)
    found = [network.is_bottleneck(start, 5) for start in range(6)]
    assert found == [True, True, False, False, True, True]
    with pytest.raises(UsageError, match="no bottleneck"):
        network.between(2, 5)
    with pytest.raises(UsageError, match="no layers 3 and 2"):
        network.is_bottleneck(3, 2)


def test_a_jump_has_no_derivative() -> None:
    import torch

    x = gaussian_inputs(3, 4).requires_grad_()
    value = Layered([Input(), Elementwise(lookup("sign").fn)], 4, 4)(x)
    assert value.abs().sum() == 12
    with pytest.raises(NotDifferentiable):
        torch.autograd.grad(value.sum(), x)
