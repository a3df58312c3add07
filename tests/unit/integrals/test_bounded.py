"""Numbers with bounds: what is true of the centre's neighbours stays within the bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded, bounded, through
from tpcalc.results import Estimate, Method, Status

VALUES = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 6))
ERRORS = st.floats(0, 0.5).map(lambda x: round(x, 6))
SHARES = st.floats(-1, 1)


@given(VALUES, ERRORS, SHARES, VALUES, ERRORS, SHARES)
@example(0.0, 0.5, 1.0, 0.0, 0.5, 1.0)
def test_sums_and_products_hold_all_neighbours(
    a: float, e: float, s: float, b: float, f: float, t: float
) -> None:
    left, right = Bounded(a, e), Bounded(b, f)
    x, y = Fraction(a) + Fraction(e) * Fraction(s), Fraction(b) + Fraction(f) * Fraction(t)
    for found, true in ((left + right, x + y), (left - right, x - y), (left * right, x * y)):
        slack = 1e-12 * (1 + abs(float(true)))
        assert abs(float(true) - found.value) <= found.error + slack


@given(VALUES, ERRORS, SHARES, st.floats(0.6, 50), ERRORS, SHARES, st.sampled_from([1, -1]))
def test_quotients_hold_all_neighbours(
    a: float, e: float, s: float, b: float, f: float, t: float, sign: int
) -> None:
    left, right = Bounded(a, e), Bounded(sign * b, f)
    true = (Fraction(a) + Fraction(e) * Fraction(s)) / (sign * Fraction(b) + Fraction(f * t))
    found = left / right
    assert abs(true - Fraction(found.value)) <= Fraction(found.error) * (1 + Fraction(1, 10**12))
    assert (1.0 / right).value == right.inverse().value


def test_quotients_of_tiny_numbers_and_by_what_may_be_zero() -> None:
    assert (Bounded(1e-300) / Bounded(4e-300)).value == 0.25
    assert (Bounded(1.0) / Bounded(3.0)).error > 0  # no float is a third
    assert (Bounded(0.0) / Bounded(3.0)).is_zero
    with pytest.raises(EvaluationError, match="that divides is"):
        Bounded(1.0) / Bounded(1e-9, 1e-8)


@given(st.floats(0.01, 50), ERRORS, SHARES, st.sampled_from([1, 2, Fraction(1, 2), 4]))
def test_powers_hold_all_neighbours(a: float, e: float, s: float, r: Fraction) -> None:
    found = Bounded(a, e).power(r)
    near = max(a + e * s, 0.0)
    assert abs(near ** float(r) - found.value) <= found.error + 1e-12 * (1 + found.value)


def test_powers_keep_the_sign() -> None:
    assert Bounded(-2.0).power(2).value == -4.0
    assert Bounded(-2.0).power(0) == Bounded(1.0)
    assert (-Bounded(-2.0, 0.25)).root().value == math.sqrt(2)
    for number in (2.0, 0.1, 7.3):  # the square of the second is 0.1 again, but for rounding
        found = Bounded(number).root()
        assert abs(Fraction(found.value) ** 2 - Fraction(number)) <= 2 * found.value * found.error
    assert [Bounded(number).root().error for number in (0.0, 0.25, 4.0)] == [0.0] * 3


def test_what_is_known_to_be_zero_stays_so() -> None:
    sampled = Bounded(3.0, 0.1, Method.PARTICLES, seed=4)
    nothing = Bounded(0.0)
    assert (sampled * nothing).estimate() == Estimate(0.0, 0.0, Method.EXACT, Status.EXACT)
    assert not (sampled * Bounded(0.0, 0.1)).is_zero
    assert not (sampled - sampled).is_zero


def test_the_least_exact_method_and_its_seed_are_kept() -> None:
    sampled = Bounded(3.0, 0.1, Method.PARTICLES, seed=4)
    found = (2.0 * sampled + Bounded(1.0, 1e-9, Method.QUADRATURE)).estimate()
    assert (found.method, found.seed) == (Method.PARTICLES, 4)
    assert found.stderr == pytest.approx(0.2, rel=1e-6)


def test_through_adds_the_shifts_of_all_arguments() -> None:
    def product(x: float, y: float) -> Estimate:
        return Estimate(x * y, 0.001, Method.QUADRATURE)

    found = through(product, Bounded(2.0, 0.01), Bounded(5.0, 0.1))
    assert found.error == pytest.approx(0.001 + 0.05 + 0.2)
    assert found.method is Method.QUADRATURE


def test_through_knows_zeros_of_closed_forms() -> None:
    nothing = Estimate(0.0, 0.0, Method.EXACT, Status.EXACT)
    inexact = Bounded(2.0, 0.01, Method.PARTICLES)
    assert through(lambda x: nothing, inexact).is_zero
    assert not through(lambda x: Estimate(x - 2.0, 0.0, Method.EXACT), inexact).is_zero


def test_fractions_that_no_float_is_carry_their_rounding() -> None:
    third = bounded(Fraction(1, 3))
    assert abs(Fraction(third.value) - Fraction(1, 3)) <= Fraction(third.error)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bounded(1e200) * Bounded(1e200),
        lambda: Bounded(1e-200) * Bounded(1e-200),
        lambda: Bounded(1e200).power(2),
        lambda: Bounded(1e-200).power(2),
        lambda: Bounded(1e308) + Bounded(1e308),
        lambda: Bounded(1.0, math.inf) * 2.0,
    ],
)
def test_infinity_and_a_zero_that_is_none_are_refused(make: Callable[[], Bounded]) -> None:
    with pytest.raises(EvaluationError, match="floating-point range"):
        make()
