"""The pieces of quadrature: panels cover, polynomials are exact, covariances lose no digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.activations.entries import lookup
from tpcalc.functions import Var
from tpcalc.integrals.quadrature.adaptive import Effort, Sampled, integrate
from tpcalc.integrals.quadrature.conditional import conditional_mean
from tpcalc.integrals.quadrature.geometry import determinant, plane
from tpcalc.integrals.quadrature.nodes import ORDER, gauss_legendre
from tpcalc.integrals.quadrature.panels import Bends, Panels, panels
from tpcalc.integrals.quadrature.polynomial import coefficients, shifted
from tpcalc.integrals.quadrature.shape import shape

Z = Var(0)
SIZES = st.floats(1e-3, 1e3)


def test_the_rule_is_exact_and_its_judges_see_high_degrees_alone() -> None:
    rule = gauss_legendre()
    for degree in range(2 * ORDER):
        truth = 0.0 if degree % 2 else 2.0 / (degree + 1)
        assert rule.weights @ rule.points**degree == pytest.approx(truth, abs=1e-14)
    for degree in range(ORDER - 4):
        legendre = np.polynomial.legendre.Legendre.basis(degree)(rule.points)
        assert np.abs(legendre @ rule.judges).max() < 1e-14
    top = np.polynomial.legendre.Legendre.basis(ORDER - 1)(rule.points)
    assert np.abs(top @ rule.judges).max() == pytest.approx(2.0)


def test_refinement_reports_what_it_cannot_resolve() -> None:
    whole = panels(
        Bends(*(np.zeros((1, 0)) for _ in range(3)), np.zeros((1, 1, 0))), np.zeros((1, 1)), 1.0
    )

    def step(cover: Panels) -> Sampled:
        half = 0.5 * (cover.upper - cover.lower)[:, None]
        x = (cover.anchor + cover.lower)[:, None] + half * (1.0 + gauss_legendre().points)
        return Sampled(np.where(x > 0.3, 1.0, 0.0), 0.0)

    few = integrate(step, whole, np.zeros(1), None, Effort(rounds=3))
    many = integrate(step, whole, np.zeros(1), None, Effort(rounds=40))
    assert abs(few.value[0] - 0.7) <= few.error[0]
    assert few.error[0] > 1e-3
    assert abs(many.value[0] - 0.7) <= many.error[0] <= 1e-11


@given(SIZES, SIZES, SIZES, st.floats(1e-14, 1e-3))
def test_determinants_keep_their_digits(a: float, b: float, d: float, tilt: float) -> None:
    c = a * d / b * (1 + tilt)
    found = determinant(*(np.array(x) for x in (a, b, c, d)))
    truth = Fraction(a) * Fraction(d) - Fraction(b) * Fraction(c)
    assert abs(Fraction(float(found)) - truth) <= Fraction(1, 2**51) * abs(truth)


@given(SIZES, SIZES, st.floats(-1, 1))
def test_planes_give_the_covariance_back(qu: float, qv: float, rho: float) -> None:
    c = rho * np.sqrt(qu * qv)
    found = plane(*(np.array([x]) for x in (0.0, 0.0, qu, qv, c)))
    assert found.su * found.sv * found.rho == pytest.approx(c, rel=1e-14, abs=1e-300)
    assert found.rho**2 + found.kappa**2 == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e150])
def test_kappa_near_one(scale: float) -> None:
    c = scale * (1 - 2.0**-45)
    found = plane(*(np.array([x]) for x in (0.0, 0.0, scale, scale, c)))
    share = Fraction(c) / Fraction(scale)
    with mp.workdps(40):
        truth = mp.sqrt(mp.mpf(1) - (mp.mpf(share.numerator) / share.denominator) ** 2)
    assert found.kappa[0] == pytest.approx(float(truth), rel=1e-14)


def test_coefficients() -> None:
    assert coefficients((Z - 1) ** 3) == (-1, 3, -3, 1)
    assert coefficients(lookup("tanh")(Z)) is None
    assert coefficients(1 / Z) is None
    assert coefficients(Z**60) is None
    constant = coefficients(lookup("exp")(Z * 0 + 1) * Z)
    assert float(constant[1]) == np.e
    assert shifted((Fraction(1), Fraction(2), Fraction(3)), Fraction(2)) == (17, 14, 3)


def test_conditional_means_of_polynomials() -> None:
    """Against a sum over products of Gauss-Hermite nodes of the remaining direction."""
    mean, along, across, left = [0.3, -1.0], [0.5, 2.0], [1.5, 0.2], [0.7, -0.4]
    numbers = [(Fraction(1), Fraction(-2), Fraction(3)), (Fraction(0), Fraction(1), Fraction(1, 2))]
    surface = conditional_mean(
        numbers,
        [np.array(x) for x in mean],
        [np.array(x) for x in along],
        [np.array(x) for x in across],
        [[np.array(x * y) for y in left] for x in left],
    )
    z, w = 0.8, -1.1
    nodes, weights = np.polynomial.hermite_e.hermegauss(10)
    truth = 0.0
    for node, weight in zip(nodes, weights / np.sqrt(2 * np.pi), strict=True):
        product = weight
        for j in range(2):
            x = mean[j] + along[j] * z + across[j] * w + left[j] * node
            product *= sum(float(c) * x**k for k, c in enumerate(numbers[j]))
        truth += product
    found = sum(float(value) * z**a * w**b for (a, b), value in surface.items())
    assert found == pytest.approx(truth, rel=1e-12)


def test_features_of_functions() -> None:
    function = shape(lookup("tanh").function(3 * Z - 1))
    assert function.smooth
    assert [(f.place, f.unit) for f in function.features] == [
        (pytest.approx(1 / 3), pytest.approx(1 / 3))
    ]
    bent = shape(lookup("relu").function(Z**2 - 4))
    assert [f.place for f in bent.features if f.kink] == pytest.approx([-2.0, 2.0])
    nested = shape(lookup("tanh").function(lookup("abs").function(Z) - 1))
    assert [f.place for f in nested.features] == pytest.approx([-1.0, 0.0, 1.0])
    assert [f.kink for f in nested.features] == [False, True, False]
