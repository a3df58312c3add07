"""Scalars."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from unit.dsl.activations import EXP, exp

from tpcalc.dsl import L, Scalar, Tracer, n, program
from tpcalc.errors import TraceError
from tpcalc.exponents import Ex
from tpcalc.functions import Fn, Par, const
from tpcalc.program.nodes import Data, Family, Input, Nonlin, Scale


def nodes(function: Callable[[Tracer, Scalar, Scalar], Any]) -> list[Any]:
    """The nodes after two scalars a (%0) and b (%1)."""

    @program
    def whole(t: Tracer) -> None:
        a, b = t.scalar("a", 2), t.random_scalar("b", mean=0.5, std=3)
        t.output("a", a)
        t.output("b", b)
        t.output("out", function(t, a, b))

    assert whole.nodes[:2] == (
        Data("a", (Fraction(2),)),
        Input(Family.scalar("b", 0.5, Fraction(3))),
    )
    return list(whole.nodes[2:])


@pytest.mark.parametrize(
    ("function", "expr", "scalars"),
    [
        (lambda a, b: a + b, Par(0) + Par(1), (0, 1)),
        (lambda a, b: a - b, Par(0) - Par(1), (0, 1)),
        (lambda a, b: b * a, Par(0) * Par(1), (1, 0)),
        (lambda a, b: a / b, Par(0) / Par(1), (0, 1)),
        (lambda a, b: a + a, 2 * Par(0), (0,)),
        (lambda a, b: a - a, const(0), (0,)),
        (lambda a, b: a * a, Par(0) ** 2, (0,)),
        (lambda a, b: a / a, Par(0) / Par(1), (0, 0)),
        (lambda a, b: a + 1, Par(0) + 1, (0,)),
        (lambda a, b: 1 + a, Par(0) + 1, (0,)),
        (lambda a, b: a - 0.5, Par(0) - 0.5, (0,)),
        (lambda a, b: Fraction(1, 2) - a, Fraction(1, 2) - Par(0), (0,)),
        (lambda a, b: 0 - a, -Par(0), (0,)),
        (lambda a, b: 3 * a, 3 * Par(0), (0,)),
        (lambda a, b: a * 0, const(0), (0,)),
        (lambda a, b: np.float64(0.25) * a, 0.25 * Par(0), (0,)),
        (lambda a, b: a / 2, Par(0) / 2, (0,)),
        (lambda a, b: 2 / a, 2 / Par(0), (0,)),
        (lambda a, b: a**3, Par(0) ** 3, (0,)),
        (lambda a, b: a ** "1/2", Par(0) ** Fraction(1, 2), (0,)),
        (lambda a, b: -a, -Par(0), (0,)),
        (lambda a, b: exp(b), EXP(Par(0)), (1,)),
    ],
)
def test_arithmetic(function: Callable[..., Any], expr: Any, scalars: Any) -> None:
    found = nodes(lambda t, a, b: function(a, b))
    assert found == [Nonlin(Fn(expr, 0, len(scalars)), (), scalars)]


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + 0,
        lambda a: 0 + a,
        lambda a: a - 0,
        lambda a: 1 * a,
        lambda a: a**1,
        lambda a: +a,
        lambda a: n * (a / n),
    ],
)
def test_what_changes_nothing_records_nothing(function: Callable[[Scalar], Any]) -> None:
    assert nodes(lambda t, a, b: function(a)) == []


def test_powers_of_n_and_L() -> None:
    found = nodes(lambda t, a, b: n**-1 * (a * L) / n)
    assert found == [Scale(0, Ex.number(-2), Ex.number(1))]
    assert nodes(lambda t, a, b: n / a) == [
        Nonlin(Fn(Par(0) ** -1, 0, 1), (), (0,)),
        Scale(2, Ex.number(1)),
    ]
    assert nodes(lambda t, a, b: 2 * n * a) == [
        Nonlin(Fn(2 * Par(0), 0, 1), (), (0,)),
        Scale(2, Ex.number(1)),
    ]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t, a, b: a @ b, "a scalar @ a scalar: @ applies a matrix"),
        (lambda t, a, b: t.gaussian("x") @ a, "x @ a scalar"),
        (lambda t, a, b: a @ t.gaussian("x"), "a scalar @ a vector"),
        (lambda t, a, b: a @ t.matrix("W"), "a scalar @ a matrix"),
        (lambda t, a, b: a / 0, "divided by the number 0"),
        (lambda t, a, b: a + None, "a scalar and None cannot be added"),
        (lambda t, a, b: [1] - a, "a list and a scalar cannot be subtracted"),
        (lambda t, a, b: a + n, "a scalar and a power of n cannot be added"),
        (lambda t, a, b: a + t.matrix("W"), "cannot be added"),
        (lambda t, a, b: t.matrix("W") + a, "cannot be added"),
        (lambda t, a, b: a**b, "a scalar cannot be raised to a scalar"),
        (lambda t, a, b: 2**a, r"the number 2 cannot be raised to a scalar.*tp\.exp"),
        (lambda t, a, b: a * float("inf"), "inf is not finite"),
        (lambda t, a, b: a if a > 0 else b, "cannot be compared"),
        (lambda t, a, b: a if a else b, "no truth value"),
        (lambda t, a, b: float(a), "is not a number"),
        (lambda t, a, b: np.exp(a), r"numpy's exp.*tp\.exp"),
    ],
)
def test_refusals_name_the_line(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        nodes(function)
    assert caught.value.where == f"test_handles.py:{function.__code__.co_firstlineno}"
