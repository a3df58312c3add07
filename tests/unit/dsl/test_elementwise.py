"""Activations as functions of vectors, scalars, expressions, numbers and arrays."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from unit.dsl.activations import RELU, STEP, TANH, relu, step, tanh

from tpcalc.dsl import Elementwise, Tracer, elementwise, n, program
from tpcalc.errors import TraceError
from tpcalc.functions import Fn, Par, Var
from tpcalc.program.nodes import Nonlin

swish = Elementwise("swish", Var(0) * TANH(Var(0)), "The docstring.")


def test_on_handles() -> None:
    @program
    def whole(t: Tracer) -> None:
        x, s = t.gaussian("x"), t.scalar("s", 2)
        t.output("x", relu(x))
        t.output("s", swish(s))
        for i, vector in enumerate(tanh([x, x])):
            t.output(f"list {i}", vector)

    nodes = whole.nodes
    assert nodes[whole.ref("x")] == Nonlin(Fn(RELU(Var(0)), 1), (0,))
    assert nodes[whole.ref("s")] == Nonlin(Fn(Par(0) * TANH(Par(0)), 0, 1), (), (1,))
    assert whole.ref("list 0") == whole.ref("list 1")
    assert nodes[whole.ref("list 0")] == Nonlin(Fn(TANH(Var(0)), 1), (0,))


def test_on_expressions() -> None:
    assert relu(Var(1) + 1) == RELU(Var(1) + 1)
    assert swish(Par(0)) == Par(0) * TANH(Par(0))


@pytest.mark.parametrize("number", [2, 2.0, Fraction(2), np.float64(2), np.array(2), np.int64(2)])
def test_on_numbers(number: Any) -> None:
    found = tanh(number)
    assert type(found) is float
    assert found == np.tanh(2.0)


def test_on_arrays() -> None:
    z = np.linspace(-2, 2, 6).reshape(2, 3)
    assert np.array_equal(swish(z), z * np.tanh(z))
    assert np.array_equal(relu([-1, 2]), [0.0, 2.0])
    assert np.array_equal(relu(np.array([-1, 2])), [0.0, 2.0])
    constant = Elementwise("one", Var(0) ** 0)
    assert np.array_equal(constant(z), np.ones((2, 3)))
    constant(z)[0, 0] = 5  # an array of its own
    assert tanh([]).shape == (0,)
    assert relu([Fraction(1, 2), -1]).tolist() == [0.5, 0.0]


def test_description() -> None:
    assert (relu.__name__, relu.atom, swish.atom) == ("relu", RELU, None)
    assert inspect.getdoc(swish) == "The docstring."
    assert "z:" in (inspect.getdoc(relu) or "")
    assert repr(swish) == "<function swish: x0 -> x0*tanh(x0)>"
    assert elementwise(TANH, "Mine.").__doc__ == "Mine."
    assert elementwise(swish)(0.5) == swish(0.5)
    assert elementwise(STEP)(3.0) == step(3.0) == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("text", "relu cannot take the text 'text'"),
        (None, "relu cannot take None"),
        (n, "relu cannot take a power of n"),
        ([None], "relu cannot take a list"),
        (["a"], "relu cannot take a list"),
        ([[1.0], [1.0, 2.0]], "relu cannot take a list"),
        (np.array([1j]), r"relu cannot take an array of shape \(1,\)"),
        (1j, "relu cannot take a complex"),
        (float("nan"), "nan is not finite"),
    ],
)
def test_refusals(wrong: Any, message: str) -> None:
    with pytest.raises(TraceError, match=rf"test_elementwise\.py:\d+: .*{message}"):
        relu(wrong)


@pytest.mark.parametrize("wrong", [None, "relu", lambda z: None])
def test_what_is_no_activation(wrong: Any) -> None:
    with pytest.raises(TraceError, match=r"an activation is needed.*tp\.function"):
        elementwise(wrong)
