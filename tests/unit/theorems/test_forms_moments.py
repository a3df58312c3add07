"""Moments of activations, and the sizes of the scale-free first pass."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.results import Method
from tpcalc.theorems.integrable.forms.moments import (
    half_square,
    mu,
    orthant,
    second_moment,
    slope_second_moment,
    stable_std,
    tilde_variances,
)
from tpcalc.theorems.integrable.forms.nonlinearity import nonlinearity


@pytest.mark.parametrize("r", [0, 1, 2, 3, 4, 6, Fraction(5, 2), 0.5, 7.5, 40, 200])
def test_mu(r: float) -> None:
    """Samples would miss the tail that carries those of high order."""
    gamma = 2 ** (float(r) / 2 - 1) * math.gamma((float(r) + 1) / 2) / math.sqrt(math.pi)
    assert float(mu(r)) == pytest.approx(gamma, rel=1e-13)
    assert mu(r).value.method is Method.EXACT


@pytest.mark.parametrize(
    ("act", "alpha", "beta", "p"),
    [
        ("relu", 1, 0, 1),
        ("leaky_relu:-0.3", 1, 0.3, 1),
        ("relu^2", 1, 0, 2),
        ("relu^3", 1, 0, 3),
    ],
)
@pytest.mark.parametrize("variance", [0.5, 1.0, 2.25])
def test_second_moments_of_powers(
    act: str, alpha: float, beta: float, p: int, variance: float
) -> None:
    """(alpha^2 + beta^2) V^(2p) mu_{2p}, and p^2 V^(2p-2) mu_{2p-2} for the slope."""
    both = alpha**2 + beta**2
    square = both * variance**p * float(mu(2 * p))
    slope = both * p**2 * variance ** (p - 1) * float(mu(2 * p - 2))
    assert float(second_moment(act, variance)) == pytest.approx(square, rel=1e-12)
    assert float(slope_second_moment(act, variance)) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("rho", [-1.0, -0.7, 0.0, 0.3, 1.0])
def test_S0_32_of_two_gaussians(rho: float) -> None:
    half = 1.7 / (2 * math.pi) * (rho * math.sqrt(1 - rho**2) + math.acos(-rho))
    assert float(half_square(rho, 1.7)) == pytest.approx(half, abs=1e-14)
    assert float(orthant(rho)) == pytest.approx(0.25 + math.asin(rho) / (2 * math.pi), abs=1e-14)


def test_S0_12_32_sizes_of_relu() -> None:
    """Appendix M: sigma_0^2 / 2^(l-1), and 2^-(L-l)."""
    found = tilde_variances("relu", 4, 1.74)
    for place in range(4):
        agree(found.h[place].value, 1.74 / 2**place)
        agree(found.dx[place].value, 2.0 ** -(3 - place))
        agree(found.dh[place].value, 2.0 ** -(4 - place))


def test_S0_12_sizes_of_what_is_linear_near_zero() -> None:
    """Layer 1 sees the activation itself, the others its slope at 0."""
    found = tilde_variances("gelu", 3, 1.2)
    first = tp.expect(lambda z: tp.gelu(z) ** 2, 1.2)
    agree(found.h[1].value, first)
    agree(found.h[2].value, first.value / 4)
    agree(found.dx[0].value, 1 / 16)


@pytest.mark.parametrize(
    ("act", "std"),
    [
        ("relu", math.sqrt(2)),
        ("gelu", 2),
        ("elu", 1),
        ("tanh", 1),
        ("linear", 1),
        ("leaky_relu:0.5", math.sqrt(1.6)),
    ],
)
def test_S0_32_stable_std_keeps_the_size(act: str, std: float) -> None:
    assert float(stable_std(act)) == pytest.approx(std, rel=1e-14)


@pytest.mark.parametrize("act", ["relu^2", "sigmoid", "selu"])
def test_no_stable_std(act: str) -> None:
    with pytest.raises(UsageError, match="no standard deviation"):
        stable_std(act)


def test_what_an_activation_is() -> None:
    own = nonlinearity(lambda z: tp.relu(z) ** 2 + 0.3 * tp.relu(-z) ** 2)
    assert (own.degree, own.right, own.left, own.slope_at_zero) == (Fraction(2), 1.0, 0.3, 0.0)
    assert nonlinearity(lambda z: z + tp.tanh(z)).linearizable
    assert nonlinearity(lambda z: tp.relu(z) + tp.tanh(z)).slope_at_zero is None
    assert nonlinearity(lambda z: 1 + z).degree is None
    assert nonlinearity("leaky_relu:1").slope_at_zero == 1.0


def test_refusals() -> None:
    with pytest.raises(UsageError, match="no values"):
        second_moment("relu^p")
    with pytest.raises(UsageError, match=r"variance is -1.0; it must be at least 0"):
        second_moment("relu", -1.0)
    with pytest.raises(UsageError, match=r"rho is 1.5; it must be at most 1"):
        orthant(1.5)
    with pytest.raises(UsageError, match="r is -1; it must be at least 0"):
        mu(-1)
    with pytest.raises(UsageError, match="no scale-free pass"):
        tilde_variances("sigmoid", 3, 1.0)
    with pytest.raises(UsageError, match="depth"):
        tilde_variances("relu", 0, 1.0)
    with pytest.raises(EvaluationError, match="floating-point range"):
        mu(400)
