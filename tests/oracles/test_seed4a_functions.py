"""The nonlinearity coefficient of functions against the published cases (thesis, chapters 4, 5)."""

from __future__ import annotations

from fractions import Fraction
from math import exp, pi, sqrt, tanh

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var
from tpcalc.nonlinearity.chaos import grid_chaos, polynomial_chaos
from tpcalc.nonlinearity.formulas import numpy_form
from tpcalc.nonlinearity.gaussian import gaussian_nlc, gaussian_split
from tpcalc.nonlinearity.interval import interval_nlc
from tpcalc.nonlinearity.labels import elem_like_pairs, pair_nlc
from tpcalc.nonlinearity.laws import Array, Box, Empirical, Gaussian, Law, Sampler, Sphere
from tpcalc.nonlinearity.measured import sampled_nlc
from tpcalc.nonlinearity.meta import elem_like, elem_like_test, meta_gaussian, meta_moments
from tpcalc.nonlinearity.noise import noise_identity
from tpcalc.nonlinearity.ranges import linear_range
from tpcalc.nonlinearity.scaling import (
    product_estimate,
    scale_sweep,
    triangle_network,
    triangle_wave,
)
from tpcalc.nonlinearity.shapes import meta_gaussianity
from tpcalc.nonlinearity.split import sampled_split

Z = 5


def act(name: str) -> Expr:
    return lookup(name).fn.expr


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "abs", "square", "softplus", "sigmoid"])
def test_S4_3_case4_theorem_3_for_activations(name: str) -> None:
    split = gaussian_split(act(name))
    shares = split.linear.value + split.constant.value + split.nonlinear.value
    assert shares == pytest.approx(1, abs=1e-12)
    assert split.recombined == pytest.approx(split.whole.value, abs=1e-10)
    assert split.rest is not None
    assert split.rest.value >= sqrt(2) - 1e-12


@pytest.mark.parametrize(
    ("omega", "value"),
    [(Fraction(3, 10), 1.0013483625), (1, 1.1458775177), (3, 3.0000000457)],
)
def test_S4_1_case5_sine(omega: Fraction, value: float) -> None:
    found = gaussian_nlc(lambda x: tp.sin(omega * x)).nlc
    assert found.value == pytest.approx(value, abs=1e-9)
    assert abs(found.value - omega / sqrt(tanh(omega**2))) <= found.stderr + 1e-14


def case6(x: Expr, y: Expr) -> Expr:
    return x + (y**2 - 1) / 2 + x * y


def test_S4_1_case6_polynomial_exactly_by_two_routes() -> None:
    law = Gaussian(0, [1, 1])
    chaos = polynomial_chaos(case6, law)
    assert chaos.squared == Fraction(8, 5)
    assert chaos.nlc.formula == "sqrt(8/5)"
    found = gaussian_nlc(case6, law).nlc
    assert found.method.value == "exact"
    assert found.value == pytest.approx(1.2649110641, abs=1e-10)
    split = gaussian_split(case6, law)
    assert split.linear.value == pytest.approx(0.4, abs=1e-12)
    assert split.constant.value == pytest.approx(0, abs=1e-12)
    assert split.rest is not None
    assert split.rest.value == pytest.approx(sqrt(2), abs=1e-12)


def test_S4_1_case6_by_samples() -> None:
    function, jacobian = numpy_form(case6, 2)
    law = Gaussian(0, 1, 2)
    for found in (
        sampled_nlc(function, law, seed=1, samples=2**16),
        sampled_nlc(function, law, seed=2, samples=2**16, jacobian=jacobian),
    ):
        assert found.nlc.z(1.2649110641) < Z
        assert found.nlc.stderr < 0.02
        assert found.slope.z(2) < Z
        assert found.spread.z(sqrt(2.5)) < Z
    split = sampled_split(function, law, seed=3)
    assert split.linear.z(0.4) < Z
    assert split.constant.value < 1e-3
    assert split.nonlinear.z(0.6) < Z
    assert split.rest is not None
    assert split.rest.z(sqrt(2)) < Z


def test_S4_1_case7_unequal_variances() -> None:
    law = Gaussian(0, [4, 1])
    assert polynomial_chaos(lambda x, y: x + x * y, law).squared == Fraction(3, 2)
    found = gaussian_nlc(lambda x, y: x + x * y, law).nlc
    assert found.value == pytest.approx(1.2247448714, abs=1e-10)
    sampled = sampled_nlc(lambda x: x[:, 0] * (1 + x[:, 1]), law, seed=0)
    assert sampled.nlc.z(1.2247448714) < Z


@pytest.mark.parametrize(("periods", "value"), [(1, 2.2214414691), (4, 8.8857658763)])
def test_S4_2_case8_sine_on_an_interval(periods: int, value: float) -> None:
    for function in (np.sin, act("sin")):
        found = interval_nlc(function, 0, 2 * pi * periods)
        assert found.nl1d.value == pytest.approx(value, abs=1e-9)
        assert found.absolute.value == pytest.approx(2 * periods, abs=1e-9)
    law = Box(0, 2 * pi * periods)
    sampled = sampled_nlc(np.sin, law, seed=0)
    assert sampled.nlc.z(found.nlc) < Z


@pytest.mark.parametrize(
    ("shares", "value", "chance"),
    [
        ([0.1] * 10, 1.0540925534, 0.9),
        ([1 / 3] * 3, 1.2247448714, 2 / 3),
        ([0.5, 0.3, 0.2], 0.62**-0.5, 0.62),
    ],
)
def test_S4_14_case9_labels_of_elem_like_inputs(
    shares: list[float], value: float, chance: float
) -> None:
    found = elem_like_pairs(shares)
    assert found[0] == pytest.approx(value, abs=1e-9)
    assert found[1] == pytest.approx(chance, abs=1e-12)
    # A dataset with these shares: covariances with n - 1 take the value to the one of the limit.
    count = 240
    labels = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * count).astype(int))
    pairs = pair_nlc(elem_like(2, 0.5, count=count, dimension=count, seed=1), labels)
    nonzero = pairs.values[pairs.values > 0]
    assert np.ptp(nonzero) < 1e-9
    unbiased = value * sqrt(1 - 1 / count)
    assert nonzero[0] == pytest.approx(unbiased, abs=1e-9)
    assert 1 - pairs.zero == pytest.approx(chance * count / (count - 1), abs=1e-9)


def test_S4_8_case10_linear_range_of_the_square() -> None:
    found = linear_range(lambda x: x**2, Gaussian(), seed=0, batch=1, draws=8000)
    assert found.one.z(0.4671928) < Z
    assert found.median.z(1.0828273) < Z


def normalized(x: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True)))


@pytest.mark.parametrize("batch", [5, 16])
def test_S4_6_case32_a_batch_of_normalized_numbers(batch: int) -> None:
    y = normalized(np.random.default_rng(0).standard_normal((4000, batch)))
    assert np.allclose(np.mean(y**2, axis=1), 1)
    comean = (np.sum(y, axis=1) ** 2 - np.sum(y**2, axis=1)) / (batch * (batch - 1))
    assert np.allclose(comean, -1 / (batch - 1))
    found = sampled_nlc(normalized, Gaussian(0, 1, batch), seed=1, samples=2**15).nlc
    assert found.z(sqrt((batch - 2) / (batch - 3))) < Z


@pytest.mark.parametrize(
    ("name", "slope", "value"),
    [
        ("relu", 0, 1.211174),
        ("relu", Fraction(1, 2), 1.070467),
        ("relu", 1, 1.033436),
        ("relu", Fraction(-1, 2), 1.658897),
        ("tanh", Fraction(1, 2), 1.027661),
        ("tanh", 1, 1.013364),
    ],
)
def test_S4_9_case37_adding_a_linear_function(name: str, slope: Fraction, value: float) -> None:
    expr = act(name)
    found = gaussian_nlc(expr + slope * Var(0)).nlc.value
    assert found == pytest.approx(value, abs=1e-6)
    split = gaussian_split(expr)
    assert split.rest is not None
    second = gaussian_nlc(expr).spread.value ** 2 / (split.linear.value + split.nonlinear.value)
    rest, linear = split.nonlinear.value * second, (split.matrix[0][0] + float(slope)) ** 2
    formula = sqrt((split.rest.value**2 * rest + linear) / (rest + linear))
    assert found == pytest.approx(formula, abs=1e-10)


def test_S4_19_case38_three_argument_kernel_as_a_mean() -> None:
    found = tp.expect(lambda s, t: tp.relu(s) * tp.relu(t), [[1, 0.5], [0.5, 2]])
    assert found.value == pytest.approx(0.3642988817, abs=1e-9)
    # The mean of s relu(t) is half their covariance: what the split of relu makes of it.
    law = Gaussian(0, [[1, 0.5], [0.5, 2]])
    split = gaussian_split(lambda s, t: tp.relu(t), law)
    assert split.matrix[0][0] == pytest.approx(0, abs=1e-12)
    assert split.matrix[1][0] == pytest.approx(0.5, abs=1e-12)


def test_S4_30_case39_biased_sawtooth() -> None:
    def slope(x: Array) -> Array:
        return np.where(np.mod(2 * x - 1, 4) < 2, -1.0, 1.0)

    found = sampled_nlc(
        lambda x: 1 + 0.5 * triangle_wave(2 * x), Gaussian(), seed=0, jacobian=slope
    )
    assert found.nlc.z(3.464102) < Z
    assert found.slope.value == 1
    bias = sqrt(1 + found.spread.value**2) / found.spread.value
    assert bias == pytest.approx(3.605551, rel=Z * found.spread.stderr / found.spread.value)


def test_S4_3_linear_functions_have_coefficient_one_under_every_law() -> None:
    matrix = np.array([[1.0, -2.0], [0.5, 3.0], [0.0, 1.0]])
    rng = np.random.default_rng(0)
    laws: list[Law] = [
        Box([0, 0, -5], [1, 2, 9]),
        Sphere(3, 2.0),
        Empirical(rng.exponential(size=(600, 3))),
        Sampler(lambda rng, size: rng.exponential(size=(size, 3)) ** 2, 3),
        Gaussian([1, 2, 3], [[2, 1, 0], [1, 2, 1], [0, 1, 2]]),
    ]
    for law in laws:
        assert sampled_nlc(lambda x: x @ matrix + 3, law, seed=1).nlc.z(1) < Z


def test_S4_3_clusters_make_a_coefficient_near_0() -> None:
    def draw(rng: np.random.Generator, size: int) -> Array:
        return np.asarray(
            rng.choice([-1.0, 1.0], (size, 1)) + 0.05 * rng.standard_normal((size, 1))
        )

    found = sampled_nlc(lambda x: np.tanh(30 * x), Sampler(draw, 1), seed=0)
    assert found.nlc.value < 0.5
    assert not any("Theorem 1" in note for note in found.notes)


def test_S4_10_noise_identity() -> None:
    law = Gaussian([1, 0], [[2, 1], [1, 3]])
    function, jacobian = numpy_form(lambda x, y: (tp.tanh(x + y), x * y), 2)
    assert noise_identity(function, law, seed=0, jacobian=jacobian).z < Z
    assert noise_identity(function, Sphere(2), seed=0).z < Z


def test_S4_20_meta_gaussian_expansion() -> None:
    values = meta_gaussian(1.5, 0.5, samples=400, neurons=1000, seed=0)
    q, c = meta_moments(values)
    assert q.z(1.5) < Z
    assert c.z(0.5) < Z
    found = meta_gaussianity(values)
    assert abs(found.nkurt) < Z * sqrt(24 / values.size)
    assert abs(found.kurtex) < Z * sqrt(24 / 1000)
    assert found.nghi > 0.9
    assert found.ghiex > 0.9
    assert found.cvnstd == pytest.approx(1 / sqrt(2 * 399), rel=0.15)
    # Correlations of independent neurons by 400 inputs, and each with itself.
    assert found.ncorr == pytest.approx(sqrt(1 / 400 + 1 / 1000), rel=0.05)
    assert found.lcv == pytest.approx(sqrt(2 + 4 * 0.5) / 1.5 / sqrt(1000) / 2, rel=0.2)


def test_S4_20_a_wide_random_network_makes_the_meta_gaussian_law_of_its_kernel() -> None:
    rng = np.random.default_rng(2)
    width, q, c = 1000, 1.0, 0.25
    x = elem_like(q, c, count=60, dimension=width, seed=3)
    first = x @ rng.standard_normal((width, width)) / sqrt(width)
    out = np.tanh(first) @ rng.standard_normal((width, width)) / sqrt(width)
    wanted = [
        tp.expect(lambda s, t: tp.tanh(s) * tp.tanh(t), [[q, own], [own, q]]).value
        for own in (q, c)
    ]
    for found, value in zip(meta_moments(out), wanted, strict=True):
        # Neurons of one network share the layer below: its width is a second source of error.
        assert abs(found.value - value) < Z * (found.stderr + value / sqrt(width))
    assert meta_gaussianity(out).nghi > 0.8


def test_S4_22_elem_like_test_tells_data_apart() -> None:
    exact = elem_like_test(elem_like(2, 0.5, count=30, dimension=100, seed=0))
    assert exact.square.value == pytest.approx(2, abs=1e-12)
    assert exact.comean.value == pytest.approx(0.5, abs=1e-12)
    assert exact.comean_spread.value < 1e-9
    assert exact.verdict.startswith("No sign against")
    random = elem_like_test(meta_gaussian(2, 0.5, samples=300, neurons=400, seed=1).copy())
    assert random.square_spread.z(random.expected[0]) < Z
    assert random.comean_spread.z(random.expected[1]) < Z
    assert random.verdict.startswith("No sign against")
    scaled = meta_gaussian(2, 0.5, samples=300, neurons=400, seed=1)
    scaled *= np.random.default_rng(0).uniform(0.5, 1.5, (300, 1))
    assert elem_like_test(scaled).verdict.startswith("Not elem-like")


def test_S4_44_coefficient_of_a_sawtooth_network_is_proportional_to_the_scale() -> None:
    net, jacobian = triangle_network([10, 60, 60, 1], seed=0)
    law = Gaussian(0, 1, 10)
    scales = [8, 16, 32]
    sweep = scale_sweep(net, law, scales, seed=1, samples=2**12, jacobian=jacobian)
    slopes = [found.nlc.value / scale for found, scale in zip(sweep, scales, strict=True)]
    assert max(slopes) / min(slopes) < 1.1
    assert scale_sweep(net, law, [1e-3], seed=1, jacobian=jacobian)[0].nlc.value < 1.1


@pytest.mark.parametrize(
    ("name", "power", "value"),
    [("relu", 19, 38.10), ("tanh", 19, 4.734), ("softplus", 19, 2.087), ("swish", 19, 6.217)],
)
def test_S4_40_E7_product_estimate(name: str, power: int, value: float) -> None:
    found = product_estimate([act(name)] * power)
    assert found.value == pytest.approx(value, rel=2e-4)


def test_heavy_growth_exactly_and_by_samples() -> None:
    law = Gaussian(0, 9)
    exact = gaussian_nlc(tp.exp, law).nlc
    assert exact.value == pytest.approx(sqrt(9 / (1 - exp(-9))), rel=1e-12)
    function, jacobian = numpy_form(tp.exp)
    found = sampled_nlc(function, law, seed=0, jacobian=jacobian)
    assert found.nlc.status.name == "RARE"


def test_hermite_grid_against_quadrature() -> None:
    law = Gaussian([0.5, -1], [[1, 0.5], [0.5, 2]])
    grid = grid_chaos(lambda x: np.sin(x[:, 0]) * np.cos(x[:, 1]), law, degree=40).nlc
    other = gaussian_nlc(lambda x, y: tp.sin(x) * tp.cos(y), law).nlc
    assert grid.value == pytest.approx(other.value, rel=1e-9)
