"""Metrics of layers against numpy, scipy and Jacobians written out."""

from __future__ import annotations

from math import isinf, sqrt
from typing import Any

import numpy as np
import pytest
from agree import agree
from layered import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Product,
    chain,
    drawn,
)
from scipy.stats import kurtosis

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.meanfield.network import network_of
from tpcalc.nonlinearity.tensors.coefficient import measured_nlc as nlc
from tpcalc.nonlinearity.tensors.functions import Tapped, gaussian_inputs, tapped
from tpcalc.nonlinearity.tensors.gradients import gradient_lengths
from tpcalc.nonlinearity.tensors.layers import between, chain_nlc, layer_metrics, layerwise_nlc

pytestmark = pytest.mark.torch

TANH, RELU = Activation("tanh"), Activation("relu")
WORDS = [Dense(1.5), Bias(0.2), TANH, Dense(2.0, outputs=4)]
EDGES = np.array([-np.inf, -1.8, -1.4, -1, -0.6, -0.2, 0.2, 0.6, 1, 1.4, 1.8, np.inf])


@pytest.fixture(scope="module")
def network() -> DrawnNetwork:
    return drawn(WORDS, 9, 6, seed=1)


@pytest.fixture(scope="module")
def x() -> Any:
    return gaussian_inputs(120, 6, 1.0, 0.2, seed=5)


def test_scales_are_those_of_numpy(network: DrawnNetwork, x: Any) -> None:
    rows = layer_metrics(network, x, batch=40)
    assert [row.size for row in rows] == [6, 9, 9, 9, 4]
    for row, layer in zip(rows, network.layers(x), strict=True):
        f = layer.numpy()
        variance = f.var(0, ddof=1).mean()
        assert row.root_mean_square.value == pytest.approx(np.sqrt((f**2).mean(1)).mean())
        assert row.scale.value == pytest.approx(sqrt((f**2).mean()))
        assert row.mean_scale.value == pytest.approx(sqrt((f.mean(0) ** 2).mean()))
        assert row.deviation_scale.value == pytest.approx(sqrt(variance))
        assert row.bias.value == pytest.approx(sqrt((f**2).mean() / variance))


def test_diagnostics_are_those_of_numpy_and_scipy(network: DrawnNetwork, x: Any) -> None:
    from scipy.special import ndtr

    def overlap(z: Any) -> float:
        shares = np.histogram(z, EDGES)[0] / len(z)
        return float(np.minimum(np.diff(ndtr(EDGES)), shares).sum())

    f = network.layers(x)[3].numpy()
    found = layer_metrics(network, x, batch=40)[3].gaussianity
    mean, std = f.mean(0), f.std(0, ddof=1)
    z = (f - mean) / std
    lengths = np.linalg.norm(f, axis=1)
    expected = {
        "kurtosis": kurtosis(f, bias=False).mean(),
        "overlap": np.mean([overlap(column) for column in z.T]),
        "mean_kurtosis": kurtosis(mean, bias=False),
        "mean_overlap": overlap((mean - mean.mean()) / mean.std(ddof=1)),
        "deviation_spread": std.std(ddof=1) / std.mean(),
        "correlation": sqrt((np.corrcoef(f.T) ** 2).mean()),
        "length_spread": lengths.std(ddof=1) / lengths.mean(),
    }
    for name, value in expected.items():
        assert getattr(found, name).value == pytest.approx(value, rel=1e-9), name
        assert 0 < getattr(found, name).stderr < 3, name


def test_derivatives_are_those_of_the_jacobian(network: DrawnNetwork, x: Any) -> None:
    import torch

    rows = layer_metrics(network, x, batch=40, draws=40)
    cov = torch.cov(x.T)
    for layer in (1, 3, 4):
        part = network.between(0, layer)
        full = torch.func.vmap(torch.func.jacrev(lambda row, f=part: f(row[None])[0]))(x)
        size = full.shape[1]
        agree(rows[layer].jacobian, float(((full**2).sum((1, 2)) / size).mean().sqrt()))
        numerator = torch.einsum("boi,ij,boj->", full, cov, full) / len(x) / size
        agree(rows[layer].numerator, float(numerator.sqrt()))
        spread = float(torch.cov(part(x).T).trace()) / size
        agree(rows[layer].nlc, sqrt(float(numerator) / spread))


def test_S4_13_25_layers_in_between(network: DrawnNetwork, x: Any) -> None:
    pairs = [(2, 4), (0, 4), (2, 3), (3, 4)]
    rows = between(network, x, pairs, batch=40, draws=30)
    assert [(row.start, row.end) for row in rows] == pairs
    for row in rows:
        part, start = network.between(row.start, row.end), network.layers(x)[row.start]
        direct = nlc(part, start, batch=40, draws=40, estimator="forward")
        agree(row.nlc, direct.nlc)
        scale = sqrt(start.shape[1] / direct.input_spread * direct.spread.value)
        frobenius = direct.frobenius.value * scale / sqrt(network.sizes[row.end])
        agree(row.jacobian, frobenius, rounding=5 * direct.frobenius.stderr * scale)
    with pytest.raises(UsageError, match="no layers 4 and 2"):
        between(network, x, [(4, 2)])
    branch = chain(Input(), [*WORDS[:3], Dense()])
    skip = network_of(branch.then(Addition((1, 1)), 1, 4), 9, 6)
    with pytest.raises(UsageError, match="path around it"):
        between(skip, x, [(3, 5)])
    with pytest.raises(UsageError, match="not computed from the layer 1"):
        between(Tapped(lambda part: [2 * part, 4 * part]), x, [(1, 2)])


def test_correlations_of_some_neurons_stand_for_all() -> None:
    x = gaussian_inputs(400, 600)
    found = layer_metrics(Tapped(lambda part: [part]), x)[0].gaussianity
    exact = sqrt((np.corrcoef(x[:250].numpy().T) ** 2).mean())
    assert found.correlation.value == pytest.approx(exact, rel=0.02)
    assert found.correlation.value == pytest.approx(sqrt(1 / 250 + 1 / 600), rel=0.05)


def test_layers_that_do_not_change_are_told() -> None:
    constant = Tapped(lambda part: [0 * part + 1, 1e-17 * part + 1])
    rows = layer_metrics(constant, gaussian_inputs(50, 3))
    assert [row.collapsed for row in rows] == [False, True, True]
    assert isinf(rows[1].bias.value) and rows[1].nlc.value == 1
    assert rows[2].gaussianity.kurtosis.value == 0
    with pytest.raises(EvaluationError, match="layer 1"):
        layer_metrics(Tapped(lambda part: [part / 0]), gaussian_inputs(50, 3))


def test_gradients_of_every_layer(network: DrawnNetwork, x: Any) -> None:
    import torch

    rows = gradient_lengths(network, x, x[:, 0], lambda y, t: (y[:, 0] - t) ** 2, batch=40)
    layers = network.layers(x.clone().requires_grad_())
    loss = ((layers[-1][:, 0] - x[:, 0]) ** 2).sum()
    for row, g in zip(rows, torch.autograd.grad(loss, layers), strict=True):
        square = float((g**2).sum(1).mean())
        assert row.length.value == pytest.approx(sqrt(square / 4))
        assert row.component.value == pytest.approx(sqrt(square / g.shape[1]))
    noise = gradient_lengths(network, x)
    agree(noise[-1].component, 1)
    with pytest.raises(UsageError, match="not computed from the layer 1"):
        gradient_lengths(Tapped(lambda part: [2 * part, 4 * part]), x)


def test_layerwise_coefficient_of_a_residual_network(x: Any) -> None:
    """The formula of a residual unit, every factor measured by itself."""
    branch = chain(Input(), [Dense(2.0), RELU, Dense(1.5), TANH, Dense(1.0)])
    network = network_of(branch.then(Addition((0.7, 1.3)), 1, 5), 40, 6, seed=2)
    layers = network.layers(x)
    relu = nlc(lambda h: network.layer(2, [h]), layers[1], draws=60).nlc
    tanh = nlc(lambda h: network.layer(4, [h]), layers[3], draws=60).nlc
    skip, branch = (float(layers[k].var(0).sum()) * w**2 for k, w in ((1, 0.7), (5, 1.3)))
    product = (relu.value * tanh.value) ** 2
    expected = sqrt((skip + branch * product) / (skip + branch))
    assert layerwise_nlc(network, x).value == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("norm", [LayerNorm(), BatchNorm()])
def test_layerwise_coefficients_count_normalizations(norm: Any) -> None:
    x = gaussian_inputs(500, 30)
    network = drawn([Dense(2.0), norm, RELU, Dense(1.0)], 60, 30)
    own = nlc(lambda h: network.layer(2, [h]), network.layers(x)[1], draws=8)
    relu = nlc(lambda h: network.layer(3, [h]), network.layers(x)[2], draws=8)
    agree(layerwise_nlc(network, x), own.nlc.value * relu.nlc.value, rounding=0.02)
    assert own.nlc.value == pytest.approx(1, abs=0.05)


def test_modules_as_chains(x: Any) -> None:
    import torch

    torch.manual_seed(0)
    nn = torch.nn
    module = nn.Sequential(nn.Linear(6, 30), nn.ReLU(), nn.Linear(30, 30), nn.Tanh()).double()
    chain = chain_nlc(tapped(module), x, linear=[1, 3], draws=20)
    with torch.no_grad():
        first, second = module[:1](x), module[:3](x)
    parts = [nlc(nn.ReLU(), first, draws=40).nlc, nlc(nn.Tanh(), second, draws=40).nlc]
    agree(chain, parts[0].value * parts[1].value, rounding=0.05)
    assert len(layer_metrics(tapped(module), x)) == 5
    with pytest.raises(UsageError, match="does not list its layers"):
        tapped(nn.Linear(2, 2))


def test_several_arguments_have_no_layerwise_coefficient(x: Any) -> None:
    both = chain(Input(), [Dense()]).then(Dense(), 0).then(Product(), 1, 2)
    with pytest.raises(UsageError, match="a function of 2 layers"):
        layerwise_nlc(network_of(both, 6, 6), x)
