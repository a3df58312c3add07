"""Activations of the user's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from unit.dsl.activations import EXP, RELU, TANH, exp, relu, tanh

from tpcalc.dsl import Tracer, function, program
from tpcalc.errors import NotDifferentiable, TraceError, UnknownName
from tpcalc.functions import Atom, Fn, Var, derivative
from tpcalc.functions.tape import evaluate

POINTS = np.array([-2.3, -0.7, 0.1, 0.9, 3.2])


def atom_of(name: str, *params: Any) -> Atom:
    return {"exp": EXP, "tanh": TANH, "relu": RELU}[name]


def slope(made: Any) -> Any:
    """The derivative at the points."""
    fn = Fn(derivative(made.expr, Var(0)), 1)
    return np.broadcast_to(evaluate(fn, [POINTS]), POINTS.shape)


@pytest.mark.parametrize(
    "given_function",
    [
        lambda z: z / (1 + exp(-z)),
        Var(0) / (1 + EXP(-Var(0))),
        sympy.Symbol("z", real=True) / (1 + sympy.exp(-sympy.Symbol("z", real=True))),
    ],
)
def test_formulas_are_differentiated(given_function: Any) -> None:
    swish = function("swish", given_function, atom_of=atom_of)
    sigmoid = 1 / (1 + np.exp(-POINTS))
    assert swish.expr == Var(0) / (1 + EXP(-Var(0)))
    assert swish.__name__ == "swish"
    assert swish(POINTS) == pytest.approx(POINTS * sigmoid)
    assert slope(swish) == pytest.approx(sigmoid + POINTS * sigmoid * (1 - sigmoid))


def test_other_activations_are_formulas() -> None:
    assert function("f", relu).expr == RELU(Var(0))
    assert function("f", RELU).expr == RELU(Var(0))
    assert function("f", np.square).expr == Var(0) ** 2
    assert function("f", sympy.Integer(3)).expr == Var(0) ** 0 * 3


@pytest.mark.parametrize(
    "derivative_given",
    [
        lambda z: 1 / np.cosh(z) ** 2,
        lambda xp, z: 4 / (xp.exp(z) + xp.exp(-z)) ** 2,
        lambda z: 1 - tanh(z) ** 2,
        1 - TANH(Var(0)) ** 2,
        1 - sympy.tanh(sympy.Symbol("y")) ** 2,
    ],
)
@pytest.mark.parametrize("code", [np.tanh, lambda z: np.tanh(z), lambda xp, z: xp.tanh(z)])
def test_code_with_a_derivative(code: Any, derivative_given: Any) -> None:
    made = function("mine", code, derivative_given, parity="odd", atom_of=atom_of)
    assert made(POINTS) == pytest.approx(np.tanh(POINTS))
    assert slope(made) == pytest.approx(1 - np.tanh(POINTS) ** 2)
    atom = made.atom
    assert (atom.text, atom.facts.parity, atom.facts.growth) == ("mine", "odd", Fraction(0))
    assert (atom.facts.value_at_zero, atom.facts.slope_at_zero) == (0.0, 1.0)


def test_code_without_a_derivative_runs_forward_only() -> None:
    made = function("hard", lambda z: np.where(z > 0.5, 1.0, z * 0))
    line = test_code_without_a_derivative_runs_forward_only.__code__.co_firstlineno + 1
    assert made(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]

    @program
    def forward(t: Tracer) -> None:
        t.output("y", made(t.gaussian("x")))

    fn = forward.nodes[-1].fn
    with pytest.raises(NotDifferentiable) as caught:
        fn.by(0)
    text = str(caught.value)
    assert text.startswith(f"TPC501 test_function.py:{line}: the function 'hard' has no derivative")
    assert "Give derivative=" in text


def test_a_constant_derivative() -> None:
    made = function("line", lambda z: np.asarray(3.0 * z), 3)
    assert slope(made).tolist() == [3.0] * 5
    surrogate = function("sign", np.sign, 1, check=False, kinks=[0])
    assert slope(surrogate).tolist() == [1.0] * 5
    assert surrogate.atom.facts.kinks == (0.0,)
    assert surrogate.atom.facts.slope_at_zero is None


@pytest.mark.parametrize(
    ("code", "growth"),
    [
        (np.tanh, 0),
        (np.abs, 1),
        (lambda z: np.where(z > 0, z, 0.0) ** 3, 3),
        (lambda z: np.sqrt(np.abs(z)), Fraction(1, 2)),
        (lambda z: np.abs(z) * np.log1p(np.abs(z)), Fraction(3, 2)),
        (lambda z: np.exp(z), None),
        (lambda z: np.exp(-(z**2)), 0),
    ],
)
def test_growth_is_measured(code: Any, growth: Any) -> None:
    atom = function("f", code).atom
    assert atom.facts.growth == growth


def test_declared_facts_make_a_named_function() -> None:
    made = function("cube", lambda z: z**3, parity="odd", homogeneity=3, growth=3)
    atom = made.atom
    assert (atom.facts.homogeneity, atom.facts.growth, atom.facts.parity) == (3, 3, "odd")
    assert slope(made) == pytest.approx(3 * POINTS**2)
    stepwise = function("stair", lambda z: Atom_step(z) * 2, kinks=[0])
    with pytest.raises(NotDifferentiable):
        slope(stepwise)


def Atom_step(z: Any) -> Any:
    from unit.dsl.activations import step

    return step(z)


def test_two_functions_of_one_name_are_not_equal() -> None:
    scale = 1.0
    first = function("f", lambda z: np.tanh(scale * z))
    scale = 2.0
    second = function("f", lambda z: np.tanh(scale * z))
    assert first.expr != second.expr
    assert first.expr == first.atom(Var(0))  # type: ignore[misc]
    made = function("tanh", lambda z: np.tanh(2 * z))
    assert made.expr != TANH(Var(0))
    assert TANH(Var(0)) != made.expr


def test_a_branch_on_the_argument_is_not_mistaken_for_a_formula() -> None:
    negative = function("flipped", lambda z: z * (-1 if isinstance(z, np.ndarray) else 1))
    assert negative(POINTS) == pytest.approx(-POINTS)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_polynomials_by_any_way_are_one_function(coefficients: list[int]) -> None:
    def horner(z: Any) -> Any:
        total: Any = 0 * z
        for coefficient in coefficients:
            total = total * z + coefficient
        return total

    z = sympy.Symbol("z", real=True)
    ways = [
        function("p", horner),
        function("p", sympy.expand(horner(z))),
        function("p", lambda xp, z: horner(z), horner_slope(coefficients)),
    ]
    for made in ways:
        assert made(POINTS) == pytest.approx(horner(POINTS))
        assert slope(made) == pytest.approx(np.polyval(np.polyder(coefficients), POINTS))


def horner_slope(coefficients: list[int]) -> Callable[[Any], Any]:
    return lambda z: np.polyval(np.polyder(coefficients), np.asarray(z))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: function("x0", np.tanh), "cannot be called 'x0'"),
        (lambda: function("my f", np.tanh), "cannot be called 'my f'"),
        (lambda: function(3, np.tanh), "cannot be called 3"),  # type: ignore[arg-type]
        (lambda: function("f", 3), "'f' must be code or a formula, not the number 3"),
        (lambda: function("f", None), "must be code or a formula, not None"),
        (lambda: function("f", Var(0) * Var(1)), "has other arguments than x0"),
        (lambda: function("f", lambda z: 1 if z > 0 else 0), "fails on an array: ValueError"),
        (lambda: function("f", lambda xp, z: xp.cosh(z)), "fails on an array: AttributeError"),
        (lambda: function("f", lambda z: "a"), "fails on an array"),
        (lambda: function("f", lambda z: z - np.mean(z)), "does not act on each coordinate"),
        (lambda: function("f", lambda z: np.sum(z * 1.0)), "does not act|fails on an array"),
        (lambda: function("f", np.sin, np.sin), "derivative of 'f' does not fit: at -1.7313"),
        (lambda: function("f", np.sin, 0), "derivative of 'f' does not fit"),
        (lambda: function("f", np.sin, "cos"), "'f_prime' must be code or a formula"),
        (lambda: function("f", np.exp, np.exp, parity="odd"), "declared odd, and its values"),
        (lambda: function("f", np.exp, homogeneity=2), "declared homogeneous of degree 2"),
        (
            lambda: function("f", np.exp, kinks=["a"]),
            "a kink of 'f' must be a number, not 'a'",
        ),
        (lambda: function("f", np.exp, growth="x"), "the growth must be a number, not 'x'"),
        (lambda: function("f", sympy.tanh(sympy.Symbol("z"))), "no function called 'tanh'"),
        (
            lambda: function("f", sympy.Symbol("a") * sympy.Symbol("b")),
            "holds the symbols a, b.*substitute numbers",
        ),
        (
            lambda: function("f", sympy.gamma(sympy.Symbol("z")), atom_of=atom_of),
            "has no translation",
        ),
    ],
)
def test_refusals_name_the_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        make()
    first = make.__code__.co_firstlineno
    assert caught.value.where in {f"test_function.py:{line}" for line in (first, first + 1)}


def test_a_sympy_expression_needs_the_catalogue_for_named_functions_only() -> None:
    z = sympy.Symbol("z")
    assert function("p", z**2 / 2).expr == Var(0) ** 2 / 2
    with pytest.raises(UnknownName):
        function("p", sympy.exp(z))


def test_sympy_stays_unloaded() -> None:
    program = "import sys; from tpcalc.dsl import function; function('f', lambda z: z * z); "
    program += "assert not {'sympy', 'torch', 'numba', 'scipy.stats'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.torch
def test_numpy_code_on_torch_tensors() -> None:
    import torch

    made = function("mine", lambda z: np.tanh(z), lambda z: 1 / np.cosh(z) ** 2)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        z = torch.linspace(-2, 2, 6, dtype=dtype).reshape(2, 3)
        found = made.atom.evaluate(torch, z)
        assert (found.dtype, found.shape) == (dtype, z.shape)
        assert torch.allclose(found, torch.tanh(z), rtol=1e-2 if dtype == torch.bfloat16 else 1e-6)
