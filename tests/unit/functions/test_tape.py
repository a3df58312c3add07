"""Lowered functions compute what a direct reading of the expression computes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from properties.programs import EXP, TANH, expressions

from tpcalc.functions import Atom, Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, power
from tpcalc.functions.tape import evaluate, lower, numpy_space, run

X = [np.array([0.7, -1.3, 2.1]), np.array([-0.2, 0.9, 1.6])]


def direct(expr: Expr, vectors: list[Any], scalars: list[float]) -> Any:
    """The value by recursion, with numpy's own power."""
    if isinstance(expr, Const):
        return np.float64(expr.value)
    if isinstance(expr, Var):
        return vectors[expr.index]
    if isinstance(expr, Par):
        return np.float64(scalars[expr.index])
    if isinstance(expr, Add):
        return sum(direct(term, vectors, scalars) for term in expr.terms)
    if isinstance(expr, Mul):
        return math.prod(direct(factor, vectors, scalars) for factor in expr.factors)
    if isinstance(expr, Pow):
        return np.power(direct(expr.base, vectors, scalars), float(expr.exponent))
    assert isinstance(expr, Call)
    return expr.atom.evaluate(numpy_space(), direct(expr.arg, vectors, scalars))


@given(expressions(2, 1))
def test_lowered_equals_direct(expr: Expr) -> None:
    with np.errstate(all="ignore"):
        expected = direct(expr, X, [0.4])
        found = np.broadcast_to(evaluate(Fn(expr, 2, 1), X, [0.4]), np.shape(expected))
    fine = np.isfinite(expected) & (
        np.abs(expected) < 1e150
    )  # elsewhere overflow is a matter of order
    np.testing.assert_allclose(found[fine], np.asarray(expected)[fine], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("exponent", [-7, -2, -1, 2, 3, 4, 5, 8, 13])
def test_whole_powers(exponent: int) -> None:
    fn = Fn(Var(0) ** exponent, 1)
    np.testing.assert_allclose(evaluate(fn, [X[0]]), X[0] ** float(exponent), rtol=1e-14)


@pytest.mark.parametrize(
    ("exponent", "base", "expected"),
    [
        (Fraction(-1), 0.0, math.inf),
        (Fraction(-1), -0.0, -math.inf),
        (Fraction(-2), 0.0, math.inf),
        (Fraction(1, 2), -1.0, math.nan),  # Python would answer with a complex number
        (Fraction(1, 2), 2.25, 1.5),
        (Fraction(-1, 2), 0.0, math.inf),
        (Fraction(1, 3), 0.0, 0.0),
        (Fraction(3, 2), 1e300, math.inf),
        (Fraction(2), 1e300, math.inf),
        (Fraction(5, 2), 4.0, 32.0),
    ],
)
def test_powers_of_plain_floats_never_raise(
    exponent: Fraction, base: float, expected: float
) -> None:
    fn = Fn(power(Par(0), exponent), 0, 1)
    found = evaluate(fn, [], [base])
    assert isinstance(found, float)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_equal_parts_are_computed_once() -> None:
    calls = []

    def counted(xp: Any, z: Any) -> Any:
        calls.append(1)
        return z + 1

    atom = Atom("counted", counted, lambda z: z * 0 + 1)
    fn = Fn(atom(Var(0)) * (2 + atom(Var(0)) ** 2), 1)
    evaluate(fn, [X[0]])
    assert len(calls) == 1


def test_a_number_in_a_named_function_is_folded() -> None:
    fn = Fn(TANH(Const(Fraction(1, 2))) * Var(0), 1)
    np.testing.assert_allclose(evaluate(fn, [X[0]]), math.tanh(0.5) * X[0], rtol=1e-15)


def test_registers_are_dropped_after_their_last_use() -> None:
    tape = lower(Fn(EXP(TANH(Var(0)) + Var(1)) * Var(0), 2))
    read = {place for _, places in tape.steps for place in places}
    assert sorted(place for drops in tape.drops for place in drops) == sorted(read - {tape.result})
    arguments = [*X]
    run(tape, numpy_space(), arguments)
    assert all(given is kept for given, kept in zip(arguments, X, strict=True))


def test_a_constant_is_a_float_and_an_argument_itself() -> None:
    assert evaluate(Fn(Const(Fraction(3, 2)), 1), [X[0]]) == 1.5
    assert evaluate(Fn(Var(1), 2), X) is X[1]
