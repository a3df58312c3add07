"""Functions of several Gaussians as sums of products of functions of one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpcalc.activations.entries import atom
from tpcalc.evaluate.closure.gaussians import Affine, affine, is_odd, products
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.demand import Unknown

RELU, TANH, STEP = atom("relu"), atom("tanh"), atom("step")
SCALARS = (0.7, -1.3)
leaves = st.sampled_from([Var(0), Var(1), Var(2), Par(0), Par(1), const(2), const(Fraction(-1, 3))])


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda two: two[0] + two[1]),
        pair.map(lambda two: two[0] * two[1]),
        inner.map(lambda one: one**2),
        st.tuples(leaves, leaves, st.sampled_from([RELU, TANH, STEP])).map(
            lambda item: item[2](item[0] + 2 * item[1])
        ),
    )


class Table:
    """Derived Gaussians as a closure numbers them."""

    def __init__(self) -> None:
        self.forms: list[Affine] = []

    def __call__(self, form: Affine) -> int:
        if form not in self.forms:
            self.forms.append(form)
        return 3 + self.forms.index(form)

    def values(self, plain: list[float]) -> list[float]:
        found = list(plain)
        for parts, constant in self.forms:
            total = _number(constant, plain)
            found.append(total + sum(_number(c, plain) * plain[place] for place, c in parts))
        return found


def _number(expr: Expr, vectors: list[float]) -> float:
    return float(evaluate(Fn(expr, 3, 2), vectors, SCALARS))


@settings(max_examples=300, deadline=None)
@given(st.recursive(leaves, _grown, max_leaves=8), st.integers(0, 2**32))
def test_products_add_up_to_the_function(expr: Expr, seed: int) -> None:
    table = Table()
    found = products(expr, table)
    plain = np.random.default_rng(seed).standard_normal(3).tolist()
    values = table.values(plain)
    total = 0.0
    for item in found:
        value = _number(item.coefficient, plain)
        for place, factor in item.factors:
            value *= float(evaluate(Fn(factor, 1), [values[place]]))
        total += value
    assert total == pytest.approx(_number(expr, plain), rel=1e-9, abs=1e-9)
    for item in found:  # each Gaussian once, each factor a function of it alone
        places = [place for place, _ in item.factors]
        assert places == sorted(set(places))


def test_a_function_of_a_product_of_gaussians_is_refused() -> None:
    with pytest.raises(Unknown, match="not Gaussian"):
        products(RELU(Var(0) * Var(1)), Table())
    with pytest.raises(Unknown, match="not Gaussian"):
        products(TANH(Par(0) * Var(0) ** 2), Table())


def test_a_product_with_too_many_terms_is_refused() -> None:
    wide = sum((Var(i) for i in range(1, 30)), Var(0))
    with pytest.raises(Unknown, match="terms"):
        products(wide**4, Table())


@pytest.mark.parametrize(
    ("expr", "coefficients", "constant"),
    [
        (2 * Var(0) - Var(1) + 3, {0: "2", 1: "-1"}, "3"),
        (Par(0) * (Var(0) + 2 * Var(1)), {0: "s0", 1: "2*s0"}, "0"),
        ((Var(0) + Par(0)) * Par(1) ** -1, {0: "s1**(-1)"}, "s0*s1**(-1)"),
        (const(5), {}, "5"),
    ],
)
def test_affine_functions(expr: Expr, coefficients: dict[int, str], constant: str) -> None:
    found = affine(expr)
    assert {place: factor.text for place, factor in found[0]} == coefficients
    assert found[1].text == constant


@pytest.mark.parametrize("expr", [Var(0) ** 2, Var(0) * Var(1), RELU(Var(0)), Var(0) ** -1])
def test_what_is_not_affine(expr: Expr) -> None:
    assert affine(expr) is None


@pytest.mark.parametrize(
    ("expr", "odd"),
    [
        (TANH(Var(0)), True),
        (TANH(Var(0)) * Var(0), False),
        (TANH(2 * Var(0)) ** 3, True),
        (RELU(Var(0)), None),
        (RELU(Var(0) ** 2), False),
        (TANH(Var(0) + 1), None),
        (atom("abs")(Var(0)), False),
        (Var(0) ** -1, True),
        (Var(0) + Var(0) ** 3, True),
        (Var(0) + Var(0) ** 2, None),
        (const(3), False),
    ],
)
def test_parity_of_factors(expr: Expr, odd: bool | None) -> None:
    assert is_odd(expr) is odd
