"""What holds for the nonlinearity coefficient of every polynomial under every Gaussian law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.nonlinearity.chaos import Chaos, polynomial_chaos
from tpcalc.nonlinearity.gaussian import gaussian_nlc, gaussian_split
from tpcalc.nonlinearity.interval import interval_nlc
from tpcalc.nonlinearity.labels import pair_nlc
from tpcalc.nonlinearity.laws import Array, Gaussian
from tpcalc.nonlinearity.measured import sampled_nlc

SMALL = st.integers(-3, 3)
MONOMIALS = [(a, b) for a in range(4) for b in range(4 - a)]
QUICK = settings(max_examples=10, deadline=None)


def polynomial(coefficients: list[int]) -> Expr:
    total: Expr = const(0)
    for value, (a, b) in zip(coefficients, MONOMIALS, strict=True):
        total = total + value * Var(0) ** a * Var(1) ** b
    return total


POLYNOMIALS = st.lists(SMALL, min_size=len(MONOMIALS), max_size=len(MONOMIALS)).map(polynomial)


@st.composite
def laws(draw: st.DrawFn) -> Gaussian:
    """Regular covariances L L^T with whole entries, and a mean."""
    a, c = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    b = draw(SMALL)
    mean = [draw(SMALL), draw(SMALL)]
    return Gaussian(mean, [[a * a, a * b], [a * b, b * b + c * c]])


def chaos_of(outputs: list[Expr], law: Gaussian) -> Chaos:
    try:
        return polynomial_chaos(outputs, law)
    except EvaluationError:
        assume(False)
        raise


@QUICK
@given(st.lists(POLYNOMIALS, min_size=1, max_size=2), laws())
def test_two_routes_agree_and_theorem_1(outputs: list[Expr], law: Gaussian) -> None:
    chaos = chaos_of(outputs, law)
    found = gaussian_nlc(outputs, law)
    assert found.nlc.value**2 == pytest.approx(float(chaos.squared), rel=1e-9)
    assert found.spread.value**2 == pytest.approx(float(chaos.variance), rel=1e-9)
    assert chaos.squared >= 1
    assert (chaos.squared == 1) == (len(chaos.energies) == 2)


@QUICK
@given(POLYNOMIALS, laws())
def test_theorems_2_and_3(function: Expr, law: Gaussian) -> None:
    chaos = chaos_of([function], law)
    split = gaussian_split(function, law)
    assert split.linear.value == pytest.approx(float(chaos.linear), rel=1e-9, abs=1e-12)
    assert split.recombined == pytest.approx(split.whole.value, rel=1e-9)
    if split.rest is not None and split.nonlinear.value > 1e-9:
        assert split.rest.value > 2**0.5 * (1 - 1e-9)
    if chaos.energies[1] == 0:
        assert chaos.squared >= 2


@QUICK
@given(POLYNOMIALS, POLYNOMIALS, laws(), SMALL, st.integers(1, 3))
def test_proposition_4_outputs_turned_shifted_scaled(
    first: Expr, second: Expr, law: Gaussian, shift: int, scale: int
) -> None:
    c, s = Fraction(3, 5), Fraction(4, 5)
    turned = [scale * (c * first - s * second) + shift, scale * (s * first + c * second)]
    left, right = chaos_of([first, second], law), chaos_of(turned, law)
    assert left.squared == right.squared


@QUICK
@given(POLYNOMIALS, laws(), st.lists(SMALL, min_size=6, max_size=6))
def test_proposition_5_an_affine_map_of_the_inputs(
    function: Expr, law: Gaussian, numbers: list[int]
) -> None:
    matrix, shift = np.array(numbers[:4]).reshape(2, 2), numbers[4:]
    assume(round(np.linalg.det(matrix)) != 0)
    forms: dict[Expr, Expr] = {
        Var(j): int(matrix[0, j]) * Var(0) + int(matrix[1, j]) * Var(1) + shift[j] for j in (0, 1)
    }
    mean = np.array(law.mean) @ matrix + shift
    cov = matrix.T @ np.array(law.cov) @ matrix
    moved = Gaussian(mean.tolist(), cov.tolist())
    left = chaos_of([substitute(function, forms)], law)
    assert left.squared == chaos_of([function], moved).squared


@settings(max_examples=8, deadline=None)
@given(st.floats(0.1, 10), st.floats(-10, 10), st.floats(0.1, 10), st.floats(-5, 5), st.booleans())
def test_nl1d_is_invariant_under_affine_maps(
    a: float, b: float, c: float, d: float, mirrored: bool
) -> None:
    sign = -1 if mirrored else 1

    def moved(s: Array) -> Array:
        return np.asarray(a * np.exp(np.sin(3 * sign * (c * s + d))) + b)

    plain = interval_nlc(lambda s: np.exp(np.sin(3 * s)), 0, 2)
    ends = sorted((sign * e - d) / c for e in (0.0, 2.0))
    found = interval_nlc(moved, *ends)
    assert found.nl1d.value == pytest.approx(plain.nl1d.value, rel=1e-6)
    assert found.absolute.value == pytest.approx(plain.absolute.value, rel=1e-6)
    assert found.nl1d.value >= found.absolute.value >= 1 - 1e-9


@settings(max_examples=8, deadline=None)
@given(st.floats(-30, 30), st.floats(-30, 30), st.integers(0, 99))
def test_samples_do_not_mind_the_scale_of_outputs_or_inputs(
    outer: float, inner: float, seed: int
) -> None:
    a, b = 10.0**outer, 10.0**inner
    plain = sampled_nlc(np.tanh, Gaussian(), seed=seed, samples=256).nlc
    moved = sampled_nlc(
        lambda x: a * np.tanh(x / b), Gaussian(0, b * b), seed=seed, samples=256
    ).nlc
    assert moved.value == pytest.approx(plain.value, rel=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100), st.floats(-5, 5), st.integers(0, 99))
def test_pairs_do_not_mind_the_scale_of_inputs(scale: float, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, labels = rng.standard_normal((12, 3)), rng.integers(0, 3, 12)
    assume(len(set(labels.tolist())) > 1)
    left, right = pair_nlc(x, labels), pair_nlc(scale * x + shift, labels)
    assert np.allclose(left.values, right.values, rtol=1e-9)
