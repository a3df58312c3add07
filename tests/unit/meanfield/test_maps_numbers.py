"""Roots and averages under the maps: what they find lies within the error that they claim."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.integrals.activation_moments import gaps, means, square_growth
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.maps.fixed_lengths import fixed_lengths
from tpcalc.meanfield.maps.roots import log_root, rate, scale


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("root", [1e-9, 0.3, 1.0])
def test_a_falling_root_lies_within_its_error(root: float, noise: float) -> None:
    """Also where the function itself errs by as much as it says."""
    rng = np.random.default_rng(0)

    def falling(x: float) -> Bounded:
        return Bounded(log(root / x) + noise * float(rng.uniform(-1, 1)), noise + 1e-15)

    found = log_root(falling, 1e-15, 2.0)
    assert abs(found.value - root) <= found.error <= 20 * (noise + 1e-14) * root


def test_a_root_of_a_flat_function_says_how_flat_it_is() -> None:
    found = log_root(lambda x: Bounded((log(x)) ** 3, 1e-9), 0.5, 3.0)
    assert abs(found.value - 1.0) <= found.error
    assert 1e-3 < found.error < 1e-2  # the cube is below 1e-9 within 1e-3 of the root


def test_rates_of_what_may_be_zero() -> None:
    assert rate(Bounded(0.0)).value == inf and rate(Bounded(0.0)).error == 0
    assert rate(Bounded(1e-20, 1e-18)).error == inf
    assert scale(Bounded(0.0)).layers == 0
    unsure = scale(Bounded(1.0, 1e-9))
    assert unsure.layers == inf and unsure.least == pytest.approx(1e9, rel=1e-6)
    growing = scale(Bounded(1.5, 1e-3))
    low, high = -1 / log(1.501), -1 / log(1.499)
    assert growing.layers < 0 and growing.layers - growing.error <= high <= low


def test_gaps_are_one_function_wherever_they_are_taken() -> None:
    """Differences of averages and integrals of their own meet, and agree with a closed form."""
    x = np.geomspace(1e-12, 1.0, 13)
    found = gaps(lookup("erf").fn.expr, 0.5, 0.5 * x)
    # arcsin a - arcsin b is arcsin of (a^2 - b^2) / (a sqrt(1 - b^2) + b sqrt(1 - a^2)).
    b = (1 - x) / 2
    square = (2 * x - x * x) / 4  # 1/4 - b^2 without loss
    expected = 2 / np.pi * np.arcsin(square / (np.sqrt(1 - b * b) / 2 + b * np.sqrt(0.75)))
    assert (np.abs(found.value - expected) <= found.error + 1e-14 * expected).all()
    assert (found.error <= 1e-9 * found.value).all()


def test_the_slope_of_a_length_map_with_kinks() -> None:
    """A tenth of the difference quotient's error at most, for kinks, bends and constants."""
    for name in ("relu", "gelu", "tanh", "sigmoid", "abs"):
        tau = lookup(name).fn.expr
        above, below = means((tau, tau), np.array([0.7001, 0.6999])).value
        found = square_growth(tau, Bounded(0.7))
        assert found.value == pytest.approx((above - below) / 0.0002, rel=1e-6)


def test_fixed_points_between_points_of_the_grid() -> None:
    """A map that touches the identity from above and dips below it for a little while."""

    def ratio(q: float) -> float:
        return 1 + (log(q) - 0.5) ** 2 - 1e-4

    found = fixed_lengths(
        lambda q: Bounded(q * (1 + (np.log(q) - 0.5) ** 2 - 1e-4), 1e-15 * q),
        lambda q: Bounded(q * ratio(q), 1e-15 * q),
        lambda q: Bounded(ratio(q.value) + 2 * (log(q.value) - 0.5)),
    )
    squares = [point.square.value for point in found.points]
    assert squares == pytest.approx([np.exp(0.49), np.exp(0.51)], rel=1e-9)
    assert [point.kind for point in found.points] == ["stable", "unstable"]
    assert found.grow and found.reached(0.1).square.value == pytest.approx(np.exp(0.49))
