"""Inputs, functions of several vectors, moments and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from unit.dsl.activations import RELU, TANH, nodes, relu, tanh, traced

from tpcalc.dsl import Tracer, mean, n, program
from tpcalc.errors import DimMismatch, TraceError, UnknownName
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.program.nodes import Data, Dim, Family, Input, Moment, Nonlin, OuterNonlin


@pytest.mark.parametrize("ratio", [Fraction(3, 2), "3/2", "1.5", 1.5, np.float64(1.5)])
def test_ratios_are_exact(ratio: Any) -> None:
    def function(t: Tracer) -> Any:
        assert t.dim("d", ratio) == "d"
        assert t.dim("d", Fraction(3, 2)) == "d"
        assert t.dim("n") == "n"
        return t.gaussian("x", dim="d")

    assert traced(function).dims == (Dim("n"), Dim("d", Fraction(3, 2)))


def test_scalars() -> None:
    assert traced(lambda t: t.scalar("lr", 0.1)).nodes == (Data("lr", (0.1,)),)
    found = traced(lambda t: t.random_scalar("f"))
    assert found.nodes == (Input(Family.scalar("f", Fraction(0), Fraction(1))),)


@pytest.mark.parametrize(
    ("fn", "expr"),
    [
        (RELU, RELU(Var(0))),
        (relu, RELU(Var(0))),
        (Fn(RELU(Var(0)), 1), RELU(Var(0))),
        (lambda z: tanh(z) * z, TANH(Var(0)) * Var(0)),
        (lambda z: z, Var(0)),
        (lambda z: 3, const(3)),
        (lambda z: np.float64(0.5), const(0.5)),
    ],
)
def test_functions_of_one_vector(fn: Any, expr: Any) -> None:
    assert nodes(lambda t, x, y: t.nonlin(fn, y))[-1] == Nonlin(Fn(expr, 1), (1,))
    assert nodes(lambda t, x, y: t.moment(fn, y))[-1] == Moment(Fn(expr, 1), (1,))


def test_functions_of_several_vectors_and_scalars() -> None:
    _, node = nodes(
        lambda t, x, y: t.nonlin(lambda a, b, s: tanh(a * s) - b, x, y, scalars=[t.scalar("s", 2)])
    )
    assert node == Nonlin(Fn(TANH(Var(0) * Par(0)) - Var(1), 2, 1), (0, 1), (2,))
    node = nodes(lambda t, x, y: t.moment(lambda a, s: a * s, y, scalars=(t.scalar("s", 2),)))[-1]
    assert node == Moment(Fn(Var(0) * Par(0), 1, 1), (1,), (2,))


def test_moments() -> None:
    whole = Fn(Var(0), 1)
    product = Fn(Var(0) * Var(1), 2)
    assert nodes(lambda t, x, y: t.mean(y))[-1] == Moment(whole, (1,))
    assert nodes(lambda t, x, y: mean(y))[-1] == Moment(whole, (1,))
    assert nodes(lambda t, x, y: t.moment(x * y))[-1] == Moment(whole, (2,))
    assert nodes(lambda t, x, y: t.inner(x, y))[-1] == Moment(product, (0, 1))
    assert nodes(lambda t, x, y: t.inner(y, y))[-1] == Moment(Fn(Var(0) ** 2, 1), (1,))
    assert nodes(lambda t, x, y: t.mean(x + y))[-1].fn.is_inner is False
    assert nodes(lambda t, x, y: t.inner(x, y))[-1].fn.is_inner is True


def test_outer() -> None:
    def function(t: Tracer) -> Any:
        d = t.dim("d", 2)
        x, y = t.gaussian("x"), t.gaussian("y", dim=d)
        rate = t.scalar("rate", 1)
        step = t.outer(lambda a, b, c, s: tanh(s * a * b + c), x, [y, y], y, scalars=[rate])
        assert step.dim == "n"
        return step

    node = traced(function).nodes[-1]
    fn = Fn(TANH(Par(0) * Var(0) * Var(1) + Var(2)), 3, 1)
    assert node == OuterNonlin(fn, (0,), (1, 1), (2,), 1)


def test_what_factors_in_an_outer_function_is_written_with_averages() -> None:
    """(a b + c)^2 x = a^2 mean(b^2 x) + 2 a mean(b c x) + mean(c^2 x), and tanh(a b) x is left."""

    def function(t: Tracer) -> Any:
        x, y, z = (t.gaussian(name) for name in "xyz")
        psi = lambda a, b, c: (a * b + c) ** 2 + tanh(a * b)  # noqa: E731
        return t.outer(psi, x, [y, z], z)

    nodes = traced(function).nodes
    (left,) = (node for node in nodes if isinstance(node, OuterNonlin))
    assert left.fn == Fn(TANH(Var(0) * Var(1)), 3)
    moments = [node for node in nodes if isinstance(node, Moment)]
    assert [node.fn.text for node in moments] == ["x0**2*x2", "x0*x1*x2", "x1**2*x2"]


def test_outputs_can_be_read_back() -> None:
    @program
    def whole(t: Tracer) -> None:
        t.output("h", 2 * t.gaussian("x"))
        t.output("m", t.mean(t["h"]))
        t.output("again", t["m"])

    found = whole.build()
    assert found.ref("again") == found.ref("m")
    assert found.nodes[-1] == Moment(Fn(Var(0), 1), (found.ref("h"),))
    with pytest.raises(UnknownName, match=r"test_tracer\.py:\d+: .*'hh'.*Did you mean 'h'"):
        traced(lambda t: (t.output("h", t.gaussian("x")), t["hh"]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: t.dim("d", 0), "ratio of dimension class 'd' must be positive, not 0"),
        (lambda t: t.dim("d", "-1/2"), "must be positive, not -1/2"),
        (lambda t: t.dim("d", 1 / 3), "the ratio of 'd' must be exact"),
        (lambda t: t.dim("n", 2), "'n' already has ratio 1, not 2"),
        (lambda t: t.dim("a b", 2), "cannot be called 'a b'"),
        (lambda t: t.dim(3, 2), "cannot be called 3"),
        (lambda t: t.matrix("W", rows="d"), "no dimension class called 'd'"),
        (lambda t: t.matrix("W", cols=3), "no dimension class called '3'"),
        (lambda t: t.matrix("W", law="sparse"), "the law of a matrix is 'sparse'"),
        (lambda t: (t.matrix("W"), t.matrix("W")), r"already an input called 'W', made at test_tr"),
        (lambda t: (t.gaussian("W"), t.gaussian("W")), "already an input called 'W'"),
        (lambda t: (t.scalar("s", 1), t.scalar("s", 1)), "already an input called 's'"),
        (lambda t: (t.matrix("W"), t.gaussian("W")), "already an input called 'W', made at"),
        (lambda t: (t.gaussian("s"), t.scalar("s", 1)), "already an input called 's'"),
        (lambda t: (t.scalar("W", 1), t.random_scalar("W")), "already an input called 'W'"),
        (lambda t: t.matrix(""), "'' cannot name a matrix"),
        (lambda t: t.matrix("a\nb"), "cannot name a matrix"),
        (lambda t: t.gaussian('say "x"'), "cannot name a vector.*without quotes"),
        (lambda t: t.scalar(3, 1), "the name of a scalar is a text, not the number 3"),
        (lambda t: t.scalar("s", None), "the value of 's' must be a real number, not None"),
        (lambda t: t.scalar("s", math.nan), "the value of 's': the number nan"),
        (lambda t: t.random_scalar("s", std=-1), "deviation of 's' is -1, which is negative"),
        (lambda t: t.nonlin(relu), "t.nonlin needs at least one vector"),
        (lambda t: t.nonlin(relu, 3), "t.nonlin takes vectors, not the number 3"),
        (lambda t: t.nonlin(relu, t.scalar("s", 1)), r"not a scalar.*scalars=\[\.\.\.\]"),
        (lambda t: t.nonlin(relu, t.gaussian("x"), scalars=3), "scalars= of t.nonlin are a list"),
        (
            lambda t: t.nonlin(relu, t.gaussian("x"), scalars=t.scalar("s", 1)),
            "scalars= of t.nonlin are a list, not a scalar",
        ),
        (lambda t: t.nonlin(relu, t.gaussian("x"), scalars=[3]), "hold the number 3.*t.scalar"),
        (lambda t: t.nonlin(relu, t.gaussian("x"), scalars=[None]), "hold None"),
        (lambda t: t.nonlin("relu", t.gaussian("x")), "function is needed, not the text 'relu'"),
        (lambda t: t.nonlin(np.tanh, t.gaussian("x")), r"'tanh' fails on a formula: .*tp\.tanh"),
        (lambda t: t.nonlin(lambda z: None, t.gaussian("x")), "returns None, not a formula"),
        (lambda t: t.nonlin(lambda z: t.gaussian("x"), t.gaussian("y")), "returns a vector"),
        (lambda t: t.nonlin(lambda z: math.nan, t.gaussian("y")), "nan is not finite"),
        (lambda t: t.nonlin(lambda a, b: a, t.gaussian("y")), "fails on a formula: TypeError"),
        (lambda t: t.nonlin(Fn(Var(0), 1), *t.gaussians(["a", "b"])), "takes 1 vectors and 0"),
        (lambda t: t.moment(t.gaussian("x"), t.gaussian("y")), r"or one vector alone.*t\.inner"),
        (lambda t: t.mean(3), "takes vectors, not the number 3"),
        (lambda t: mean([t.gaussian("x")]), "the mean of a list"),
        (lambda t: t.inner(t.gaussian("x"), 1), "t.inner takes vectors, not the number 1"),
        (lambda t: t.outer(relu, [], [], t.gaussian("x")), "at least one row vector"),
        (lambda t: t.output("y", 3), "the output 'y' is the number 3"),
        (lambda t: t.output("y", [t.gaussian("x")]), r"'y' is a list.*h\[0\]"),
        (lambda t: t.output("y", n), "the output 'y' is a power of n"),
        (
            lambda t: (t.output("y", t.gaussian("x")), t.output("y", t["y"])),
            "already an output called 'y', made at test_tracer",
        ),
    ],
)
def test_refusals_name_the_line(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        traced(function)
    first = function.__code__.co_firstlineno
    assert caught.value.where in {f"test_tracer.py:{line}" for line in (first, first + 1)}


@pytest.mark.parametrize(
    "combine",
    [
        lambda t, x, y: t.inner(x, y),
        lambda t, x, y: t.nonlin(lambda a, b: a + b, x, y),
        lambda t, x, y: t.moment(lambda a, b: a + b, x, y),
        lambda t, x, y: t.outer(lambda a, b: a * b, x, x, y),
        lambda t, x, y: t.outer(lambda a, b, c: a * b, [x, y], [x], x),
    ],
)
def test_dimensions_do_not_mix(combine: Callable[..., Any]) -> None:
    def function(t: Tracer) -> Any:
        t.dim("d", 2)
        return combine(t, t.gaussian("x"), t.gaussian("y", dim="d"))

    with pytest.raises(DimMismatch, match="x lives on 'n', y on 'd'") as caught:
        traced(function)
    assert caught.value.where == f"test_tracer.py:{combine.__code__.co_firstlineno}"


def test_errors_of_functions_get_the_line() -> None:
    """What is raised by a lower layer, which knows no line."""

    def deep(z: Any) -> Any:
        for _ in range(200):
            z = tanh(z + 1)
        return z

    def function(t: Tracer) -> Any:
        return t.nonlin(deep, t.gaussian("x"))

    with pytest.raises(Exception, match="nested deeper") as caught:
        traced(function)
    assert f"test_tracer.py:{function.__code__.co_firstlineno + 1}" in str(caught.value)


def test_two_functions_of_one_name_do_not_meet() -> None:
    from tpcalc.dsl import function as own

    first = own("f", lambda z: np.cosh(z))
    second = own("f", lambda z: np.sinh(z))
    with pytest.raises(TraceError, match="two different functions called 'f'"):
        traced(lambda t: first(t.gaussian("x")) + second(t.gaussian("y")))
    assert len(traced(lambda t: first(t.gaussian("x")) + first(t.gaussian("y"))).nodes) == 5
