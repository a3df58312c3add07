"""E f(u)^2 - E f(u) f(v) where u and v nearly agree: no digits are lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from unit.integrals.quadrature.test_one_variable import CLIP

from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError
from tpcalc.functions import Var
from tpcalc.integrals.quadrature import expectation, gap

Z = Var(0)


def _relu(q: Any, delta: Any) -> Any:
    angle = mp.acos(1 - delta / q)
    return q / 2 - q / (2 * mp.pi) * (mp.sin(angle) + (mp.pi - angle) * mp.cos(angle))


def _squared_relu(q: Any, delta: Any) -> Any:
    a = mp.acos(1 - delta / q)
    own = 3 * mp.sin(a) * mp.cos(a) + (mp.pi - a) * (1 + 2 * mp.cos(a) ** 2)
    return q**2 / (2 * mp.pi) * (3 * mp.pi - own)


def _erf(q: Any, delta: Any) -> Any:
    return 2 / mp.pi * (mp.asin(2 * q / (1 + 2 * q)) - mp.asin(2 * (q - delta) / (1 + 2 * q)))


CLOSED: dict[str, Callable[[Any, Any], Any]] = {
    "relu": _relu,
    "relu^2": _squared_relu,
    "erf": _erf,
    "step": lambda q, delta: mp.acos(1 - delta / q) / (2 * mp.pi),
    "sign": lambda q, delta: 2 * mp.acos(1 - delta / q) / mp.pi,
    "exp": lambda q, delta: mp.exp(2 * q) - mp.exp(2 * q - delta),
    "sin": lambda q, delta: mp.exp(-q) * (mp.sinh(q) - mp.sinh(q - delta)),
}
SHARES = [1e-24, 1e-16, 1e-12, 1e-9, 1e-7, 1e-4, 0.03, 0.5, 1.0, 1.9]


@pytest.mark.parametrize("q", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name: str, q: float) -> None:
    q = min(q, 2.0) if name in ("exp", "sin") else q
    delta = q * np.array(SHARES)
    found = gap(lookup(name)(Z), q, delta)
    with mp.workdps(80):
        for k, one in enumerate(delta):
            truth = CLOSED[name](mp.mpf(q), mp.mpf(float(one)))
            assert abs(mp.mpf(float(found.value[k])) - truth) <= found.error[k]
            assert found.error[k] <= 1e-11 * truth


SMOOTH = ["tanh", "softplus", "swish", "gelu", "elu", "relu^3/2", "leaky_relu", "abs"]
ROUGH = ["relu^1/2", "relu^3/4", "relu^5/4", "selu_slope", "normal_pdf"]


@pytest.mark.parametrize("share", [1e-3, 0.3, 0.6, 1.5])
@pytest.mark.parametrize("q", [0.25, 50.0])
@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
def test_large_gaps_are_differences(name: str, q: float, share: float) -> None:
    factor, delta = lookup(name)(Z), share * q
    found = gap(factor, q, delta)
    first = expectation([factor * factor], [0.0], [[q]])
    second = expectation([factor, factor], [0.0, 0.0], [[q, q - delta], [q - delta, q]])
    slack = found.error + first.error + second.error
    assert abs(found.value - (first.value - second.value)) <= slack


@pytest.mark.parametrize("share", [1e-24, 1e-14])
@pytest.mark.parametrize("name", SMOOTH)
def test_small_gaps_are_slopes(name: str, share: float) -> None:
    """The gap falls to delta E f'^2, less a part of order delta^(3/2) at kinks."""
    function = lookup(name)
    slope = function.fn.by(0).expr
    energy = expectation([slope * slope], [0.0], [[1.0]])
    found = gap(function(Z), 1.0, share)
    assert found.error <= 1e-10 * found.value
    assert found.value == pytest.approx(share * energy.value, rel=2 * share**0.5 + 1e-13)


def test_kinks_of_a_user_without_a_derivative() -> None:
    """Clipping at 0.7: the slope is 1 inside, so the gap is delta P(|z| < 0.7) to first order."""
    inside = float(mp.erf(mp.mpf(0.7) / mp.sqrt(2)))
    for delta in (1e-10, 1e-7):
        found = gap(CLIP(Z), 1.0, delta)
        assert found.error <= 1e-8 * found.value
        assert found.value == pytest.approx(delta * inside, rel=2 * delta**0.5)


def test_an_unbounded_slope_says_what_it_loses() -> None:
    root = lookup("relu^1/2")(Z)
    near, far = gap(root, 1.0, 1e-24), gap(root, 1.0, 1e-6)
    assert far.error <= 1e-11 * far.value
    assert 1e-8 * near.value < near.error < 1e-3 * near.value
    # q scales out of a homogeneous function.
    scaled = gap(root, 4.0, 4e-24)
    assert abs(scaled.value - 2.0 * near.value) <= scaled.error + 2.0 * near.error


def test_polynomials_and_zero() -> None:
    assert gap(Z, 1.0, 1e-30).value == pytest.approx(1e-30, rel=1e-14)
    # E (u^2)^2 - E u^2 v^2 = 2 (q^2 - c^2)
    assert gap(Z**2, 1.0, 1e-20).value == pytest.approx(4e-20, rel=1e-14)
    assert gap(lookup("tanh")(Z), 1.0, 0.0).value == 0.0
    assert gap(lookup("tanh")(Z), 0.0, 0.0).value == 0.0


def test_arrays_equal_their_entries() -> None:
    q, delta = np.array([[1.0], [2.0]]), np.array([1e-20, 0.1, 1e-20])
    found = gap(lookup("tanh")(Z), q, delta)
    assert found.value.shape == (2, 3)
    alone = gap(lookup("tanh")(Z), 2.0, 0.1)
    assert found.value[1, 1] == pytest.approx(float(alone.value), rel=1e-13)


@pytest.mark.parametrize(("q", "delta"), [(1.0, -1e-9), (-1.0, 0.1), (1.0, 2.1), (np.nan, 0.1)])
def test_what_is_no_gap(q: float, delta: float) -> None:
    with pytest.raises(EvaluationError):
        gap(lookup("tanh")(Z), q, delta)


def test_functions_that_it_does_not_take() -> None:
    with pytest.raises(EvaluationError, match="does not take"):
        gap(lookup("relu^p")(Z), 1.0, 0.1)
