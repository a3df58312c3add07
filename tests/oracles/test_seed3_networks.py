"""Low-rank networks of finite width against their limits: the cases of the low-rank paper."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from agree import agree
from layered import Activation, Bias, Dense, SharedBias, SpanBias, Word, drawn, inside

from tests.sphere import sphere_inputs
from tpcalc.finite.statistics import summary
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.spectra.spectrum import (
    finite_variance,
    jacobian,
    padded_variance,
    weight_spectrum,
)
from tpcalc.nonlinearity.tensors.functions import elementlike_inputs, gaussian_inputs
from tpcalc.nonlinearity.tensors.gradients import gradient_lengths
from tpcalc.nonlinearity.tensors.jacobians import jacobian_moments, jacobian_values

pytestmark = pytest.mark.torch

TANH, ERF = Activation("tanh"), Activation("erf")
QUARTER = 0.25


def linear(family: Any, rank: float, depth: int) -> list[Word]:
    full = rank == 1 and family in ("gaussian", "orthogonal")
    return [Dense(1 / rank, family, None if full else rank)] * depth


@pytest.mark.parametrize("rank", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("family", ["gaussian", "orthogonal", "gaussian-gaussian"])
def test_S3_13_A14_variance_of_linear_networks(family: Any, rank: float) -> None:
    """Relative variance of squared singular values at width 160, depth 5; limits 20, 15, 25, ..."""
    limit = weight_spectrum(family, rank, 1).power(5).relative_variance
    networks = [inside(linear(family, rank, 5), 160, seed=seed) for seed in range(6)]
    found = jacobian_moments(networks, sphere_inputs(1, 160)[0]).relative_variance
    # The ratio of two moments of one network is off by a part of order depth / rank.
    agree(found, limit, rounding=limit * 5 / (rank * 160) + 1e-9)


@pytest.mark.parametrize("family", ["gaussian", pytest.param("orthogonal", marks=pytest.mark.slow)])
def test_S3_17_A15_A16_exact_at_finite_width(family: Any) -> None:
    """At width 24 the variance is far from the limit, and the recursion is exact."""
    limit = float(weight_spectrum(family, QUARTER, 1).power(4).relative_variance)
    exact = finite_variance(family, 24, 6, 4)
    networks = [inside(linear(family, QUARTER, 4), 24, seed=seed) for seed in range(400)]
    found = jacobian_moments(networks, sphere_inputs(1, 24)[0])
    agree(found.variance, exact)
    agree(found.first, 1)
    assert exact > 1.1 * limit


def relative_variance(words: list[Word], seed: int) -> float:
    """Of one network at an input of its own, which keeps q = 1/2."""
    network, x = inside(words, 240, seed=seed), sphere_inputs(1, 240, 1 / 3, seed)[0]
    squares = jacobian_values(network, x) ** 2
    return float((squares**2).mean() / squares.mean() ** 2) - 1


@pytest.mark.parametrize(
    ("family", "rank"), [("gaussian", 0.25), ("orthogonal", 0.25), ("orthogonal", 0.5)]
)
def test_S3_14_A17_variance_with_erf(family: Any, rank: float) -> None:
    """Four layers on the edge of chaos at q = 1/2: the start has to be shorter than q."""
    weights = Dense(1.3603495 / rank, family, rank)
    words = [weights, SpanBias(0.0465502 / rank, rank), ERF] * 4
    limit = jacobian(ERF.tau, 0.5, weight_spectrum(family, rank, 1), 4)
    values = [relative_variance(words, seed) for seed in range(6)]
    agree(summary(values), float(limit.relative_variance), rounding=0.5)


def test_S3_12_A17_padded_weights_are_not_free_from_slopes() -> None:
    """16.44 where free weights would have 13.37: zero columns meet the slopes of single neurons."""
    weights = Dense(4 * 1.3603495, "padded", QUARTER)
    words = [weights, SpanBias(4 * 0.0465502, QUARTER), ERF] * 4
    padded = padded_variance(ERF.tau, 0.5, QUARTER, 4)
    assert padded == pytest.approx(16.4413, abs=5e-5)
    values = [relative_variance(words, seed) for seed in range(16)]
    agree(summary(values), padded, rounding=0.5)
    assert np.mean(values) > 14.5


@pytest.mark.parametrize("family", ["gaussian", "orthogonal", "padded", "gaussian-gaussian"])
@pytest.mark.parametrize("depth", [1, 3])
def test_S3_14_A25_rank_of_jacobians(family: Any, depth: int) -> None:
    words = [Dense(8.0, family, QUARTER), SpanBias(0.2, QUARTER), TANH] * depth
    values = jacobian_values(inside(words, 40), sphere_inputs(1, 40)[0])
    assert np.sum(values > 1e-10 * values[0]) == 10


def test_S3_15_A10_correlations_through_layers() -> None:
    """Tanh with the effective variances 6.25 and .09: from .5 to .44, .39, .35, .31, .28."""
    square, start = 4.079124, 0.5 * 4.079124
    words = [Dense(6.25 / QUARTER, rank=QUARTER), SpanBias(0.09 / QUARTER, QUARTER), TANH] * 6
    paths = []
    for seed in range(12):
        # Inputs that make the first layer's preactivations those of the fixed point.
        x = elementlike_inputs(2, 400, (square - 0.09) / 6.25, (start - 0.09) / 6.25, seed)
        layers = drawn(words, 400, 400, seed).values(x)
        pairs = [layers[f"h[h{k}]"] for k in range(2, 18, 3)]
        paths.append([float(h[0] @ h[1] / (h[0].norm() * h[1].norm())) for h in pairs])
    expected = [0.5, 0.44424, 0.39450, 0.35099, 0.31350, 0.28155]
    for column, value in zip(zip(*paths, strict=True), expected, strict=True):
        agree(summary(column), value, rounding=0.01)


def test_S3_2_A19_a_shared_bias_does_not_average_out() -> None:
    """Its square has s.d. sqrt(2) .25 .4 = .141 at every width; with a bias of each direction 0."""
    mean = QUARTER * (6 * Kernels(TANH.tau).second(Bounded(0.6)).value + 0.4)
    assert mean == pytest.approx(0.55594, abs=5e-6)
    scatter = {}
    biases = {"directions": SpanBias(0.4, QUARTER), "scalar": SharedBias(0.4, QUARTER)}
    for span, bias in biases.items():
        for width in (80, 640):
            words: list[Word] = [TANH, Dense(6.0, rank=QUARTER), bias]
            squares = [
                float((drawn(words, width, width, s)(sphere_inputs(1, width, 0.6, s)) ** 2).mean())
                for s in range(24)
            ]
            agree(summary(squares), mean, rounding=0.01)
            scatter[span, width] = float(np.std(squares, ddof=1))
    assert scatter["scalar", 640] == pytest.approx(sqrt(2) * QUARTER * 0.4, rel=0.5)
    assert scatter["directions", 640] < 0.6 * scatter["directions", 80]
    assert scatter["directions", 640] < 0.6 * scatter["scalar", 640]


def test_S3_10_A21_gradients_shrink_by_chi() -> None:
    """Tanh with the variances 1 and .05: ln q~ falls by .2757 a layer on the way back."""
    words = [*[Dense(1.0), Bias(0.05), TANH] * 20, Dense()]
    slopes = []
    for seed in range(6):
        network = drawn(words, 300, 300, seed)
        rows = gradient_lengths(network, gaussian_inputs(40, 300, 0.2, seed=seed))
        squares = [rows[3 * layer + 2].component.value ** 2 for layer in range(4, 20)]
        slopes.append(np.polyfit(np.arange(16), np.log(squares), 1)[0])
    agree(summary(slopes), -log(0.759032), rounding=0.01)
