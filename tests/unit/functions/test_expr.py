"""The algebra of expressions: one spelling for equal functions, and no number lost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.programs import (
    ANY_ATOM,
    FLOATS,
    FRACTIONS,
    POWERS,
    RELU,
    TANH,
    expressions,
    leaves,
    polynomials,
)

from tpcalc.errors import ProgramError
from tpcalc.functions import Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, add, mul, power, substitute, walk
from tpcalc.functions.fn import renamed
from tpcalc.functions.tape import evaluate

# Exact numbers, any rational power of an argument, whole powers of anything but numbers.
EXACT = st.recursive(
    st.one_of(
        leaves(2, 1, FRACTIONS),
        st.tuples(st.sampled_from([Var(0), Var(1), Par(0)]), POWERS).map(lambda p: power(*p)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(add),
        st.lists(inner, min_size=2, max_size=3).map(mul),
        inner.map(lambda part: part**3),
        inner.filter(lambda part: part != const(0)).map(lambda part: part**-2),
        st.tuples(ANY_ATOM, inner).map(lambda pair: pair[0](pair[1])),
    ),
    max_leaves=6,
)
POINT = {"x": (0.7, -1.3), "s": (0.4,)}


def value(expr: Expr, vectors: int = 2, scalars: int = 1) -> float:
    """The number an expression takes at one point."""
    found = evaluate(
        Fn(expr, vectors, scalars),
        [np.float64(number) for number in POINT["x"]],
        [np.float64(number) for number in POINT["s"]],
    )
    return float(found)


# -------------------------------------------------------------------------------- algebraic laws


@pytest.mark.parametrize("kind", [EXACT, polynomials(2, 1, FLOATS)], ids=["exact", "floats"])
@given(data=st.data(), random=st.randoms())
def test_sums_and_products_commute(
    kind: st.SearchStrategy[Expr], data: st.DataObject, random: object
) -> None:
    parts = data.draw(st.lists(kind, min_size=2, max_size=4))
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert add(parts) == add(shuffled)
    assert mul(parts) == mul(shuffled)
    assert add(parts).text == add(shuffled).text


@settings(max_examples=150)
@given(EXACT, EXACT, EXACT)
def test_sums_and_products_associate(a: Expr, b: Expr, c: Expr) -> None:
    assert (a + b) + c == a + (b + c) == add((a, b, c))
    assert (a * b) * c == a * (b * c) == mul((a, b, c))


@given(EXACT, EXACT)
def test_differences_and_quotients_undo(a: Expr, b: Expr) -> None:
    assert (a + b) - b == a
    assert a - a == const(0)
    if b != const(0):
        assert (a * b) / b == a


@given(EXACT, FRACTIONS, FRACTIONS)
def test_numbers_distribute(a: Expr, p: Fraction, q: Fraction) -> None:
    assert p * a + q * a == (p + q) * a
    assert p * (q * a) == (p * q) * a


@given(polynomials(2, 1), polynomials(2, 1))
def test_the_value_of_a_sum_or_product_is_that_of_its_parts(a: Expr, b: Expr) -> None:
    left, right = value(a), value(b)
    assert value(a + b) == pytest.approx(left + right, rel=1e-9, abs=1e-9)
    assert value(a - b) == pytest.approx(left - right, rel=1e-9, abs=1e-9)
    assert value(a * b) == pytest.approx(left * right, rel=1e-9, abs=1e-9)
    assert value(a**3) == pytest.approx(left**3, rel=1e-9, abs=1e-9)


@given(expressions(2, 1))
def test_rebuilding_changes_nothing(expr: Expr) -> None:
    assert substitute(expr, {}) == expr


PLACES = st.permutations([0, 1, 2, 9, 10, 12])  # x10 and x12 sort before x2


@given(expressions(3, 2), PLACES, PLACES)
def test_renaming_is_substitution(expr: Expr, here: list[int], there: list[int]) -> None:
    before = {Var(i): Var(here[i]) for i in range(3)} | {Par(i): Par(here[i]) for i in range(2)}
    names = {Var(here[i]): Var(there[i]) for i in range(3)}
    names |= {Par(here[i]): Par(there[i]) for i in range(2)}
    moved = substitute(expr, before)
    assert renamed(moved, names) == substitute(moved, names)


@given(polynomials(2, 1), polynomials(2, 1))
def test_substitution_is_composition(outer: Expr, inner: Expr) -> None:
    replaced = substitute(outer, {Var(0): inner})
    expected = evaluate(Fn(outer, 2, 1), [np.float64(value(inner)), np.float64(-1.3)], [0.4])
    assert value(replaced) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@given(expressions(2, 1))
def test_normal_forms_are_flat_and_carry_one_number(expr: Expr) -> None:
    for part in walk(expr):
        if isinstance(part, Add):
            assert len(part.terms) >= 2
            assert not any(isinstance(term, Add) for term in part.terms)
            assert sum(isinstance(term, Const) for term in part.terms) <= 1
        if isinstance(part, Mul):
            assert len(part.factors) >= 2
            assert not any(isinstance(factor, Mul) for factor in part.factors)
            assert not any(isinstance(factor, Const) for factor in part.factors[1:])


# ------------------------------------------------------------------------------ spelled-out cases


def test_one_spelling_of_a_sum_as_a_factor() -> None:
    a, b, c = Var(0), Var(1), Par(0)
    assert 2 * (a + b) * c == (2 * a + 2 * b) * c
    assert (a - b) * c + (b - a) * c == const(0)
    assert (3 * a + 6 * b) ** 2 == 9 * (a + 2 * b) ** 2
    assert (-(a + b)).text == "-1*x0 + -1*x1"


def test_roots_of_products_open_when_they_meet() -> None:
    root = power(Var(0) * Var(1), Fraction(1, 2))
    assert root * root == Var(0) * Var(1)
    assert root * root * Par(0) * 2 == 2 * Par(0) * Var(0) * Var(1)
    assert power(const(2), Fraction(1, 2)) * power(const(2), Fraction(1, 2)) * Var(0) == 2 * Var(0)
    even = power(Var(0) ** 2, Fraction(1, 2))
    assert even != Var(0)  # it is |x0|
    assert even * even * Var(0) == Var(0) ** 3


def test_exact_numbers_and_floats_are_told_apart() -> None:
    assert const(Fraction(1, 2)) != const(0.5)
    assert TANH(Var(0) / 2) != TANH(0.5 * Var(0))
    assert const(0.0) == const(0) == const(-0.0)
    assert const(np.int64(3)).value == Fraction(3)
    assert isinstance(const(np.float64(0.1)).value, float)
    assert const(True) == const(1)


def test_a_sum_of_floats_is_rounded_once() -> None:
    parts = [1e16 * Var(0), Var(0), -1e16 * Var(0)]
    assert add(parts) == 1.0 * Var(0) == Var(0)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (2 * Var(0) * TANH(Var(1)) ** 2 + Par(0) / 2, "1/2*s0 + 2*x0*tanh(x1)**2"),
        (power(Var(0), Fraction(1, 2)), "x0**(1/2)"),
        (1 / Var(0), "x0**(-1)"),
        (-Var(0), "-1*x0"),
        (Var(0) * -0.25 + 1e-20, "1e-20 + -0.25*x0"),
        ((Var(0) + 1) ** 2, "(1 + x0)**2"),
        (power(const(2), Fraction(1, 2)), "(2)**(1/2)"),
        (power(TANH(Var(0)) ** 2, Fraction(1, 2)), "(tanh(x0)**2)**(1/2)"),
        (Var(0) ** 0.1, "x0**(1/10)"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert expr.text == text == str(expr)


def test_operators_take_numbers_on_both_sides() -> None:
    x = Var(0)
    assert 1 + x == x + 1
    assert 1 - x == -(x - 1)
    assert 2 / x == 2 * x**-1
    assert np.float64(0.5) * x == 0.5 * x


@pytest.mark.parametrize("other", ["a", None, 1j, [1]])
def test_operators_refuse_what_is_no_number(other: object) -> None:
    for operation in ("__add__", "__sub__", "__mul__", "__truediv__", "__radd__", "__rmul__"):
        assert getattr(Var(0), operation)(other) is NotImplemented
    with pytest.raises(TypeError):
        Var(0) + other  # type: ignore[operator]
    with pytest.raises(TypeError):
        Var(0) ** Var(1)  # type: ignore[operator]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, Fraction(10**400)])
def test_constants_are_finite(number: float) -> None:
    with pytest.raises(ProgramError, match="finite number in the range of a float"):
        const(number)


def test_folding_refuses_what_leaves_the_floats() -> None:
    with pytest.raises(ProgramError, match="range of a float"):
        1e300 * (1e300 * Var(0))
    with pytest.raises(ProgramError, match="the number 10 to the power 1000000 leaves the range"):
        const(10) ** 1_000_000
    with pytest.raises(ProgramError, match="leaves the range"):
        const(10.0) ** 400
    with pytest.raises(ProgramError, match="division by the constant 0"):
        Var(0) / (Var(1) - Var(1))
    with pytest.raises(ProgramError, match="negative number -2 to the power 1/2"):
        const(-2) ** Fraction(1, 2)
    with pytest.raises(ProgramError, match="exponent must be finite"):
        Var(0) ** math.nan


def test_calls_compare_by_atom_and_argument() -> None:
    assert RELU(Var(0)) == RELU(Var(0)) != TANH(Var(0))
    assert hash(RELU(Var(0)) + 1) == hash(1 + RELU(Var(0)))
