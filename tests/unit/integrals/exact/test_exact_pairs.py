"""Every pair of functions at random covariances, against numerical integration of another kind."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import sqrt

import mpmath as mp
import numpy as np
import pytest
from unit.integrals.exact.one_dimensional import (
    KINKED,
    MEANS,
    VALUES,
    Two,
    covariances,
    function,
    mean_of_pair,
    precise,
    size_of,
)

from tpcalc.activations.entries import lookup
from tpcalc.functions import Var
from tpcalc.integrals.exact import expectation

WAVES = {"sin", "cos"}
SLOPES = {"relu": "step", "erf": "erf'", "gelu": "gelu'", "gaussian": "gaussian'"}
SLOPES |= {"elu": "elu_slope", "selu": "selu_slope", "sin": "cos", "abs": "sign"}
SLOPES |= {"normal_cdf": "normal_pdf", "relu^2": "relu"}
PAIRS = [(name, name) for name in MEANS] + list(SLOPES.items())
PAIRS += [("relu", "erf"), ("gelu", "elu"), ("step", "selu"), ("square", "gelu'"), ("exp", "abs")]


# In double precision exp(z) - 1 of a tiny z is not what the reference can integrate.
BENT = {"elu", "elu:1/2", "selu"}
CUT = {"elu_slope", "elu_slope:2", "selu_slope"}


def moderate(name: str, pair: Two) -> Two:
    """Variances for which the function can be integrated numerically."""
    if name in BENT and min(pair.variances) < 1e-6:
        grow = [max(1.0, 0.01 / q) for q in pair.variances]
        means = [mean * sqrt(by) for mean, by in zip(pair.means, grow, strict=True)]
        sizes = [q * by for q, by in zip(pair.variances, grow, strict=True)]
        c = pair.covariance * sqrt(grow[0]) * sqrt(grow[1]) * (1 - 1e-15)
        return Two((means[0], means[1]), (sizes[0], sizes[1]), c)
    largest = {"exp": 4.0, "sin": 30.0, "cos": 30.0}.get(name)
    if largest is None or max(pair.variances) <= largest:
        return pair
    shrink = largest / max(pair.variances)
    (m1, m2), (q1, q2), c = pair.means, pair.variances, pair.covariance
    means = m1 * sqrt(shrink), m2 * sqrt(shrink)
    return Two(means, (q1 * shrink, q2 * shrink), c * shrink * (1 - 1e-15))


@pytest.mark.parametrize(("f", "g"), PAIRS, ids=lambda name: name)
def test_pairs_at_random_covariances(f: str, g: str) -> None:
    rng = np.random.default_rng(len(f + g))
    for pair in covariances(rng, 18):
        pair = moderate(g, moderate(f, pair))
        if max(pair.variances) > 1e4 and "exp" in (f, g):
            continue
        found = expectation([function(f), function(g)], pair.means, pair.rows)
        scale = size_of(f, pair.means[0], pair.variances[0])
        scale *= size_of(g, pair.means[1], pair.variances[1])
        wanted = mean_of_pair(f, g, pair)
        assert abs(found.value - wanted) <= found.error + 3e-13 * scale, pair
        # An exponential on half a line loses digits where a deviation is a thousand of its lengths.
        far = max(pair.variances) > 1e5 and bool({f, g} & (BENT | CUT))
        assert found.error <= (1e-8 if far else 5e-12) * scale, pair


@pytest.mark.parametrize("name", MEANS)
def test_single_functions_and_their_squares(name: str) -> None:
    rng = np.random.default_rng(3)
    z = function("identity")
    f = function(name)
    for pair in covariances(rng, 24):
        pair = moderate(name, pair)
        (mean, _), (variance, _) = pair.means, pair.variances
        scale = size_of(name, mean, variance)
        alone = expectation([f], [mean], [[variance]])
        apart = Two((mean, 0.0), (variance, 1.0), 0.0)
        assert abs(alone.value - mean_of_pair(name, "cos", apart) / np.exp(-0.5)) <= (
            alone.error + 3e-13 * scale
        )
        squared = expectation([f**2], [mean], [[variance]])
        assert abs(squared.value - scale**2) <= squared.error + 1e-12 * scale**2
        both = Two((mean, mean), (variance, variance), variance)
        weighed = expectation([z * f], [mean], [[variance]])
        size = scale * np.sqrt(variance + mean**2)
        wanted = mean_of_pair(name, "identity", both)
        assert abs(weighed.value - wanted) <= weighed.error + 3e-13 * size


BOUNDED = [pair for pair in combinations_with_replacement(VALUES, 2) if not WAVES & set(pair)]
BOUNDED += [("sin", "sin"), ("cos", "gaussian"), ("sin", "cos")]


@pytest.mark.slow
@pytest.mark.parametrize(("f", "g"), BOUNDED[::2], ids=lambda name: name)
def test_the_error_is_a_bound(f: str, g: str) -> None:
    rng = np.random.default_rng(len(f) + 7 * len(g))
    rhos = [1 - 1e-12, -1 + 1e-6, 0.999, -0.9, 0.3]
    rho = rhos[int(rng.integers(len(rhos)))]
    q = [1.0, 0.3, 10.0, 1e-4][int(rng.integers(4))]
    shifted = (0.4 * np.sqrt(q), -1.1 * np.sqrt(q))
    for means in ((0.0, 0.0), shifted)[int(rng.integers(2)) :]:
        pair = Two(means, (q, q), rho * q)
        found = expectation([function(f), function(g)], pair.means, pair.rows)
        wanted = precise(f, g, pair)
        assert abs(mp.mpf(found.value) - wanted) <= found.error + 1e-22, pair
        scale = size_of(f, means[0], q) * size_of(g, means[1], q)
        assert found.error <= 1e-12 * scale, pair


def test_arrays_are_the_same_as_their_entries() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((7, 4))
    kernel = x @ x.T
    q = np.diag(kernel)
    for name in ("relu", "gelu'", "elu", "erf", "sin"):
        f = function(name)
        for mean in (0.0, 0.3):
            many = expectation([f, f], [mean, mean], [[q[:, None], kernel], [kernel, q[None, :]]])
            assert many is not None and many.value.shape == kernel.shape
            for i, j in ((0, 0), (1, 5), (6, 2)):
                one = expectation(
                    [f, f], [mean, mean], [[q[i], kernel[i, j]], [kernel[i, j], q[j]]]
                )
                assert abs(many.value[i, j] - one.value) <= many.error[i, j] + one.error


def test_large_arrays_are_cut_into_blocks() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((150, 3))
    kernel = x @ x.T
    q = np.diag(kernel)
    f = function("gelu")
    whole = expectation([f, f], [0, 0], [[q[:, None], kernel], [kernel, q[None, :]]])
    assert whole is not None and np.all(whole.error <= 1e-13 * np.sqrt(np.outer(q, q)))
    part = expectation(
        [f, f], [0, 0], [[q[100:, None], kernel[100:, :9]], [kernel[100:, :9], q[None, :9]]]
    )
    np.testing.assert_array_equal(whole.value[100:, :9], part.value)
    long = np.linspace(0.1, 2.0, 20000)
    row = expectation([f], [0], [[long]])
    assert row is not None and row.value.shape == long.shape
    np.testing.assert_allclose(row.value, long / np.sqrt(2 * np.pi * (1 + long)), rtol=1e-14)


def test_equal_variables_beside_others_in_an_array() -> None:
    """Where a kink is not at 0, entries of equal variables are taken as one function there too."""
    one, q = np.ones(3), np.array([1.0, 1.5, 1.0])
    for f in (lookup("relu")(Var(0) + 1), lookup("abs")(Var(0) - 2)):
        alone = expectation([f, f], [0, 0], [[1.0, 1.0], [1.0, 1.0]])
        for cov in ([[q, one], [one, one]], [[one, one], [one, q]]):
            found = expectation([f, f], [0, 0], cov)
            assert found.value[[0, 2]].tolist() == [alone.value] * 2
            assert found.error.max() < 1e-13


def test_kinked_functions_are_a_part_of_those_tested() -> None:
    assert set(MEANS) >= KINKED and set(MEANS) >= set(VALUES)
