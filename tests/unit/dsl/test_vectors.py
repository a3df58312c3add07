"""Operators of vectors: the nodes they record, and what they refuse."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import draw, run
from unit.dsl.activations import RELU, TANH, nodes, relu, tanh, traced

from tpcalc.dsl import L, Tracer, Vector, n, program
from tpcalc.errors import DimMismatch, TraceError
from tpcalc.exponents import Ex
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.program.nodes import Data, Family, Input, LinComb, MatMul, Nonlin, Scale
from tpcalc.program.program import Builder

ONE = Fraction(1)


def test_a_program_is_what_the_builder_makes_by_hand() -> None:
    @program
    def integrable(t: Tracer) -> None:
        h = t.gaussian("h1")
        for layer in (2, 3):
            h = n**-1 * (t.matrix(f"W{layer}") @ relu(h))
        t.output("h3", h)

    builder = Builder()
    h = builder.add(Input(Family.group("h1", "n", (Fraction(0),))))
    for name in ("W2", "W3"):
        weight = builder.add(Input(Family(name, ("n", "n"))))
        x = builder.add(Nonlin(Fn(RELU(Var(0)), 1), (h,)))
        h = builder.add(Scale(builder.add(MatMul(weight, x)), Ex.number(-1)))
    builder.output("h3", h)
    assert integrable.build() == builder.finish()


def test_a_sum_of_several_terms_is_one_linear_combination() -> None:
    found = nodes(lambda t, x, y: x + 2 * y - tanh(x) / 4)
    assert found == [
        Nonlin(Fn(TANH(Var(0)), 1), (0,)),
        LinComb((ONE, Fraction(2), Fraction(-1, 4)), (None, None, None), (0, 1, 2)),
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda t, x, y: x + x,
        lambda t, x, y: 2 * x,
        lambda t, x, y: x * 2,
        lambda t, x, y: x / Fraction(1, 2),
        lambda t, x, y: 3 * (x + y) - x - 3 * y,
        lambda t, x, y: -(-2 * x),
        lambda t, x, y: +(x + x),
        lambda t, x, y: np.int64(2) * x,
        lambda t, x, y: x * np.float32(2),
        lambda t, x, y: np.array(2) * x,
        lambda t, x, y: sum([x, x]),
        lambda t, x, y: n * (n**-1 * (x + x)),
    ],
)
def test_like_terms_are_collected(function: Callable[..., Any]) -> None:
    assert nodes(function) == [LinComb((Fraction(2),), (None,), (0,))]


@pytest.mark.parametrize(
    "function",
    [
        lambda t, x, y: 1 * x,
        lambda t, x, y: x + y - y,
        lambda t, x, y: x + 0,
        lambda t, x, y: 0 - (0 - x),
        lambda t, x, y: n**0 * x,
        lambda t, x, y: x**1,
        lambda t, x, y: n**-1 * (x * n),
    ],
)
def test_what_changes_nothing_records_nothing(function: Callable[..., Any]) -> None:
    assert nodes(function) == []


def test_a_vanishing_sum_is_a_zero_vector_on_its_dimension() -> None:
    assert nodes(lambda t, x, y: x + y - (y + x)) == [LinComb((Fraction(0),), (None,), (0,))]


def test_a_sum_used_as_a_vector_stays_one_term() -> None:
    def residual(t: Tracer, x: Vector, y: Vector) -> Vector:
        h = x + y
        return h + relu(h)

    assert nodes(residual) == [
        LinComb((ONE, ONE), (None, None), (0, 1)),
        Nonlin(Fn(RELU(Var(0)), 1), (2,)),
        LinComb((ONE, ONE), (None, None), (2, 3)),
    ]


def test_scalars_are_coefficients() -> None:
    found = nodes(lambda t, x, y: t.scalar("s", 3) * (x - 2 * y) + y)
    assert found == [
        Data("s", (Fraction(3),)),
        LinComb((ONE, Fraction(-2), ONE), (2, 2, None), (0, 1, 1)),
    ]


def test_two_scalars_in_front_multiply() -> None:
    def twice(t: Tracer, x: Vector, y: Vector) -> Vector:
        a, b = t.scalar("a", 2), t.scalar("b", 3)
        return b * (a * x)

    found = nodes(twice)
    assert found[2:] == [
        Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (2, 3)),
        LinComb((ONE,), (4,), (0,)),
    ]


def test_a_scalar_divides() -> None:
    found = nodes(lambda t, x, y: x / t.scalar("a", 2))
    assert found[1:] == [Nonlin(Fn(Par(0) ** -1, 0, 1), (), (2,)), LinComb((ONE,), (3,), (0,))]


@pytest.mark.parametrize(
    ("function", "fn", "vectors"),
    [
        (lambda t, x, y: x * y, Fn(Var(0) * Var(1), 2), (0, 1)),
        (lambda t, x, y: x * x, Fn(Var(0) ** 2, 1), (0,)),
        (lambda t, x, y: x / y, Fn(Var(0) / Var(1), 2), (0, 1)),
        (lambda t, x, y: x**2, Fn(Var(0) ** 2, 1), (0,)),
        (lambda t, x, y: x ** Fraction(1, 2), Fn(Var(0) ** Fraction(1, 2), 1), (0,)),
        (lambda t, x, y: x**0.5, Fn(Var(0) ** Fraction(1, 2), 1), (0,)),
        (lambda t, x, y: x ** "-1/3", Fn(Var(0) ** Fraction(-1, 3), 1), (0,)),
        (lambda t, x, y: x + 3, Fn(Var(0) + 3, 1), (0,)),
        (lambda t, x, y: 3 + x, Fn(Var(0) + 3, 1), (0,)),
        (lambda t, x, y: x - 0.25, Fn(Var(0) - 0.25, 1), (0,)),
        (lambda t, x, y: 1 - x, Fn(1 - Var(0), 1), (0,)),
        (lambda t, x, y: 2 / x, Fn(2 / Var(0), 1), (0,)),
        (lambda t, x, y: np.float64(0.5) - x, Fn(0.5 - Var(0), 1), (0,)),
    ],
)
def test_pointwise_operations(function: Callable[..., Any], fn: Fn, vectors: Any) -> None:
    assert nodes(function) == [Nonlin(fn, vectors)]


def test_a_quotient_of_equal_vectors_keeps_its_pole() -> None:
    assert nodes(lambda t, x, y: x / x) == [Nonlin(Fn(Var(0) / Var(1), 2), (0, 0))]


@pytest.mark.parametrize(
    ("function", "expr"),
    [
        (lambda x, s: x + s, Var(0) + Par(0)),
        (lambda x, s: s + x, Var(0) + Par(0)),
        (lambda x, s: x - s, Var(0) - Par(0)),
        (lambda x, s: s - x, Par(0) - Var(0)),
        (lambda x, s: s / x, Par(0) / Var(0)),
    ],
)
def test_vectors_meet_scalars_coordinate_by_coordinate(
    function: Callable[..., Any], expr: Any
) -> None:
    found = nodes(lambda t, x, y: function(x, t.scalar("s", 1)))
    assert found[1:] == [Nonlin(Fn(expr, 1, 1), (0,), (2,))]


def test_powers_of_n_stay_outside_and_merge() -> None:
    found = nodes(lambda t, x, y: n**-1 * (L ** "1/2" * (2 * (n ** Fraction(1, 2) * (x + y)))))
    assert found == [
        LinComb((ONE, ONE), (None, None), (0, 1)),
        Scale(2, Ex.number(Fraction(1, 2))),
        LinComb((Fraction(2),), (None,), (3,)),
        Scale(4, Ex.number(-1), Ex.number(Fraction(1, 2))),
    ]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x / n, -1),
        (lambda x: x * n**-0.5 / n, Fraction(-3, 2)),
        (lambda x: n * x, 1),
    ],
)
def test_powers_from_either_side(function: Callable[[Vector], Vector], expected: Any) -> None:
    assert nodes(lambda t, x, y: function(x)) == [Scale(0, Ex.number(expected))]


def test_a_number_in_front_of_a_power() -> None:
    assert nodes(lambda t, x, y: 0.5 * n**-1 * x) == [
        LinComb((0.5,), (None,), (0,)),
        Scale(2, Ex.number(-1)),
    ]


def test_a_power_is_divided_by_a_vector() -> None:
    assert nodes(lambda t, x, y: n**-1 / x) == [
        Nonlin(Fn(Var(0) ** -1, 1), (0,)),
        Scale(2, Ex.number(-1)),
    ]


def test_constant_functions_are_vectors() -> None:
    assert nodes(lambda t, x, y: x**0) == [Nonlin(Fn(const(1), 1), (0,))]


def test_a_sum_carries_the_line_of_the_sum() -> None:
    lines = {}

    def function(t: Tracer) -> Vector:
        x, y = t.gaussians(["x", "y"])
        total = x + y
        lines["sum"] = function.__code__.co_firstlineno + 2
        return relu(total)

    found = traced(function)
    assert found.where[2] == f"test_vectors.py:{lines['sum']}"


REFUSED = [
    (lambda t, x, y: x @ y, r"x @ y: .*t\.inner\(x, y\)"),
    (lambda t, x, y: x @ 3, r"x @ the number 3"),
    (lambda t, x, y: np.eye(2) @ x, r"array of shape \(2, 2\) .* matmul"),
    (lambda t, x, y: [1.0] @ x, r"a list @ x"),
    (lambda t, x, y: x @ t.matrix("W").T, r"Write W @ x\."),
    (lambda t, x, y: np.float64(0) < x, r"cannot be compared"),
    (lambda t, x, y: x == y, r"cannot be compared"),
    (lambda t, x, y: x != y, r"cannot be compared"),
    (lambda t, x, y: x in [y], r"cannot be compared"),
    (lambda t, x, y: x if x else y, r"no truth value"),
    (lambda t, x, y: 1.0 in x, r"run through"),
    (lambda t, x, y: np.add.reduce([x, y]), r"cannot hold it"),
    (lambda t, x, y: np.mean(x), r"cannot go through numpy's mean"),
    (lambda t, x, y: float("nan") * x, r"the number nan is not finite"),
    (lambda t, x, y: x + np.inf, r"the number inf is not finite"),
    (lambda t, x, y: np.float64("nan") * x, r"the number nan is not finite"),
    (lambda t, x, y: 10**400 * x, r"401 digits\) is not finite"),
    (lambda t, x, y: 10**5000 * x, r"4300 digits is not finite"),
    (lambda t, x, y: 1e200 * (1e200 * x) + y, r"coefficients of inf\*x \+ y leave the range"),
    (lambda t, x, y: np.ones(2) * x, r"array of shape \(2,\).*multiply"),
    (lambda t, x, y: x * np.ones(2), r"array of shape \(2,\) cannot be multiplied"),
    (lambda t, x, y: x * 1j, r"a complex cannot be multiplied"),
    (lambda t, x, y: None + x, r"a vector and None cannot be added"),
    (lambda t, x, y: "a" - x, r"the text 'a' and a vector cannot be subtracted"),
    (lambda t, x, y: [1] * x, r"a list cannot be multiplied"),
    (lambda t, x, y: x / [1], r"a list cannot be divided"),
    (lambda t, x, y: x + n, r"a vector and a power of n cannot be added"),
    (lambda t, x, y: n - x, r"a power of n and a vector cannot be subtracted"),
    (lambda t, x, y: x + t.matrix("W"), r"matrix.*cannot be added"),
    (lambda t, x, y: x * Var(0), r"the function x0 cannot be multiplied"),
    (lambda t, x, y: x / 0, r"divided by the number 0"),
    (lambda t, x, y: x / (0 * n), r"division by the number 0"),
    (lambda t, x, y: x**y, r"cannot be raised to a vector.*exp\(y \* log\(x\)\)"),
    (lambda t, x, y: 2**x, r"the number 2 cannot be raised to a vector"),
    (lambda t, x, y: x**0.1234567891, r"not a short decimal"),
    (lambda t, x, y: x ** "half", r"must be a number, not 'half'"),
    (lambda t, x, y: x ** [1], r"the exponent must be a real number, not a list"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_refusals_name_the_line(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        nodes(function)
    line = function.__code__.co_firstlineno
    assert str(caught.value.where) == f"test_vectors.py:{line}"


def test_different_dimensions_do_not_combine() -> None:
    def function(t: Tracer) -> Any:
        t.dim("d", 2)
        x, y = t.gaussian("x"), t.gaussian("y", dim="d")
        return 2 * x + relu(y)

    with pytest.raises(DimMismatch, match=r"\(2\*x\) \+ relu\(y\)|2\*x \+ relu\(y\)") as caught:
        traced(function)
    text = str(caught.value)
    assert text.startswith(f"TPC202 test_vectors.py:{function.__code__.co_firstlineno + 3}: ")
    assert "2*x lives on 'n', relu(y) on 'd'" in text
    assert "moment" in text
    for combine in (lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x - y):
        with pytest.raises(DimMismatch):
            traced(lambda t, c=combine: (t.dim("d", 2), c(t.gaussian("x"), t.gaussian("y", "d"))))


def test_programs_do_not_mix() -> None:
    kept: list[Any] = []

    @program
    def first(t: Tracer) -> None:
        kept.extend([t.gaussian("x"), t.scalar("s", 1), t.matrix("W")])
        t.output("x", kept[0])

    first.build()
    x, s, weight = kept
    for use in (
        lambda y: x + y,
        lambda y: y * x,
        lambda y: y / x,
        lambda y: s * y,
        lambda y: y + s,
        lambda y: weight @ y,
    ):
        with pytest.raises(TraceError, match=r"of the program '.*' meets .* of '.*'"):
            traced(lambda t, use=use: use(t.gaussian("y")))
    with pytest.raises(TraceError, match="meets what is of 'whole'"):
        traced(lambda t: x)
    with pytest.raises(TraceError, match="the program 'first' is finished"):
        relu(x)


def test_representations_speak_the_users_names() -> None:
    shown: list[str] = []

    def function(t: Tracer) -> Vector:
        x, weight, s = t.gaussian("x"), t.matrix("W"), t.scalar("s", 1)
        h = n**-0.5 * (weight @ relu(1 + x))
        handles = (x, h, h - x / 2, 2 * s * h - x + x * h + h, weight.T, t.inner(x, h), s**2 + 1)
        shown.extend(map(repr, handles))
        return h

    traced(function)
    assert shown == [
        "<Vector x on 'n'>",
        "<Vector n**(-1/2) * (W @ relu(...)) on 'n'>",
        "<Vector (n**(-1/2) * (W @ ...)) - 1/2*x on 'n'>",
        "<Vector 2*s*(n**(-1/2) * (W @ ...)) - x + x*(n**(-1/2) * ...) + ... on 'n'>",
        "<Matrix W.T from 'n' to 'n'>",
        "<Scalar mean(x*(n**(-1/2) * (W @ ...)))>",
        "<Scalar 1 + s**2>",
    ]


@pytest.mark.parametrize("terms", [255, 256, 257, 2000])
def test_long_sums_keep_every_term(terms: int) -> None:
    def function(t: Tracer) -> Vector:
        vectors = t.gaussians([f"x{i}" for i in range(terms)])
        total: Any = 0
        for number, vector in enumerate(vectors, 1):
            total = total + number * vector
        return total

    found = traced(function)
    draws = draw(found, 3, np.random.default_rng(0))
    total = sum(number * row for number, row in enumerate(draws.values(), 1))
    np.testing.assert_allclose(run(found, 3, draws)["out"], total, rtol=1e-9)
    assert max(len(node.vectors) for node in found.nodes if isinstance(node, LinComb)) <= 257


def test_doubling_a_sum_stays_small() -> None:
    def function(t: Tracer) -> Vector:
        x = t.gaussian("x")
        for _ in range(100):
            x = x + x
        return x

    found = traced(function)
    assert len(found.nodes) < 100
    x = np.ones(1)
    assert run(found, 1, {"x[0]": x})["out"] == 2.0**100 * x


@pytest.mark.slow
def test_deep_programs_build_without_recursion_and_in_seconds() -> None:
    @program
    def deep(t: Tracer) -> None:
        weight, h = t.matrix("W"), t.gaussian("h")
        for _ in range(25_000):
            h = h + n**-0.5 * (weight @ tanh(h))
        t.output("h", h)

    start = time.process_time()
    count = len(deep.nodes)
    assert count == 100_002
    assert time.process_time() - start < 30  # 3 s on an idle machine; a quadratic cost, hours
