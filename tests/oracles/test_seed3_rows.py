"""What the other files of the low-rank paper leave: rows without a case, numbers as printed."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from layered import Activation, Dense, SpanBias, drawn

from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.spectra.finite import finite_moments
from tpcalc.meanfield.spectra.singular_values import singular_values

QUARTER = 0.25


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def test_S3_5_chi_is_a_slope_and_a_mean_square() -> None:
    """gamma sigma_alpha^2 E tau'^2: the slope of the correlation map at 1, and Tr D W W^T D / N."""
    for name, q in (("tanh", 0.563346), ("erf", None)):
        layer = LayerMap(act(name), 7, 0.2, rank=QUARTER)
        chi = layer.chi.value
        assert layer.correlation_slope(1.0).value == pytest.approx(chi, rel=1e-12)
        gap = (1 - layer.correlation(1 - 1e-7).value) / 1e-7
        assert gap == pytest.approx(chi, abs=1e-6)
        for family in ("gaussian", "orthogonal", "gaussian-gaussian"):
            mean = singular_values(layer, family, 1).mean.value
            assert mean == pytest.approx(chi, rel=1e-12)
        if q is not None:
            assert layer.fixed_point.value == pytest.approx(q, abs=1e-6)
            assert chi == pytest.approx(0.997656, abs=1e-6)


@pytest.mark.torch
def test_S3_5_chi_is_that_of_a_network() -> None:
    """The mean squared singular value of one layer at the fixed point, its edge over 8 networks."""
    from agree import agree

    from tests.sphere import sphere_inputs
    from tpcalc.finite.statistics import summary
    from tpcalc.nonlinearity.tensors.jacobians import jacobian

    layer = LayerMap(act("tanh"), 7, 0.2, rank=QUARTER)
    words = [Dense(7.0, rank=QUARTER), SpanBias(0.2, QUARTER), Activation("tanh")]
    squares = []
    for seed in range(8):
        x = sphere_inputs(1, 200, layer.start.value, seed)[0]
        squares.append(float((jacobian(drawn(words, 200, 200, seed), x) ** 2).sum()) / 200)
    agree(summary(squares), layer.chi.value, rounding=0.01)


@pytest.mark.torch
def test_S3_16_preactivations_are_gaussian_on_the_span() -> None:
    """h = C z with z ~ N(0, q / gamma): the covariance of h is (q / gamma) C C^T, a projector."""
    from tpcalc.nonlinearity.tensors.functions import gaussian_inputs

    width, fan_in, count, variance = 16, 1000, 2000, 3.0
    network = drawn([Dense(variance, rank=QUARTER)], width, fan_in, seed=1)
    h = network(gaussian_inputs(count, fan_in, seed=2)).numpy()
    columns = network.parameters["h1.left"].numpy()
    z = h @ columns
    assert columns.T @ columns == pytest.approx(np.eye(4), abs=1e-12)
    assert h == pytest.approx(z @ columns.T, abs=1e-12)
    # q = gamma sigma_alpha^2 for inputs of mean square 1, so that q / gamma is sigma_alpha^2.
    error = 5 * variance * (sqrt(2 / fan_in) + sqrt(2 / count))
    assert h.T @ h / count == pytest.approx(variance * columns @ columns.T, abs=error)
    kurtosis = (z**4).mean(axis=0) / (z**2).mean(axis=0) ** 2 - 3
    assert np.abs(kurtosis).max() < 5 * sqrt(24 / count)


def test_S3_16_lemma_A1_and_the_law_of_one_preactivation() -> None:
    """gamma n squares of N(0, 1 / n) add up to gamma; a coordinate of C z is N(0, q)."""
    rng, draws = np.random.default_rng(0), 4000
    for n, rank in ((64, 16), (1024, 256)):
        sums = (rng.standard_normal((400, rank)) ** 2 / n).sum(axis=1)
        assert sums.mean() == pytest.approx(QUARTER, abs=5 * sqrt(2 * rank / 400) / n)
        assert sums.std() == pytest.approx(sqrt(2 * rank) / n, rel=0.25)  # of order n^-1/2
    q, n, rank = 0.6, 64, 16
    frames = np.linalg.qr(rng.standard_normal((draws, n, rank)))[0]
    h = np.einsum("dr,dr->d", frames[:, 0], rng.standard_normal((draws, rank)))
    h *= sqrt(q / QUARTER)
    assert (h**2).mean() == pytest.approx(q, abs=5 * q * sqrt(2 / draws))
    # |row of C|^2 is random at finite n, with a variance of order 1 / n.
    assert (h**4).mean() == pytest.approx(
        3 * q * q, abs=5 * q * q * sqrt(96 / draws) + 9 * q * q / n
    )


def test_S3_8_9_A7_slope_and_scale_of_lengths() -> None:
    layer = LayerMap(act("tanh"), 2.5, 0.05)
    assert layer.length_scale.layers == pytest.approx(1.179873, abs=1e-5)
    slope = layer.correlation_slope(layer.stable_correlation).value
    assert slope == pytest.approx(0.918717, abs=1e-6)
    assert layer.correlation_scale.layers == pytest.approx(11.7956, abs=1e-4)


def test_S3_8_9_A9_where_quadrature_is_enough() -> None:
    layer = LayerMap(act("tanh"), 6.25, 0.09)
    found = [layer.fixed_point.value, layer.chi.value, layer.stable_correlation.value]
    assert found == pytest.approx([4.079124, 1.585227, 0.122104], abs=1e-5)
    assert layer.correlation_scale.layers == pytest.approx(5.108921, abs=1e-4)
    assert layer.length_scale.layers == pytest.approx(0.688355, abs=2e-5)


@pytest.mark.xfail(strict=True, reason="printed numbers are those of a rule of 201 points")
def test_S3_8_9_A9_as_printed() -> None:
    layer = LayerMap(act("tanh"), 16, 0.09)
    found = [layer.fixed_point.value, layer.chi.value, layer.stable_correlation.value]
    assert found == pytest.approx([12.603360, 2.374917, 0.029718], abs=1e-5)
    assert layer.correlation_scale.layers == pytest.approx(3.645304, abs=1e-5)


def test_S3_8_9_A9_a_rule_of_201_points_makes_the_printed_numbers() -> None:
    """Slopes of tanh at q = 12.6 are narrow beside the nodes of a Gauss-Hermite rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    weights = weights / weights.sum()
    q = 12.0
    for _ in range(200):
        q = 16 * float(weights @ np.tanh(sqrt(q) * nodes) ** 2) + 0.09
    chi = 16 * float(weights @ np.cosh(sqrt(q) * nodes) ** -4.0)
    assert (q, chi) == pytest.approx((12.603360, 2.374917), abs=1e-6)


def test_S3_17_A15_second_moment() -> None:
    found = finite_moments("gaussian", 1000, 250, 10)
    assert found.second == pytest.approx(41.785511, abs=1e-6)
    assert found.first == pytest.approx(1, abs=1e-12)
    assert found.variance == pytest.approx(40.783973, abs=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "orthogonal"])
def test_S3_17_A15_A16_recursion_in_fractions(family: str) -> None:
    """The recursion as printed, in rational numbers: no rounding, and the same to 1e-9."""
    from fractions import Fraction

    n, r, depth = 1000, 250, 10
    s = Fraction(1, r)
    if family == "gaussian":
        rows = ((s**2 * r**2, s**2 * 2 * r), (s**2 * r, s**2 * r * (r + 1)))
    else:
        a = Fraction(r * ((n + 1) * r - 2), n * (n - 1) * (n + 2))
        b = Fraction(r * (n - r), n * (n - 1) * (n + 2))
        four = Fraction(n, r) ** 2
        rows = ((four * a, four * 2 * b), (four * b, four * (a + b)))
    t1, t2 = Fraction(n * n), Fraction(n)
    for _ in range(depth):
        t1, t2 = (row[0] * t1 + row[1] * t2 for row in rows)
    found = finite_moments(family, n, r, depth)
    assert found.second == pytest.approx(float(t2 / n), rel=1e-9)
    assert found.first_squared == pytest.approx(float(t1 / n**2), rel=1e-9)
