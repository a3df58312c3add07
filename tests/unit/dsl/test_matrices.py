"""Products with random matrices."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from unit.dsl.activations import relu

from tpcalc.dsl import Matrix, Tracer, Vector, n, program
from tpcalc.errors import DimMismatch, TraceError
from tpcalc.exponents import Ex
from tpcalc.program.nodes import Family, Input, LinComb, MatMul, Scale
from tpcalc.program.program import Program


def traced(function: Callable[[Tracer, Matrix, Vector], Any]) -> Program:
    """The program of a function of a matrix (%0) and a vector (%1), both on n."""

    @program
    def whole(t: Tracer) -> None:
        weight, x = t.matrix("W"), t.gaussian("x")
        t.output("at work", weight @ x)  # keeps both
        t.output("out", function(t, weight, x))

    return whole.build()


@pytest.mark.parametrize("transpose", [False, True])
def test_products(transpose: bool) -> None:
    found = traced(lambda t, w, x: (w.T if transpose else w) @ x)
    assert found.nodes[found.ref("out")] == MatMul(0, 1, transpose)
    assert traced(lambda t, w, x: w.T.T @ x).nodes[-1] == MatMul(0, 1)


def test_rectangular_matrices_change_the_dimension() -> None:
    @program
    def there_and_back(t: Tracer) -> None:
        d = t.dim("d", Fraction(3, 2))
        weight = t.matrix("W", rows=d, law="orthogonal")
        assert (weight.rows, weight.cols, weight.T.rows) == ("d", "n", "n")
        x = t.gaussian("x")
        y = weight @ x
        assert (y.dim, (weight.T @ y).dim) == ("d", "n")
        t.output("x", weight.T @ y)

    assert there_and_back.nodes[0] == Input(Family("W", ("d", "n"), law="orthogonal"))
    assert there_and_back.dim["d"].ratio == Fraction(3, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda t, w, x: n**-1 * w @ x,  # read by Python as (n**-1 * w) @ x
        lambda t, w, x: n**-1 * (w @ x),
        lambda t, w, x: (w / n) @ x,
        lambda t, w, x: (w * n**-1) @ x,
        lambda t, w, x: -(-w / n) @ x,
    ],
)
def test_powers_in_front_of_a_matrix_go_to_the_product(function: Callable[..., Any]) -> None:
    assert traced(function).nodes[2:] == (MatMul(0, 1), Scale(2, Ex.number(-1)))


def test_numbers_in_front_of_a_matrix_go_to_the_product() -> None:
    expected = (MatMul(0, 1, True), LinComb((Fraction(3, 2),), (None,), (3,)))
    for function in (
        lambda t, w, x: (3 * w.T / 2) @ x,
        lambda t, w, x: (3 * w / 2).T @ x,
        lambda t, w, x: np.float32(1.5) * w.T @ x,
    ):
        found = traced(function).nodes[3:]
        assert found == expected
    found = traced(lambda t, w, x: t.scalar("s", 2) * w @ x)
    assert found.nodes[-1] == LinComb((Fraction(1),), (3,), (2,))
    found = traced(lambda t, w, x: (w / t.scalar("s", 2)) @ x)
    assert found.nodes[-1] == LinComb((Fraction(1),), (4,), (2,))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t, w, x: w + w, "a matrix and a matrix cannot be added.*W @ x"),
        (lambda t, w, x: w - 1, "a matrix and the number 1 cannot be subtracted"),
        (lambda t, w, x: x + w, "cannot be added"),
        (lambda t, w, x: x * w, "cannot be multiplied"),
        (lambda t, w, x: w * np.ones(3), r"a matrix and an array of shape \(3,\) cannot be"),
        (lambda t, w, x: w / 0, "division by the number 0"),
        (lambda t, w, x: w / x, "a matrix and a vector cannot be divided"),
        (lambda t, w, x: 1 / w, "cannot be divided"),
        (lambda t, w, x: w**2, r"no powers.*W @ \(W @ x\)"),
        (lambda t, w, x: w @ w.T, r"Apply them one after the other: W @ \(W\.T @ x\)"),
        (lambda t, w, x: w @ [x], "W @ a list: a matrix acts on a vector"),
        (lambda t, w, x: w @ 3, "W @ the number 3"),
        (lambda t, w, x: 3 @ w, r"the number 3 @ W.*Write W\.T @ x"),
        (lambda t, w, x: w @ np.ones(3), "meet in numpy's matmul|W @ an array"),
        (lambda t, w, x: w[0], "no entry"),
        (lambda t, w, x: relu(w), r"relu cannot take a matrix.*t\.outer"),
        (lambda t, w, x: w, "the output 'out' is a matrix.*Apply the matrix"),
    ],
)
def test_refusals_name_the_line(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        traced(function)
    assert str(caught.value.where).startswith("test_matrices.py:")


def test_a_mismatch_says_who_lives_where() -> None:
    @program
    def wrong(t: Tracer) -> None:
        t.dim("d", 2)
        weight, x = t.matrix("W2"), t.gaussian("x", dim="d")
        weight @ x

    line = wrong.__wrapped__.__code__.co_firstlineno + 4
    with pytest.raises(DimMismatch) as caught:
        wrong.build()
    assert str(caught.value) == (
        f"TPC202 test_matrices.py:{line}: W2 @ x: W2 has columns on 'n', x lives on 'd'. "
        "Use a matrix with columns on 'd'."
    )


def test_a_mismatch_offers_the_transpose() -> None:
    @program
    def wrong(t: Tracer) -> None:
        t.dim("d", 2)
        t.matrix("W", rows="d") @ relu(2 * t.gaussian("x", dim="d"))

    with pytest.raises(DimMismatch, match=r"W\.T @ relu\(2\*x\) would fit"):
        wrong.build()
