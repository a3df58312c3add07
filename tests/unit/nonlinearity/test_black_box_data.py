"""Datasets and arrays of layer values: pairs, noise, ranges, shapes, meta-laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.labels import elem_like_pairs, pair_nlc
from tpcalc.nonlinearity.laws import Gaussian
from tpcalc.nonlinearity.meta import elem_like, elem_like_test, meta_gaussian, meta_moments
from tpcalc.nonlinearity.noise import noise_curve, noise_identity, noise_limit
from tpcalc.nonlinearity.ranges import linear_range
from tpcalc.nonlinearity.scaling import product_estimate, triangle_network, triangle_wave
from tpcalc.nonlinearity.shapes import meta_gaussianity

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pair_nlc(np.eye(3), [0, 1]), "labels"),
        (lambda: elem_like_pairs([0.5, 0.6]), "sum to 1"),
        (lambda: elem_like_pairs([1.0]), "one label"),
        (lambda: pair_nlc(np.eye(3), [0, 1, 1]).quantile(2), "share is 2; it must be at most 1"),
        (lambda: meta_gaussian(1, 2, samples=2, neurons=2, seed=0), "q > c >= 0"),
        (lambda: meta_gaussian(1, -0.1, samples=2, neurons=2, seed=0), "q > c >= 0"),
        (lambda: elem_like(1, 0.5, count=5, dimension=4), "at most 4"),
        (lambda: elem_like_test(np.zeros((5, 3))), "all inputs are 0"),
        (lambda: elem_like_test(np.eye(3)), "needs 4"),
        (lambda: meta_moments(np.eye(1)), "at least two"),
        (lambda: meta_gaussianity(np.eye(3)), "needs 4"),
        (lambda: noise_identity(np.tanh, np.eye(6), seed=0), "fresh inputs"),
        (lambda: noise_curve(np.tanh, np.eye(6), range(6), [2], seed=0), "between 0 and 1"),
        (lambda: noise_curve(np.tanh, np.eye(6), range(5), [0], seed=0), "labels for 6"),
        (lambda: noise_curve(np.tanh, np.eye(6), [0.5] * 6, [0], seed=0), "error="),
        (lambda: noise_limit(np.tanh, np.eye(6), range(6), seed=0), "Lower batch"),
        (lambda: triangle_wave(1, 0), "amplitude is 0; it must be above 0"),
        (lambda: triangle_network([3], seed=0), "inputs and outputs"),
        (lambda: product_estimate([3]), "one number"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pair_nlc(np.ones((4, 2)), [0, 1, 0, 1]), "the same"),
        (lambda: pair_nlc(np.eye(4), [1, 1, 1, 1]), "the same"),
        (lambda: meta_gaussianity(np.ones((5, 5)) * 0.1), "no neuron"),
        (lambda: meta_gaussianity(np.zeros((5, 5))), "are 0"),
        (lambda: meta_gaussianity(np.tile([[1.0], [-1.0]], (2, 5))), "do not vary"),
    ],
)
def test_what_has_no_number_is_said(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(EvaluationError, match=said):
        make()


def test_pairs_of_equal_inputs() -> None:
    found = pair_nlc([[0.0], [0.0], [1.0], [1.0]], ["a", "a", "a", "b"])
    assert found.skipped == 1
    assert found.quantile(1) == np.inf
    assert found.zero == pytest.approx(2 / 5)


def test_pairs_are_drawn_where_there_are_too_many() -> None:
    x, y = RNG(0).standard_normal((2900, 4)), RNG(1).integers(0, 3, 2900)
    whole = pair_nlc(x[:2890], y[:2890])
    drawn = pair_nlc(x, y, seed=2)
    assert drawn.sampled
    assert not whole.sampled
    assert drawn.quantile(0.7) == pytest.approx(whole.quantile(0.7), rel=0.05)
    assert drawn.zero == pytest.approx(whole.zero, abs=0.04)


def test_real_targets_of_a_linear_function_have_pairs_around_one() -> None:
    x = RNG(0).standard_normal((200, 1))
    assert np.allclose(pair_nlc(x, 3 * x[:, 0] + 1.5).values, 1)


def test_diagnostics_do_not_mind_scales_and_large_means() -> None:
    values = RNG(0).standard_normal((100, 50))
    plain = meta_gaussianity(values)
    for factor in (1e-200, 1e200):
        scaled = meta_gaussianity(factor * values)
        assert scaled.nkurt == pytest.approx(plain.nkurt)
        assert scaled.lcv == pytest.approx(plain.lcv)
    shifted = meta_gaussianity(values + 1e6 * RNG(1).standard_normal(50))
    assert shifted.nkurt == pytest.approx(plain.nkurt, rel=1e-4)
    assert shifted.ncorr == pytest.approx(plain.ncorr, rel=1e-4)


def test_neurons_that_do_not_vary_are_counted() -> None:
    values = RNG(0).standard_normal((50, 8))
    values[:, 2] = 0.1
    assert meta_gaussianity(values).dead == 1


def test_unstable_neurons_stand_out() -> None:
    lengths = RNG(1).lognormal(0, 1, (400, 1))
    found = meta_gaussianity(lengths * RNG(0).standard_normal((400, 300)))
    assert found.nkurt > 3
    assert found.lcv > 0.5


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_elem_like_inputs_are_exact(seed: int | None, count: int) -> None:
    x = elem_like(2, 0.7, count=count, dimension=6, seed=seed)
    gram = x @ x.T / 6
    assert np.allclose(gram, 0.7 + 1.3 * np.eye(count))


def test_elem_like_test_names_what_varies() -> None:
    mixed = np.concatenate([RNG(0).standard_normal((40, 200)), np.ones((40, 200))])
    found = elem_like_test(mixed)
    assert "co-means" in found.verdict
    opposed = np.tile(np.eye(2), (3, 50)) * np.array([[1.0], [-1.0]] * 3)
    assert elem_like_test(opposed + 0).verdict


def test_elem_like_errors_are_those_of_the_sample() -> None:
    found = [
        elem_like_test(meta_gaussian(2, 0, samples=60, neurons=50, seed=seed)) for seed in range(40)
    ]
    scores = [(part.square.value - 2) / part.square.stderr for part in found]
    assert 0.7 < np.std(scores) < 1.4
    spread = [part.comean_spread for part in found]
    assert np.mean([part.value for part in spread]) == pytest.approx(2 / np.sqrt(50), rel=0.03)


def test_noise_curve_from_no_noise_to_noise_alone() -> None:
    rng = RNG(0)
    classes = np.arange(300) % 3
    x = 4 * np.eye(3)[classes] + 0.3 * rng.standard_normal((300, 3))
    curve = noise_curve(lambda x: x, x, classes, [0, 0.5, 1], seed=1, repeats=4)
    values = [part.value for part in curve]
    assert values[0] == 0
    assert values == sorted(values)
    assert curve[2].z(2 / 3) < 5 + 3


def test_noise_limit_is_near_the_scale_of_the_function() -> None:
    rng = RNG(0)
    x = rng.standard_normal((400, 5))
    y = x @ np.ones(5)

    def fault(outputs: Any, wanted: Any) -> Any:
        return 0.1 + (outputs[:, 0] - np.sin(wanted)) ** 2

    def limit(scale: float) -> float:
        return noise_limit(
            lambda x: np.sin(scale * (x @ np.ones(5))),
            x / scale,
            y,
            seed=0,
            error=fault,
            batch=100,
            draws=7,
        ).value

    assert limit(1.0) == pytest.approx(limit(10.0), rel=1e-6)
    assert limit(1.0) > 1


def test_linear_ranges_at_both_ends() -> None:
    line = linear_range(lambda x: 1e8 + 2 * x, Gaussian(), seed=0, batch=3, draws=20)
    assert line.median.value == 1
    fast = linear_range(
        lambda x: np.sin(1e12 * x),
        Gaussian(),
        seed=0,
        batch=3,
        draws=20,
        jacobian=lambda x: 1e12 * np.cos(1e12 * x),
    )
    assert np.isinf(fast.values).all()
    with pytest.raises(EvaluationError, match="do not resolve"):
        _ = fast.median
    assert fast.smallest == pytest.approx(1e-9)
    assert line.smallest > 1e-7
    still = linear_range(lambda x: 0 * x, Gaussian(), seed=0, batch=3, draws=20)
    assert (still.values == 1).all()


def test_triangle_network_has_its_jacobian() -> None:
    net, jacobian = triangle_network([3, 7, 5, 2], seed=1)
    x, h = RNG(0).standard_normal((6, 3)), 1e-6
    found = jacobian(x)
    for column in range(3):
        step = h * np.eye(3)[column]
        assert np.allclose(
            found[:, :, column], (net(x + step) - net(x - step)) / (2 * h), atol=1e-6
        )
