"""One Gaussian expectation, as a number or as a formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import sympy

import tpcalc as tp
from tpcalc.errors import EvaluationError, TpcalcError
from tpcalc.results import Method, Status


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


def half_line(kind: str, edge: int) -> Any:
    """A jump at an edge, as a function of numbers and of what is traced."""
    if kind == "sign":
        return lambda z: tp.sign(z - edge)
    return lambda z: tp.step(z - edge if kind == "above" else edge - z)


@pytest.mark.parametrize("edges", [(1, 2), (2, 1), (-1, 1), (1, 1)])
@pytest.mark.parametrize("kinds", list(product(["sign", "above", "below"], repeat=2)))
def test_products_of_jumps_at_two_places(kinds: tuple[str, str], edges: tuple[int, int]) -> None:
    """Between jumps the product is a number, and z phi(z) is what -phi(z) is a derivative from."""
    factors = [half_line(kind, edge) for kind, edge in zip(kinds, edges, strict=True)]
    found = tp.expect(lambda z: factors[0](z) * factors[1](z) * z)
    assert found.method is Method.EXACT
    signs = {"sign": np.sign, "above": lambda x: x > 0, "below": lambda x: x < 0}
    ends = [-math.inf, *sorted(set(edges)), math.inf]
    total = 0.0
    for low, high in pairwise(ends):
        inside = high - 0.5 if math.isinf(low) else low + 0.5
        levels = [float(signs[k](inside - e)) for k, e in zip(kinds, edges, strict=True)]
        densities = [math.exp(-end * end / 2) / math.sqrt(2 * math.pi) for end in (low, high)]
        total += math.prod(levels) * (densities[0] - densities[1])
    assert found.value == pytest.approx(total, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(
    "act", [lambda x: tp.exp(-(x**3) / 1000), lambda x: tp.exp(tp.exp(x) / 100)]
)
def test_an_infinite_mean_is_no_number_to_rely_on(act: Callable[[object], object]) -> None:
    """Both are infinite, though no value within reach of a double shows it."""
    with pytest.raises(EvaluationError, match="may be infinite"):
        tp.expect(act)

    def program(t: tp.Tracer) -> None:
        t.output("y", tp.mean(act(t.gaussian("x"))))

    with pytest.raises(EvaluationError, match="may be infinite"):
        tp.limit(tp.program(program))
    assert tp.limit(tp.program(program), method="particles")["y"].status is Status.RARE
