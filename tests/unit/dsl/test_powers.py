"""Powers of n and L."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.dsl import L, Power, n, symbol
from tpcalc.errors import TraceError
from tpcalc.exponents import Ex

exponents = st.fractions(min_value=-4, max_value=4, max_denominator=12)
powers = st.builds(
    lambda a, b, c: c * n**a * L**b, exponents, exponents, exponents.filter(lambda c: c != 0)
)


@pytest.mark.parametrize(
    ("given_exponent", "expected"),
    [
        (-1, -1),
        (Fraction(1, 2), Fraction(1, 2)),
        ("1/2", Fraction(1, 2)),
        ("-0.5", Fraction(-1, 2)),
        (-0.5, Fraction(-1, 2)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.25), Fraction(1, 4)),
        (np.int64(3), 3),
        (0, 0),
    ],
)
def test_exponents_are_exact(given_exponent: Any, expected: Any) -> None:
    assert n**given_exponent == Power(Ex.number(expected))


def test_symbols() -> None:
    a = symbol("a")
    power = n ** (Fraction(1, 2) * a - 1) * n**a
    assert power.n_power == Fraction(3, 2) * a - 1
    assert str((2 * n**a / L) ** 2) == "4*n**(2*a)*L**-2"
    assert (n**a) ** a == n ** (a * a)


@given(powers, powers, powers)
def test_powers_form_a_group(a: Power, b: Power, c: Power) -> None:
    assert a * b == b * a
    assert (a * b) * c == a * (b * c)
    assert a / b == a * b**-1
    assert a / a == n**0 == 1 / (a / a)
    assert (a * b) ** 2 == a**2 * b**2
    assert hash(a * b) == hash(b * a)


@given(powers, st.sampled_from([2, -3, Fraction(1, 3), 0.5]))
def test_numbers_multiply(power: Power, number: Any) -> None:
    assert number * power == power * number
    assert (power * number).factor == power.factor * number
    assert (power / number).factor == power.factor * (1 / (number * Fraction(1)))
    assert -power == -1 * power
    assert +power == power


def test_text() -> None:
    assert str(n) == "n"
    assert repr(n**-1 * L ** Fraction(1, 2)) == "n**-1*L**(1/2)"
    assert str(0.5 * n**-2) == "0.5*n**-2"
    assert str(n / n) == "1"
    assert str(n ** (symbol("a") + 1)) == "n**(1 + a)"


def test_a_number_in_front_of_a_power_of_a_power() -> None:
    assert (4 * n) ** Fraction(1, 2) == 2 * n ** Fraction(1, 2)
    assert ((4 * n) ** Fraction(1, 2)).factor == pytest.approx(2)
    assert (2 * n) ** -2 == Fraction(1, 4) * n**-2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: n ** (1 / 3), "not a short decimal.*Fraction"),
        (lambda: n**1e-7, "not a short decimal"),
        (lambda: n ** "x", "must be a number, not 'x'"),
        (lambda: n ** "1/0", "must be a number, not '1/0'"),
        (lambda: n ** float("nan"), "the exponent: the number nan is not finite"),
        (lambda: n**None, "the exponent must be a real number, not None"),
        (lambda: n**n, "not a power of n"),
        (lambda: n + 1, "a power of n and the number 1 cannot be added"),
        (lambda: 1 - n, "cannot be subtracted"),
        (lambda: n * "a", "the text 'a' cannot be multiplied"),
        (lambda: [1] * n, "a list cannot be multiplied|a list and a power"),
        (lambda: n / None, "a power of n and None cannot be divided"),
        (lambda: None / n, "None and a power of n cannot be divided"),
        (lambda: n / 0, "division by the number 0"),
        (lambda: (0 * n) ** -1, "division by the number 0"),
        (lambda: n * float("inf"), "inf is not finite"),
        (lambda: np.ones(2) * n, r"array of shape \(2,\)"),
        (lambda: np.sqrt(n), "numpy's sqrt"),
        (lambda: n < L, "cannot be compared"),
        (lambda: bool(n), "no truth value"),
        (lambda: float(n), "is not a number"),
        (lambda: n @ n, "multiplied by @"),
        (lambda: (2 * n) ** symbol("a"), "symbolic exponent"),
        (lambda: (-2 * n) ** 0.5, "-2 has no real power 1/2"),
        (lambda: symbol("n"), "cannot be called 'n'"),
        (lambda: symbol("2a"), "cannot be called '2a'"),
        (lambda: symbol(3), "cannot be called 3"),  # type: ignore[arg-type]
    ],
)
def test_refusals_name_the_line(function: Callable[[], Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        function()
    assert caught.value.where == f"test_powers.py:{function.__code__.co_firstlineno}"


def test_powers_equal_only_powers() -> None:
    assert n != L
    assert n != 3
    assert n == L / L * n
    assert {n: 1}[n * L / L] == 1
