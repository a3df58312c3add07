"""Singular covariances, deltas, three half-lines, small numbers, and what is refused."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import special
from unit.integrals.exact.one_dimensional import Two, function, mean_of_pair, precise

from tpcalc.activations.entries import lookup
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.relu import RELU
from tpcalc.activations.entries.step import STEP
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Par, Var
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.exact import DELTA, expectation, supported

X = Var(0)


def value(factors: list[Expr], mean: list[object], cov: list[list[object]]) -> Bounded:
    found = expectation(factors, mean, cov)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["relu", "gelu", "erf", "elu", "abs", "sin", "relu^3/2", "selu"])
def test_one_variable_twice_is_the_square(name: str) -> None:
    f = function(name)
    for q in (1e-12, 0.3, 1e4):
        twice = value([f, f], [0, 0], [[q, q], [q, q]])
        square = value([f**2], [0], [[q]])
        assert twice == square
        arrays = value([f, f], [0, 0], [[np.array([q]), np.array([q])], [0, np.array([q, q])]])
        assert np.all(np.abs(arrays.value - square.value) <= arrays.error + square.error)
        assert np.all(arrays.error <= 1e-6 * (q + q**1.5))


@pytest.mark.parametrize("name", ["relu", "gelu", "erf", "elu", "step", "relu^2"])
def test_opposite_variables(name: str) -> None:
    f = function(name)
    for mean in (0.0, 0.7):
        found = value([f, f], [mean, -mean], [[2.0, -2.0], [-2.0, 2.0]])
        mirrored = mean_of_pair(name, name, Two((mean, -mean), (2.0, 2.0), -2.0))
        assert abs(found.value - mirrored) <= found.error + 1e-14
        assert found.error < 1e-13


def test_relu_of_nearly_opposite_variables_keeps_its_relative_accuracy() -> None:
    for gap in (1e-2, 1e-6, 1e-10, 1e-13):
        c = -(1.0 - gap)
        found = value([function("relu")] * 2, [0, 0], [[1.0, c], [c, 1.0]])
        with mp.workdps(50):
            rho = mp.mpf(c)
            wanted = (mp.sqrt(1 - rho**2) + rho * (mp.pi - mp.acos(rho))) / (2 * mp.pi)
            assert abs(found.value - wanted) <= found.error
        assert found.error <= 1e-13 * found.value


def test_variables_without_variance_are_numbers() -> None:
    assert value([function("step")], [0], [[0.0]]).value == 0.0
    assert value([function("elu_slope:2")], [0], [[0.0]]).value == 2.0
    assert value([function("relu"), function("relu")], [2.0, 0], [[0.0, 0], [0, 1.0]]).value == (
        pytest.approx(2 / np.sqrt(2 * np.pi), rel=1e-15)
    )
    q = np.array([0.0, 1.0, 4.0])
    found = value([function("relu")] * 2, [0, 0], [[q, q / 2], [q / 2, q]])
    one = value([function("relu")] * 2, [0, 0], [[1.0, 0.5], [0.5, 1.0]]).value
    np.testing.assert_allclose(found.value, q * one, rtol=1e-14)
    shifted = value([function("cos")], [np.array([0.5, 0.5])], [[np.array([0.0, 2.0])]])
    np.testing.assert_allclose(shifted.value, np.cos(0.5) * np.exp([0.0, -1.0]), rtol=1e-14)


@pytest.mark.parametrize("name", ["elu", "selu", "sin", "erf", "elu:1/2"])
def test_small_variances_lose_nothing(name: str) -> None:
    f = function(name)
    if name in ("elu", "sin", "erf"):
        for q, rho in ((1e-12, 0.5), (1e-6, -0.9), (1e-3, 0.99)):
            pair = Two((0.0, 0.0), (q, q), rho * q)
            found = value([f, f], [0, 0], [*pair.rows])
            assert abs(found.value - precise(name, name, pair)) <= found.error < 1e-13 * q
    for q in (1e-12, 1e-6, 1e-4, 1e-2):
        squared = value([f**2], [0], [[q]])
        assert squared.error <= 2e-13 * squared.value
        other = function("square" if name == "sin" else "relu")
        mixed = value([f, other], [1e-3 * q, 0], [[q, q / 2], [q / 2, 3.0 + q]])
        assert mixed.error <= 1e-12 * np.sqrt(q)


def test_small_and_large_variances_in_one_array() -> None:
    f = function("elu")
    q = np.array([0.0, 1e-12, 1e-3, 1.0, 1e3])
    c = 0.5 * np.sqrt(np.outer(q, q))
    many = value([f, f], [0, 0], [[q[:, None], c], [c, q[None, :]]])
    for i in range(5):
        for j in range(5):
            one = value([f, f], [0, 0], [[q[i], c[i, j]], [c[i, j], q[j]]])
            assert abs(many.value[i, j] - one.value) <= many.error[i, j] + one.error
            if q[i] and q[j]:
                assert many.error[i, j] <= 1e-12 * np.sqrt(q[i] * q[j])
            else:
                assert many.value[i, j] == 0.0


def test_orthants_with_means_against_the_bivariate_normal_distribution() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(2)
    for _ in range(40):
        rho, h, k = rng.uniform(-0.999, 0.999), *(2 * rng.standard_normal(2))
        found = value([STEP(X)] * 2, [h, k], [[1.0, rho], [rho, 1.0]])
        wanted = multivariate_normal.cdf([h, k], cov=[[1.0, rho], [rho, 1.0]])
        assert abs(found.value - wanted) <= found.error + 1e-9
        shifted = value([STEP(X + h), STEP(2 * X + 2 * k)], [0, 0], [[1.0, rho], [rho, 1.0]])
        assert abs(shifted.value - found.value) <= found.error + shifted.error


def test_three_half_lines_of_centred_variables() -> None:
    rows = [[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]]
    found = value([STEP(X)] * 3, [0, 0, 0], rows)
    angles = sum(np.arcsin(rows[i][j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert abs(found.value - (1 / 8 + angles / (4 * np.pi))) <= found.error + 1e-16
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal([0, 0, 0], rows, size=400_000)
    relu = value([RELU(X)] * 3, [0, 0, 0], rows)
    sample = np.maximum(draws, 0).prod(axis=1)
    assert abs(relu.value - sample.mean()) < 5 * sample.std() / np.sqrt(len(sample))
    gelu = value([function("gelu") ** 3], [0], [[1.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    wanted = (weights * (nodes * special.ndtr(nodes)) ** 3).sum() / np.sqrt(2 * np.pi)
    assert abs(gelu.value - wanted) < 1e-13
    assert expectation([STEP(X)] * 3, [0.1, 0, 0], rows) is None


def test_real_powers_of_pairs() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(400)
    for a, b, c in ((1.5, 0.5, 0.3), (0.5, 0.5, -0.9), (2.5, 1.0, 0.999), (1.5, 2.0, 0.0)):
        f, g = lookup(f"relu^{a}").fn.expr, lookup(f"relu^{b}").fn.expr
        cov = c if c else 1e-300
        found = value([f, g], [0, 0], [[1.0, cov], [cov, 1.0]])
        opening = np.pi - np.arccos(c)
        t = opening * (1 - np.cos(np.pi * (nodes + 1) / 2)) / 2  # roots at both ends become smooth
        slope = opening * np.sin(np.pi * (nodes + 1) / 2) * np.pi / 4
        angular = (weights * slope * np.sin(t) ** a * np.sin(opening - t) ** b).sum()
        wanted = 2 ** ((a + b) / 2) * special.gamma((a + b) / 2 + 1) / (2 * np.pi) * angular
        assert abs(found.value - wanted) <= found.error + 1e-9 * wanted
        assert found.error <= 1e-12 * wanted
    same = value([lookup("relu^3/2").fn.expr] * 2, [0, 0], [[2.0, 2.0], [2.0, 2.0]])
    assert same.value == pytest.approx(8 / np.sqrt(2 * np.pi * 2), rel=1e-14)
    signed = value([lookup("relu^3/2").fn.expr, X], [0, 0], [[1.0, 0.5], [0.5, 1.0]])
    alone = value([X * lookup("relu^3/2").fn.expr], [0], [[1.0]])
    assert signed.value == pytest.approx(alone.value / 2, rel=1e-13)


def test_deltas() -> None:
    density = 1 / np.sqrt(2 * np.pi)
    assert value([DELTA(X)], [0], [[4.0]]).value == pytest.approx(density / 2, rel=1e-15)
    assert value([DELTA(-3 * X + 3)], [0], [[1.0]]).value == (
        pytest.approx(density * np.exp(-0.5) / 3, rel=1e-15)
    )
    both = value([DELTA(X), DELTA(X)], [0, 0], [[1.0, 0.6], [0.6, 1.0]])
    assert both.value == pytest.approx(1 / (2 * np.pi * 0.8), rel=1e-14)
    # E delta(u) erf(v) = 0, E delta(u) relu(v) as the derivative of E step(u) relu(v) by the mean.
    rows = [[1.3, 0.4], [0.4, 0.9]]
    found = value([DELTA(X), function("gelu")], [0.2, 0.1], rows)
    step = 1e-5
    ends = [value([STEP(X), function("gelu")], [0.2 + e, 0.1], rows).value for e in (step, -step)]
    assert found.value == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-8)
    assert expectation([DELTA(X) * STEP(X)], [0], [[1.0]]) is None
    assert value([DELTA(X) * STEP(X + 1)], [0], [[1.0]]).value == pytest.approx(density)
    with pytest.raises(EvaluationError, match="Dirac delta"):
        expectation([DELTA(X)], [0], [[0.0]])
    with pytest.raises(EvaluationError, match="no values"):
        DELTA.evaluate(np, 0.0)


def test_independent_groups_multiply() -> None:
    f, g = function("relu"), function("gelu")
    rows = [[1.0, 0.5, 0, 0], [0.5, 1.0, 0, 0], [0, 0, 2.0, -0.3], [0, 0, -0.3, 1.0]]
    whole = value([f, f, g, g], [0, 0, 0.1, 0], rows)
    first = value([f, f], [0, 0], [[1.0, 0.5], [0.5, 1.0]])
    second = value([g, g], [0.1, 0], [[2.0, -0.3], [-0.3, 1.0]])
    assert abs(whole.value - first.value * second.value) <= whole.error + 1e-16
    assert value([], [], []).value == 1.0


def test_edges_of_one_variable_are_joined() -> None:
    inside = STEP(X + 1) * STEP(1 - X)
    wanted = special.erf(np.sqrt(0.5))
    assert value([inside], [0], [[1.0]]).value == pytest.approx(wanted, rel=1e-14)
    assert value([STEP(X - 1) * STEP(-X)], [0], [[1.0]]).value == 0.0
    sign = function("sign")
    assert value([sign * STEP(X + 1) ** 3], [0], [[1.0]]).value == (
        pytest.approx(1 - special.ndtr(1.0), rel=1e-14)
    )
    assert value([sign * function("abs")], [0.4], [[1.0]]).value == pytest.approx(0.4, rel=1e-15)


def test_exponentials_of_squares() -> None:
    found = value([EXP(X**2 / 4 - X)], [0.3], [[1.5]])
    spread = 1 - 2 * 0.25 * 1.5
    wanted = np.exp((0.25 * 0.09 - 0.3 + 1.5 / 2) / spread) / np.sqrt(spread)
    assert found.value == pytest.approx(wanted, rel=1e-14)
    assert value([EXP(X**2), EXP(-(X**2))], [0, 0], [[1.0, 1.0], [1.0, 1.0]]).value == 1.0
    with pytest.raises(EvaluationError, match="infinite"):
        expectation([EXP(X**2)], [0], [[0.5]])
    with pytest.raises(EvaluationError, match="infinite"):
        expectation([EXP(X**2 / 2), X**2], [0, 0], [[np.array([0.5, 2.0]), 0.1], [0.1, 1.0]])


def test_impossible_covariances_are_refused() -> None:
    f = function("relu")
    with pytest.raises(EvaluationError, match="larger than the variances allow"):
        expectation([f, f], [0, 0], [[1.0, 1.1], [1.1, 1.0]])
    with pytest.raises(EvaluationError, match="negative"):
        expectation([f], [0], [[-1.0]])
    # A rounding error beyond the largest covariance is no error.
    assert value([f, f], [0, 0], [[1.0, 1.0 + 2e-16], [0, 1.0]]).value == pytest.approx(0.5)
    unknown = value([f, f], [0, 0], [[1.0, float("nan")], [0, 1.0]])
    assert unknown.error == float("inf")


def test_numbers_out_of_range_have_no_bound_rather_than_a_false_one() -> None:
    f = function("relu")
    for q in (1e-200, 1e200):
        found = value([f, f], [0, 0], [[q, q / 2], [q / 2, q * 1.0000001]])
        wanted = 0.30449889052 * q
        assert found.error == np.inf or abs(found.value - wanted) <= found.error + 1e-11 * q


@pytest.mark.parametrize(
    ("factors", "answer"),
    [
        ([function("gelu")] * 2, True),
        ([function("tanh")], False),
        ([function("sigmoid") * X], False),
        ([function("log")], False),
        ([X**-1], False),
        ([Par(0) * X], False),
        ([function("sin"), function("relu")], False),
        ([function("relu") * function("relu^1/2")], True),
        ([function("relu").atom(X**2)], False),  # type: ignore[attr-defined]
        ([EXP(X) ** -2], True),
        ([RELU(X) ** lookup("relu^3/2").function.params[0]], True),  # type: ignore[union-attr]
        ([RELU(X - 1) ** lookup("relu^3/2").function.params[0]], False),  # type: ignore[union-attr]
    ],
)
def test_what_is_supported(factors: list[Expr], answer: bool) -> None:
    assert supported(factors) is answer
    if not answer:
        count = len(factors)
        eye = [[1.0 if i == j else 0.1 for j in range(count)] for i in range(count)]
        assert expectation(factors, [0.0] * count, eye) is None
