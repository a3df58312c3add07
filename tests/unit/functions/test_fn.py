"""Functions of several arguments and their derivatives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from properties.programs import RELU, SIN, STEP, TANH, expressions, polynomials

from tpcalc.errors import NotDifferentiable, ProgramError
from tpcalc.functions import Expr, Fn, Par, Var, const, derivative
from tpcalc.functions.expr import power
from tpcalc.functions.fn import product
from tpcalc.functions.tape import evaluate

X = (np.float64(0.7), np.float64(-1.3))
S = (np.float64(0.4),)


@given(polynomials(2, 1))
def test_derivatives_are_finite_differences(expr: Expr) -> None:
    fn, step = Fn(expr, 2, 1), 1e-6
    sizes = [abs(float(evaluate(f, X, S))) for f in (fn, fn.by(0).by(0), fn.by_scalar(0))]
    assume(max(sizes) < 1e4)
    for index in (0, 1):
        up, down = list(X), list(X)
        up[index] += step
        down[index] -= step
        slope = (evaluate(fn, up, S) - evaluate(fn, down, S)) / (2 * step)
        assert float(evaluate(fn.by(index), X, S)) == pytest.approx(
            float(slope), rel=1e-4, abs=1e-4
        )
    slope = (evaluate(fn, X, [0.4 + step]) - evaluate(fn, X, [0.4 - step])) / (2 * step)
    assert float(evaluate(fn.by_scalar(0), X, S)) == pytest.approx(float(slope), rel=1e-4, abs=1e-4)


@given(polynomials(2, 1), polynomials(2, 1))
def test_the_product_rule_and_linearity(a: Expr, b: Expr) -> None:
    da, db = derivative(a, Var(0)), derivative(b, Var(0))
    assert derivative(a + b, Var(0)) == da + db
    exact, ruled = Fn(derivative(a * b, Var(0)), 2, 1), Fn(a * db + b * da, 2, 1)
    assert float(evaluate(exact, X, S)) == pytest.approx(
        float(evaluate(ruled, X, S)), rel=1e-9, abs=1e-9
    )


@given(polynomials(2, 1))
def test_mixed_derivatives_agree(expr: Expr) -> None:
    fn = Fn(expr, 2, 1)
    first, second = evaluate(fn.by(0).by(1), X, S), evaluate(fn.by(1).by(0), X, S)
    assert float(first) == pytest.approx(float(second), rel=1e-9, abs=1e-9)


def test_powers() -> None:
    assert derivative(power(Var(0), Fraction(1, 2)), Var(0)).text == "1/2*x0**(-1/2)"
    assert derivative(Var(0) ** -1, Var(0)) == -(Var(0) ** -2)
    assert derivative(Var(0) ** 3, Var(1)) == const(0)


def test_a_jump_has_no_derivative_but_what_does_not_move_has() -> None:
    assert derivative(RELU(Var(0)), Var(0)) == STEP(Var(0))
    assert derivative(STEP(Var(1)), Var(0)) == const(0)
    with pytest.raises(NotDifferentiable, match="step jumps"):
        derivative(STEP(Var(0)), Var(0))


@given(polynomials(2, 1), polynomials(2, 1))
def test_product_keeps_arguments_apart(a: Expr, b: Expr) -> None:
    both = product(Fn(a, 2, 1), Fn(b, 2, 1))
    assert (both.vectors, both.scalars) == (4, 2)
    left, right = evaluate(Fn(a, 2, 1), X, S), evaluate(Fn(b, 2, 1), [0.1, 0.2], [0.3])
    found = evaluate(both, [*X, np.float64(0.1), np.float64(0.2)], [*S, np.float64(0.3)])
    assert float(found) == pytest.approx(float(left * right), rel=1e-9, abs=1e-9)


@given(expressions(3, 2))
def test_compact_drops_what_is_unused(expr: Expr) -> None:
    fn = Fn(expr, 3, 2)
    small, vectors, scalars = fn.compact()
    assert (set(vectors), set(scalars)) == fn.uses
    assert small.uses == (frozenset(range(small.vectors)), frozenset(range(small.scalars)))
    assert (small.vectors, small.scalars) == (len(vectors), len(scalars))


def test_inner_products_are_known_by_their_arguments() -> None:
    assert Fn(Var(0) * Var(1), 2).is_inner
    assert Fn(Var(0) ** 2, 1).is_inner
    assert not Fn(Var(0) ** 2, 2).is_inner  # the second vector is not in it
    assert not Fn(2 * Var(0) * Var(1), 2).is_inner
    assert Fn(Var(0) - Var(0), 1).is_zero


@pytest.mark.parametrize(
    ("expr", "vectors", "scalars", "message"),
    [
        (Var(2), 2, 0, "uses x2 but has 2 vector arguments"),
        (SIN(Par(0)), 1, 0, "uses s0 but has 0 scalar arguments"),
        (Var(-1), 1, 0, "uses x-1 but has 1 vector arguments"),
        (const(1), -1, 0, "a function of -1 vectors"),
    ],
)
def test_arguments_must_be_there(expr: Expr, vectors: int, scalars: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Fn(expr, vectors, scalars)


def test_nesting_has_a_limit() -> None:
    expr: Expr = Var(0)
    for _ in range(100):
        expr = TANH(expr)
    assert math.isfinite(float(evaluate(Fn(expr, 1), [np.float64(1.0)])))
    with pytest.raises(ProgramError, match="nested deeper than 100"):
        Fn(TANH(expr), 1)
