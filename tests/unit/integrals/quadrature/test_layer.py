"""Rules for one layer: their numbers, errors and derivatives against the general quadrature."""

from __future__ import annotations

from fractions import Fraction
from math import acos, pi, sqrt
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.functions import Atom, Expr, Facts, Var
from tpcalc.functions.expr import const, substitute
from tpcalc.functions.fn import derivative
from tpcalc.integrals import exact
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature import carried_gap, expectation, layer_moments
from tpcalc.integrals.quadrature.angle import gap_by_angle
from tpcalc.integrals.quadrature.broken import broken_gap, broken_line
from tpcalc.integrals.quadrature.decay import shortfall
from tpcalc.integrals.quadrature.gap import _general
from tpcalc.integrals.quadrature.kink import centre, kink_gap
from tpcalc.integrals.quadrature.lattice import lattice_gap, lattice_moments
from tpcalc.integrals.quadrature.layer import direct_gap, prepared
from tpcalc.integrals.quadrature.nodes import Array
from tpcalc.integrals.quadrature.shape import shape

Z = Var(0)
SMOOTH = ["tanh", "softplus", "swish", "sigmoid", "gelu", "gaussian", "cos"]
KINKED = ["elu", "elu_slope", "even_tanh", "relu^2", "relu", "leaky_relu"]


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def _general_gap(expr: Expr, q: float, delta: float) -> tuple[float, float]:
    pair = prepared(expr)
    value, error = _general(pair.function, pair.slope, np.array([q]), np.array([delta]))
    return float(value[0]), float(error[0])


@pytest.mark.parametrize("q", [1e-4, 1.0, 30.0])
@pytest.mark.parametrize("name", [*SMOOTH, *KINKED, "sawtooth"])
def test_moments(name: str, q: float) -> None:
    expr = act(name)
    found = layer_moments(expr, q)
    slope = derivative(expr, Z)
    for factors, part in (((expr,), found.mean), ((expr,) * 2, found.square)):
        truth = expectation(factors, [0.0] * len(factors), [[q] * len(factors)] * len(factors))
        assert abs(part.value - truth.value) <= part.error + truth.error
    energy = expectation((slope, slope), [0.0, 0.0], [[q, q], [q, q]])
    assert abs(found.slope.value - energy.value) <= found.slope.error + energy.error
    assert found.square.error <= 1e-11 * found.square.value


@pytest.mark.parametrize("name", [*SMOOTH, *KINKED, "sawtooth"])
def test_moments_move_with_the_variance(name: str) -> None:
    q, step = 0.8, 1e-5
    at, low, high = (layer_moments(act(name), x) for x in (q, q - step, q + step))
    assert at is not None
    assert low is not None
    assert high is not None
    for here, left, right in zip(at, low, high, strict=True):
        change = (right.value - left.value) / (2 * step)
        assert here.by_variance == pytest.approx(change, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("q", "share"), [(1e-4, 0.3), (1.0, 1e-9), (1.0, 0.01), (20.0, 0.7)])
@pytest.mark.parametrize("name", ["tanh", "swish", "gaussian", "elu", "relu"])
def test_gaps_and_their_derivatives(name: str, q: float, share: float) -> None:
    expr, delta = act(name), share * q
    found = carried_gap(expr, q, delta)
    value, error = _general_gap(expr, q, delta)
    assert abs(found.value - value) <= found.error + error
    assert found.error <= 1e-12 * found.value
    for part, high, low, step in (
        (found.by_gap, (q, delta * (1 + 1e-5)), (q, delta * (1 - 1e-5)), 2e-5 * delta),
        (found.by_variance, (q * (1 + 1e-5), delta), (q * (1 - 1e-5), delta), 2e-5 * q),
    ):
        change = (carried_gap(expr, *high).value - carried_gap(expr, *low).value) / step
        assert part == pytest.approx(change, rel=1e-6, abs=1e-7 * found.value / q)


def test_a_kink_without_a_closed_form() -> None:
    expr = act("even_tanh")
    found, (value, error) = carried_gap(expr, 2.0, 2.0), _general_gap(expr, 2.0, 2.0)
    assert abs(found.value - value) <= found.error + error
    small = carried_gap(expr, 2.0, 2e-24)
    moments = layer_moments(expr, 2.0)
    assert small.value == pytest.approx(2e-24 * moments.slope.value, rel=1e-11)


@pytest.mark.parametrize("place", [0.7, -2.0])
def test_a_kink_beside_the_mean(place: float) -> None:
    expr = substitute(act("elu"), {Z: Z - const(place)})
    for q, delta in ((1.0, 1e-6), (1.0, 0.4), (3.0, 3.0)):
        found, (value, error) = carried_gap(expr, q, delta), _general_gap(expr, q, delta)
        assert abs(found.value - value) <= found.error + error
        assert found.error <= 1e-12 * found.value


def _clip(xp: Any, x: Any) -> Any:
    return np.clip(x, -0.7, 0.7)


def _inside(xp: Any, x: Any) -> Any:
    return np.where(np.abs(x) < 0.7, 1.0, 0.0)


def test_broken_lines() -> None:
    kinks = (-0.7, 0.7)
    window = Atom("window", _inside, None, Facts(parity="even", kinks=kinks, growth=Fraction(0)))
    clip = Atom("clipped", _clip, window, Facts(parity="odd", kinks=kinks, growth=Fraction(0)))(Z)
    for q, delta in ((1.0, 1e-12), (1.0, 0.3), (0.01, 0.004)):
        found, (value, error) = carried_gap(clip, q, delta), _general_gap(clip, q, delta)
        assert abs(found.value - value) <= found.error + error
        assert found.error <= 2e-14 * found.value
    inside = float(mp.erf(mp.mpf(0.7) / mp.sqrt(2)))
    assert carried_gap(clip, 1.0, 1e-12).by_gap == pytest.approx(inside, rel=1e-5)


def test_what_is_no_broken_line() -> None:
    for name in ("elu", "even_tanh", "tanh", "relu^2"):
        function, slope = shape(act(name)), shape(derivative(act(name), Z))
        assert function is not None
        assert slope is not None
        assert broken_line(function, slope) is None


def test_a_line_known_up_to_a_reach_is_left_beyond_it() -> None:
    pair = prepared(act("sawtooth"))
    assert broken_gap(pair.line, 1.0, 0.5) is not None
    assert broken_gap(pair.line, pair.line.reach**2, 0.5) is None


@pytest.mark.parametrize("share", [1e-24, 1e-10, 0.2, 1.4])
def test_three_ways_of_relu(share: float) -> None:
    """Between kinks, on both sides of them, and by the angle: the same number."""
    pair = prepared(act("relu"))
    assert pair.line is not None
    assert pair.slope is not None
    moments = layer_moments(act("relu"), 1.0)
    assert moments is not None
    line = broken_gap(pair.line, 1.0, share)
    sides = kink_gap(pair.function, pair.slope, 0.0, (1.0, share), moments)

    def product(q: Array, c: Array) -> Bounded | None:
        return exact.expectation((act("step"),) * 2, [0.0, 0.0], [[q, c], [c, q]])

    angle = gap_by_angle(product, 1.0, share, 1.0)
    assert abs(line.value - sides.value) <= line.error + sides.error
    assert abs(line.value - angle.value) <= line.error + angle.error
    slope = 0.5 - acos(1.0 - share) / (2 * pi)
    for found in (line, sides, angle):
        assert found.by_gap == pytest.approx(slope, rel=1e-7, abs=1e-12)


def test_a_lattice_says_where_it_is_too_coarse() -> None:
    """A spike that the unit of the function does not tell of is seen by the decay of the sums."""
    spike = Atom("spiky", lambda xp, x: 1 / (1 + 400 * x * x), None, Facts(parity="even"))(Z)
    function, flat = shape(spike), shape(const(1) * Z)
    assert function is not None
    assert flat is not None
    found = lattice_moments(function, flat, 1.0)
    truth = mp.quad(
        lambda z: mp.npdf(z) / (1 + 400 * z * z), [-mp.inf, -1, -0.05, 0, 0.05, 1, mp.inf]
    )
    assert found is None or abs(found.mean.value - float(truth)) <= found.mean.error
    assert lattice_gap(function, flat, 1e8, 1e8) is None


def test_the_decay_of_errors() -> None:
    assert shortfall(1.0, 1e-3, 1e-3) == pytest.approx(1e-3)
    assert shortfall(1.0, 1e-8, 1e-4) == pytest.approx(4e-12)
    assert shortfall(1.0, 1e-8, 1e-4) >= (1e-4) ** 4


def test_places_where_functions_vary() -> None:
    two = act("relu") + substitute(act("relu"), {Z: Z - 1})
    for expr, place in ((act("tanh"), 0.0), (act("elu"), 0.0), (two, None)):
        function, slope = shape(expr), shape(derivative(expr, Z))
        assert function is not None
        assert slope is not None
        assert centre(function, slope) == place


def test_no_answer_depends_on_what_was_computed_before() -> None:
    pair = prepared(act("swish"))
    assert pair is not None
    numbers = [(1.0, 0.3), (1.0000001, 0.3), (1e-3, 1e-9), (400.0, 3.0), (2e4, 40.0)]
    first = [direct_gap(pair, *one) for one in numbers]
    again = [direct_gap(pair, *one) for one in reversed(numbers)][::-1]
    assert first == again


@pytest.mark.parametrize("q", [1e3, 1e6])
@pytest.mark.parametrize("name", ["swish", "softplus", "tanh"])
def test_wide_gaussians(name: str, q: float) -> None:
    """Far from 0 swish and softplus are relu, tanh is a sign: corrections fall as 1 / sqrt(q)."""
    found = carried_gap(act(name), q, 0.3 * q)
    limit = act("sign" if name == "tanh" else "relu")
    truth = carried_gap(limit, q, 0.3 * q)
    assert found.error <= 1e-11 * found.value
    assert found.value == pytest.approx(truth.value, rel=4 / sqrt(q))
