"""E f(u): every activation against integration in 40 digits, and functions that need care."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import cycle
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.functions import Atom, Expr, Facts, Var
from tpcalc.integrals.quadrature import expectation, supported

Z = Var(0)
TANH, RELU, ABS, STEP, SIN, EXP, LOG = (
    lookup(name).function for name in ("tanh", "relu", "abs", "step", "sin", "exp", "log")
)
ALPHA, SCALE = mp.mpf(1.6732632423543772), mp.mpf(1.0507009873554805)


def _power(p: str) -> Callable[[Any], Any]:
    return lambda x: x ** mp.mpf(p) if x > 0 else mp.mpf(0)


TRUTH: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: max(x, mp.mpf(0)),
    "abs": abs,
    "step": lambda x: mp.mpf(x > 0),
    "sign": mp.sign,
    "leaky_relu": lambda x: x if x > 0 else x * mp.mpf(0.01),
    "relu^1/2": _power("0.5"),
    "relu^3/2": _power("1.5"),
    "relu^2": _power("2"),
    "relu^3": _power("3"),
    "elu": lambda x: x if x > 0 else mp.expm1(x),
    "selu": lambda x: SCALE * (x if x > 0 else ALPHA * mp.expm1(x)),
    "gelu": lambda x: x * mp.ncdf(x),
    "erf": mp.erf,
    "sin": mp.sin,
    "cos": mp.cos,
    "exp": mp.exp,
    "softplus": lambda x: mp.log1p(mp.exp(x)) if x < 60 else x + mp.exp(-x),
    "swish": lambda x: x / (1 + mp.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "tanh": mp.tanh,
    "normal_pdf": mp.npdf,
    "normal_cdf": mp.ncdf,
}
GAUSSIANS = [(0.0, 1.0), (0.0, 1e-12), (0.0, 1e6), (0.3, 2.0), (-1.7, 0.04), (5.0, 1.0)]


def exact(values: Callable[[Any], Any], mean: float, variance: float, *places: Any) -> Any:
    """E f(u) in 40 digits, with the axis cut around the places where f bends."""
    with mp.workdps(40):
        spread, mean = mp.sqrt(mp.mpf(variance)), mp.mpf(mean)
        ends = {mp.mpf(k) for k in range(-16, 17, 2)}
        for place in (0, *places):
            centre = (place - mean) / spread
            ends |= {
                centre + sign * step
                for sign in (1, -1)
                for step in (mp.mpf(0), *(mp.mpf(3) ** k / spread for k in range(14)))
                if abs(centre + sign * step) < 16
            }
        # mpmath stops at an absolute error, so the integrand is brought to order one.
        size = abs(values(mean + spread * mp.mpf("1.37"))) or mp.mpf(1)
        return size * mp.quad(lambda t: values(mean + spread * t) / size * mp.npdf(t), sorted(ends))


def agree(factor: Expr, mean: float, variance: float, truth: Any, accuracy: float = 1e-12) -> None:
    """The value is as near to the truth as it says, and says no more than was promised."""
    found = expectation([factor], [mean], [[variance]])
    assert abs(found.value - truth) <= found.error
    scale = expectation([factor * factor], [mean], [[variance]])
    size = abs(truth) if scale is None else np.sqrt(scale.value)
    assert found.error <= accuracy * max(size, abs(truth))


# Each function with half of the Gaussians, by turns.
TURNS = [(name, pair) for i, name in enumerate(TRUTH) for pair in GAUSSIANS[i % 2 :: 2]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gaussian"), TURNS)
def test_moments_of_activations(name: str, gaussian: tuple[float, float]) -> None:
    mean, variance = gaussian
    if name in ("exp", "sin", "cos"):
        variance = min(variance, 2.0)
    factor, values = lookup(name)(Z), TRUTH[name]
    agree(factor, mean, variance, exact(values, mean, variance))
    agree(factor * factor, mean, variance, exact(lambda x: values(x) ** 2, mean, variance))
    agree(Z * factor, mean, variance, exact(lambda x: x * values(x), mean, variance))


def _clip(xp: Any, x: Any) -> Any:
    return xp.maximum(xp.minimum(x, 0.7), -0.7)


CLIP = Atom("clip", _clip, None, Facts(parity="odd", kinks=(-0.7, 0.7), growth=Fraction(0)))


@pytest.mark.parametrize("variance", [1e-4, 1.0, 1e4])
def test_kinks_that_a_user_declares(variance: float) -> None:
    low, high = mp.mpf(-0.7), mp.mpf(0.7)
    truth = exact(lambda x: max(min(x, high), low) ** 2, 0.2, variance, low, high)
    agree(CLIP(Z) ** 2, 0.2, variance, truth, 1e-10)


def test_kinks_that_nobody_declares_are_noticed() -> None:
    smooth = Atom("clipped", _clip, None, Facts(parity="odd", growth=Fraction(0)))
    low, high = mp.mpf(-0.7), mp.mpf(0.7)
    truth = exact(lambda x: max(min(x, high), low) ** 2, 0.2, 1.0, low, high)
    found = expectation([smooth(Z) ** 2], [0.2], [[1.0]])
    assert found is None or abs(found.value - truth) <= found.error


COMPOSED: dict[str, tuple[Expr, Callable[[Any], Any], tuple[Any, ...]]] = {
    "tanh(|z| - 1)": (TANH(ABS(Z) - 1), lambda x: mp.tanh(abs(x) - 1), (1, -1)),
    "relu(z^2 - 1)": (RELU(Z**2 - 1), lambda x: max(x * x - 1, mp.mpf(0)), (1, -1)),
    "step(z^2 - 1)": (STEP(Z**2 - 1), lambda x: mp.mpf(x * x > 1), (1, -1)),
    "exp(-z^2)": (EXP(-(Z**2)), lambda x: mp.exp(-x * x), ()),
    "log|z|": (LOG(ABS(Z)), lambda x: mp.log(abs(x)), ()),
    "log|z - 1|": (LOG(ABS(Z - 1)), lambda x: mp.log(abs(x - 1)), (1,)),
    "|z|^(-1/2)": (ABS(Z) ** Fraction(-1, 2), lambda x: abs(x) ** mp.mpf(-0.5), ()),
    "sqrt(1 + z^2)": ((1 + Z**2) ** Fraction(1, 2), lambda x: mp.sqrt(1 + x * x), ()),
    "1 / (1 + z^2)": (1 / (1 + Z**2), lambda x: 1 / (1 + x * x), ()),
    "relu(tanh(3 z) - 1/2)": (
        RELU(TANH(3 * Z) - Fraction(1, 2)),
        lambda x: max(mp.tanh(3 * x) - mp.mpf(0.5), mp.mpf(0)),
        (mp.atanh(0.5) / 3,),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "gaussian"), [*zip(COMPOSED, cycle([(0.0, 1.0), (0.5, 1.0), (0.0, 400.0)]))]
)
def test_compositions(name: str, gaussian: tuple[float, float]) -> None:
    factor, values, places = COMPOSED[name]
    truth = exact(values, *gaussian, *places)
    found = expectation([factor], list(gaussian[:1]), [[gaussian[1]]])
    # Tanh-sinh of an inverse root at a point that is not a float keeps 20 of 40 digits.
    assert abs(found.value - truth) <= found.error
    assert found.error <= 1e-10 * max(abs(truth), 0.1)


def test_fast_oscillations() -> None:
    found = expectation([SIN(1000 * Z) ** 2], [0.0], [[1.0]])
    assert found is None or abs(found.value - 0.5) <= found.error <= 1e-12
    assert expectation([SIN(10**7 * Z) ** 2], [0.0], [[1.0]]) is None


def test_mass_far_out() -> None:
    # E relu(z - 30) = phi(30) - 30 Phi(-30)
    with mp.workdps(40):
        truth = mp.npdf(30) - 30 * mp.ncdf(-30)
    found = expectation([RELU(Z - 30)], [0.0], [[1.0]])
    assert abs(found.value - truth) <= found.error <= 1e-10 * truth


@pytest.mark.parametrize(
    "factor",
    [1 / Z, Z**-2, LOG(Z), Z ** Fraction(1, 2), EXP(Z**2), EXP(Z**2 / 2), EXP(Z**3 / 1000)],
)
def test_no_finite_mean(factor: Expr) -> None:
    assert expectation([factor], [0.0], [[1.0]]) is None


def test_growth_that_still_has_a_mean() -> None:
    agree(EXP(Z**2 / 4), 0.0, 1.0, mp.sqrt(2))
    agree(EXP(5 * Z), 0.0, 1.0, mp.exp(mp.mpf(12.5)))
    assert expectation([EXP(Z)], [0.0], [[1e4]]) is None


def test_constant_gaussian() -> None:
    agree(LOG(Z), 3.0, 0.0, mp.log(3))
    agree(RELU(Z), -1.0, 0.0, 0)
    assert expectation([LOG(Z)], [-3.0], [[0.0]]) is None


def test_arrays_equal_their_entries() -> None:
    means, variances = np.array([[0.0], [0.5]]), np.array([1.0, 2.0, 1.0])
    found = expectation([TANH(Z) ** 2], [means], [[variances]])
    assert found.value.shape == (2, 3)
    for i, mean in enumerate(means[:, 0]):
        for j, variance in enumerate(variances):
            alone = expectation([TANH(Z) ** 2], [mean], [[variance]])
            assert found.value[i, j] == pytest.approx(float(alone.value), rel=1e-14)


def test_what_is_not_supported() -> None:
    hidden = Atom("hidden", lambda xp, x: x, None, Facts(), (1,))
    assert not supported([hidden(Z)])
    assert not supported([lookup("relu^p").fn.expr])
    assert not supported([Var(1)])
    assert not supported([TANH(Z)] * 3)
    assert not supported([STEP(TANH(Z) - Fraction(1, 2))])
    assert supported([TANH(Z), Z**2, RELU(Z), 1 + Z])
    assert expectation([TANH(Z)] * 3, [0.0] * 3, np.eye(3).tolist()) is None
