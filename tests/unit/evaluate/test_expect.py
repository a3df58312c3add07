"""One Gaussian expectation, as a number or as a formula."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
import sympy

import tpcalc as tp
from tpcalc.errors import TpcalcError
from tpcalc.results import Method


@pytest.mark.parametrize(
    ("fn", "cov", "mean", "value"),
    [
        (lambda z: z**4, 2, 0, 12.0),
        (lambda z: tp.relu(z), 1, 0, 1 / math.sqrt(2 * math.pi)),
        (lambda z: tp.exp(z), 1, Fraction(1, 2), math.e),
        (lambda u, v: u * v, [[1, 0.25], [0.25, 1]], [1, 2], 2.25),
        (lambda u, v: tp.step(u) * tp.step(v), [[1, 0], [0, 1]], 0, 0.25),
        (lambda u, v: tp.relu(u + v), [[1, 0], [0, 1]], 0, 1 / math.sqrt(math.pi)),
    ],
)
def test_values(fn: Any, cov: Any, mean: Any, value: float) -> None:
    found = tp.expect(fn, cov, mean)
    assert found.method is Method.EXACT
    assert found.value == pytest.approx(value, rel=1e-14)
    assert abs(found.value - value) <= found.stderr + 1e-15 * value


def test_methods() -> None:
    by = {method: tp.expect(tp.tanh, 1, 1, method=method) for method in ("auto", "particles")}
    assert by["auto"].method is Method.QUADRATURE and by["particles"].method is Method.PARTICLES
    assert by["particles"].z(by["auto"]) < 5


@pytest.mark.parametrize(
    ("fn", "cov", "mean", "text"),
    [
        (3, 1, 0, "not a function"),
        (lambda u, v: u * v, 1, 0, "2 x 2"),
        (lambda u, v: u * v, [[1, 2], [0, 1]], 0, "not symmetric"),
        (lambda u, v: u * v, [[1, 0], [0, 1]], [0, 0, 0], "mean has 3"),
        (lambda u, v: "text", [[1, 0], [0, 1]], 0, "not an expression"),
        (lambda z: z, sympy.Symbol("q"), 0, "closed_form takes symbols"),
        (lambda z: z, -1, 0, "cov"),
        (lambda z: z, math.nan, 0, "finite"),
    ],
)
def test_refusals(fn: Any, cov: Any, mean: Any, text: str) -> None:
    with pytest.raises(TpcalcError, match=text):
        tp.expect(fn, cov, mean)


def test_closed_forms_with_symbols_are_those_of_numbers() -> None:
    q, p = sympy.symbols("q p", positive=True)
    c, m = sympy.symbols("c m", real=True)
    cases: list[tuple[Any, Any, Any]] = [
        (lambda u, v: tp.relu(u) * tp.gelu(v), [[q, c], [c, p]], 0),
        (lambda u, v: tp.erf(u) * tp.erf(v), [[q, c], [c, p]], 0),
        (lambda u, v: tp.relu(u + 2 * v) * u, [[q, c], [c, p]], 0),
        (lambda z: tp.relu(z) ** 2, q, m),
        (lambda z: tp.sin(z) * z, q, m),
    ]
    at = {q: Fraction(3, 2), p: Fraction(1, 2), c: Fraction(1, 3), m: Fraction(-1, 4)}
    given = {
        symbol: sympy.Rational(value.numerator, value.denominator) for symbol, value in at.items()
    }
    for fn, cov, mean in cases:
        formula = tp.closed_form(fn, cov, mean)
        numbers = [[at[v] for v in row] for row in cov] if isinstance(cov, list) else at[cov]
        found = tp.expect(fn, numbers, at.get(mean, mean))
        assert float(formula.subs(given).evalf(30)) == pytest.approx(found.value, rel=1e-13)


def test_no_closed_form_is_said() -> None:
    with pytest.raises(TpcalcError, match="no closed form"):
        tp.closed_form(tp.tanh)


def test_a_pole_is_a_place_to_cut() -> None:
    """1/(h - a) changes sign through infinity; the integrand jumps there."""
    at_zero = tp.expect(lambda h: tp.normal_cdf(1 / h))
    assert at_zero.value == pytest.approx(0.5, abs=1e-14)
    elsewhere = tp.expect(lambda h: h * tp.normal_cdf(1 / (h - 0.3)))
    assert elsewhere.value == pytest.approx(0.23467365728493, abs=1e-13)
