"""Numbers of functions given as code that have an error, or say that they have none."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, pi, sqrt
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError
from tpcalc.meanfield.activations.asymptotics import asymptotes
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.sheet import sheet
from tpcalc.nonlinearity.interval import interval_nlc
from tpcalc.nonlinearity.laws import Box, Gaussian, Sampler
from tpcalc.nonlinearity.measured import sampled_nlc


@pytest.mark.parametrize("count", [6, 12, 30])
def test_errors_of_few_inputs_cover(count: int) -> None:
    z = []
    for seed in range(25):
        x = np.random.default_rng(seed).standard_normal((count, 10))
        found = sampled_nlc(lambda x: x**2, x, seed=seed, samples=64).nlc
        z.append((found.value - sqrt(2)) / found.stderr)
    assert max(map(abs, z)) < 5
    assert 0.4 < np.std(z) < 1.5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1.0 * (x > 0),
        lambda x: x + np.sign(x),
        lambda x: x + 0.1 * np.sign(x),
        lambda x: np.sin(1e6 * x),
    ],
)
def test_what_differences_do_not_resolve_has_no_error(function: Callable[[Any], Any]) -> None:
    assert sampled_nlc(function, Gaussian(), seed=1).nlc.stderr == inf


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (lambda x: np.maximum(x, 0), Gaussian()),
        (np.exp, Gaussian()),
        (lambda x: 1 + 1e-12 * x, Gaussian()),
        (lambda x: 1e200 * x**2, Gaussian()),
        (lambda x: np.float32(x) + np.float32(100), Gaussian()),
        (lambda x: 1 / x, Box([0.01], [1])),
        (np.sqrt, Sampler(lambda rng, size: 0.1 + rng.exponential(size=(size, 1)), 1)),
    ],
)
def test_a_continuous_function_keeps_its_error(function: Callable[[Any], Any], law: Any) -> None:
    assert isfinite(sampled_nlc(function, law, seed=1).nlc.stderr)


def test_a_slope_of_another_function_has_no_error() -> None:
    found = sampled_nlc(
        lambda x: x**2, Gaussian(), seed=1, jacobian=lambda x: np.ones((len(x), 1, 1))
    )
    assert found.nlc.stderr == inf


def test_an_interval_with_a_small_jump_is_refused() -> None:
    with pytest.raises(EvaluationError, match="jump"):
        interval_nlc(lambda x: x + 1e-3 * (x > 0.3), 0, 1)
    with pytest.raises(EvaluationError, match="slope"):
        interval_nlc(lambda x: np.floor(3 * x) + x, 0, 1, slope=lambda x: 1 + 0 * x)


@pytest.mark.parametrize("steep", [1e5, 1e6, 1e8])
def test_narrow_bumps(steep: float) -> None:
    tau = lookup(f"gaussian:{steep:g}").fn.expr
    began = perf_counter()
    limit = CovarianceKernel(tau).found.limit
    assert perf_counter() - began < 2
    b, c = 2 * steep, limit.value
    kernel = sqrt((1 + 2 * b) / ((1 + b) ** 2 - (b * c) ** 2))
    assert kernel == pytest.approx(c, rel=1e-9)
    short = asymptotes(tau)[0]
    assert short.reason == "second derivatives at 0"
    assert short.factor.value == pytest.approx(sqrt(2))


def test_an_end_out_of_reach_is_left_out() -> None:
    found = asymptotes(lookup("elu:1e6").fn.expr)
    assert [part.end for part in found] == ["0"]


def test_dilations_beyond_quadrature_are_told() -> None:
    with pytest.raises(EvaluationError, match=r"out of reach|needs about"):
        sheet("gelu", dilate=1e-8, debias=True, normalize=True)


def test_steep_dilations_have_the_coefficient_of_the_limit() -> None:
    """n / sqrt(lambda) of tanh tends to sqrt(4 / (3 sqrt(2 pi))); here by 30 digits."""
    found = sheet("tanh", dilate=1e8, debias=True, normalize=True).split.nlc
    assert abs(found.value - 7293.305456234336355) <= found.stderr < 1e-10
    assert found.value == pytest.approx(sqrt(4e8 / (3 * sqrt(2 * pi))), rel=1e-8)
