"""Formulas as the literature writes them, and polynomials by Wick's theorem."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.integrals.exact.one_dimensional import function

from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import add, mul
from tpcalc.integrals.exact import DELTA, expectation, formula

X = Var(0)
Q1, Q2, Q, C = sympy.symbols("q1 q2 q c")
PAIR = [[Q1, C], [C, Q2]]
HALF = [[1, Fraction(1, 2)], [Fraction(1, 2), 1]]


def same(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Equal at random positive variances (and no free symbol left over)."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.uniform(0.5, 3.0, 2)
        values = {Q1: a, Q2: b, Q: a, C: float(rng.uniform(-0.9, 0.9) * np.sqrt(a * b))}
        one, other = (complex(sympy.N(side.subs(values))) for side in (left, right))
        if abs(one - other) > 1e-12 * (1 + abs(other)):
            return False
    return True


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("erf'", "erf'"), 4 / sympy.pi / sympy.sqrt((1 + 2 * Q1) * (1 + 2 * Q2) - 4 * C**2)),
        (("cos", "cos"), sympy.exp(-(Q1 + Q2) / 2) * sympy.cosh(C)),
        (("square", "square"), Q1 * Q2 + 2 * C**2),
        (("gaussian", "gaussian"), 1 / sympy.sqrt((1 + 2 * Q1) * (1 + 2 * Q2) - 4 * C**2)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_kernels_of_pairs(names: tuple[str, str], wanted: sympy.Expr) -> None:
    found = formula([function(name) for name in names], [0, 0], PAIR)
    assert found is not None and found.free_symbols <= {Q1, Q2, C}
    assert same(found, wanted)


def test_the_arc_cosine_kernel_is_written_as_cho_and_saul_do() -> None:
    q1, q2 = sympy.symbols("q1 q2", positive=True)
    found = formula([function("relu")] * 2, [0, 0], [[q1, C], [C, q2]])
    turned = sympy.pi - sympy.acos(C / (sympy.sqrt(q1) * sympy.sqrt(q2)))
    assert found == (sympy.sqrt(q1 * q2 - C**2) + C * turned) / (2 * sympy.pi)


@pytest.mark.parametrize(
    ("expr", "rows", "wanted"),
    [
        ([function("relu")] * 2, [[1, 1], [1, 1]], sympy.Rational(1, 2)),
        ([function("relu")] * 2, [[1, -1], [-1, 1]], sympy.Integer(0)),
        ([function("gelu") * function("gelu'") * 0 + X], [[1]], sympy.Integer(0)),
    ],
)
def test_numbers_are_exact(expr: list[Expr], rows: list[list[object]], wanted: sympy.Expr) -> None:
    found = formula(expr, [0] * len(expr), rows)
    assert found is not None and (found == wanted or same(found, wanted))


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu'", "erf", "elu", "selu", "relu^3", "abs"])
def test_formulas_and_floats_agree(name: str) -> None:
    f = function(name)
    for factors, mean, rows in (
        ([f], [Fraction(1, 3)], [[Fraction(3, 4)]]),
        ([f**2], [Fraction(-1, 3)], [[2]]),
        ([f, f], [0, 0], [[1, Fraction(-1, 3)], [Fraction(-1, 3), 2]]),
        ([X**2 * f, f], [0, 0], [[1, Fraction(-1, 3)], [Fraction(-1, 3), 2]]),
    ):
        shown = formula(factors, mean, rows)
        if shown is None:
            # Bivariate normal probabilities with means have no name in sympy.
            assert name in ("elu", "selu") or (name[:4] in ("gelu", "erf") and factors == [f**2])
            continue
        floats = [[float(entry) for entry in row] for row in rows]
        found = expectation(factors, [float(m) for m in mean], floats)
        assert abs(float(sympy.N(shown, 30)) - found.value) <= found.error + 1e-15


def naive(variables: tuple[int, ...], rows: list[list[Fraction]]) -> Fraction:
    """The sum over pairings."""

    @cache
    def of(left: tuple[int, ...]) -> Fraction:
        if not left:
            return Fraction(1)
        first, rest = left[0], left[1:]
        return sum(
            (rows[first][other] * of(rest[:i] + rest[i + 1 :]) for i, other in enumerate(rest)),
            Fraction(0),
        )

    return of(variables) if len(variables) % 2 == 0 else Fraction(0)


coefficients = st.fractions(-2, 2, max_denominator=4)


@settings(max_examples=40)
@given(
    st.lists(st.lists(coefficients, min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.lists(coefficients, min_size=3, max_size=3), min_size=3, max_size=3),
    st.lists(coefficients, min_size=3, max_size=3),
)
def test_polynomials_by_wick(
    polynomials: list[list[Fraction]], root: list[list[Fraction]], means: list[Fraction]
) -> None:
    count = len(polynomials)
    rows = [
        [sum((a * b for a, b in zip(root[i], root[j], strict=True)), Fraction(0)) for j in range(3)]
        for i in range(3)
    ]
    factors = [
        add(mul((const(c), X**degree)) if degree else const(c) for degree, c in enumerate(entry))
        for entry in polynomials
    ]
    # E prod (m_i + g_i)^n_i, term by term.
    wanted = Fraction(0)
    terms: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(1), ())]
    for i, entry in enumerate(polynomials):
        grown = []
        for number, drawn in terms:
            for degree, c in enumerate(entry):
                for picked in range(2**degree):
                    times = picked.bit_count()
                    weight = c * means[i] ** (degree - times)
                    grown.append((number * weight, drawn + (i,) * times))
        terms = [(number, drawn) for number, drawn in grown if number]
    for number, drawn in terms:
        wanted += number * naive(drawn, rows)
    found = formula(factors, means[:count], [row[:count] for row in rows[:count]])
    assert found == sympy.Rational(wanted.numerator, wanted.denominator)
    floats = [[float(entry) for entry in row[:count]] for row in rows[:count]]
    computed = expectation(factors, [float(m) for m in means[:count]], floats)
    assert computed is not None
    near = [[Fraction(entry) for entry in row] for row in floats]
    if near == [row[:count] for row in rows[:count]] and all(
        Fraction(float(m)) == m for m in means
    ):
        assert abs(Fraction(computed.value) - wanted) <= Fraction(computed.error)


def test_a_delta_is_a_density() -> None:
    found = formula([DELTA(X), X**2], [0, 0], PAIR)
    assert same(found, (Q2 - C**2 / Q1) / sympy.sqrt(2 * sympy.pi * Q1))
    assert formula([DELTA(2 * X - 2)], [0], [[1]]) == (
        sympy.sqrt(2) * sympy.exp(-sympy.Rational(1, 2)) / (4 * sympy.sqrt(sympy.pi))
    )
    # The second derivative of relu.
    both = formula([DELTA(X), function("relu")], [0, 0], PAIR)
    assert same(both, sympy.sqrt(Q1 * Q2 - C**2) / Q1 / (2 * sympy.pi))


def test_real_powers() -> None:
    root = function("relu^1/2")
    quarter = sympy.Rational(1, 4)
    wanted = (2 * Q) ** quarter * sympy.gamma(3 * quarter) / (2 * sympy.sqrt(sympy.pi))
    assert same(formula([root], [0], [[Q]]), wanted)
    pair = formula([root, root], [0, 0], HALF)
    found = expectation([root, root], [0, 0], [[1, 0.5], [0.5, 1]])
    assert pair is not None and found is not None
    assert abs(float(sympy.N(pair, 30)) - found.value) <= found.error < 1e-13


def test_what_has_no_formula() -> None:
    assert formula([function("tanh")], [0], [[1]]) is None
    assert formula([function("relu")] * 2, [1, 0], HALF) is None
    assert formula([function("elu")] * 2, [0, 0], PAIR) is None


def test_a_number_is_taken_at_the_function_itself() -> None:
    m = sympy.Symbol("m")
    assert formula([function("step")], [0], [[0]]) == 0
    assert formula([function("elu_slope:2")], [0], [[0]]) == 2
    assert formula([function("relu"), X], [m, 0], [[0, 0], [0, 1]]) == 0
    assert formula([function("square")], [m], [[0]]) == m**2


def test_impossible_covariances_are_refused() -> None:
    with pytest.raises(EvaluationError, match="larger than the variances allow"):
        formula([function("relu")] * 2, [0, 0], [[1, 2], [2, 1]])
    with pytest.raises(EvaluationError, match="infinite"):
        formula([function("exp").atom(X**2)], [0], [[1]])  # type: ignore[attr-defined]
