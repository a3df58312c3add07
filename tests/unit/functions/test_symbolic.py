"""Expressions to sympy for display, and user-given sympy expressions back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from properties.programs import polynomials

from tpcalc.errors import ProgramError, TraceError, UnknownName
from tpcalc.functions import Atom, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import power
from tpcalc.functions.symbolic import from_sympy, to_sympy
from tpcalc.functions.tape import evaluate

Z, W = sympy.Symbol("z", real=True), sympy.Symbol("w", real=True)
SYMBOLS = {Z: Var(0), W: Par(0)}

_NUMPY: dict[str, tuple[Any, Any]] = {
    "exp": (lambda xp, z: xp.exp(z), sympy.exp),
    "log": (lambda xp, z: xp.log(z), sympy.log),
    "sin": (lambda xp, z: xp.sin(z), sympy.sin),
    "cos": (lambda xp, z: xp.cos(z), sympy.cos),
    "tanh": (lambda xp, z: xp.tanh(z), sympy.tanh),
    "erf": (lambda xp, z: xp.erf(z), sympy.erf),
    "abs": (lambda xp, z: xp.abs(z), sympy.Abs),
    "sign": (lambda xp, z: xp.sign(z), sympy.sign),
    "step": (lambda xp, z: xp.where(z > 0, 1.0, 0.0), sympy.Heaviside),
    "relu": (lambda xp, z: xp.maximum(z, 0.0), lambda z: sympy.Max(0, z)),
}


def atom_of(name: str, *params: Fraction | float) -> Atom:
    if name not in _NUMPY or params:
        raise UnknownName("activation", name, _NUMPY)
    evaluated, shown = _NUMPY[name]
    return Atom(name, evaluated, None, sympy=shown)


def read(expression: Any) -> Expr:
    return from_sympy(expression, SYMBOLS, atom_of)


@pytest.mark.parametrize(
    "expression",
    [
        Z**2 / 2 - 3 * Z * W + sympy.Rational(1, 7),
        sympy.Max(0, Z),
        sympy.Max(Z, W, sympy.Rational(1, 2)),
        sympy.Min(Z, W, 1),
        sympy.sinh(Z) + 2 * sympy.cosh(W * Z),
        sympy.exp(-(Z**2)) * sympy.sin(Z) + sympy.cos(W),
        sympy.tanh(Z) ** 3 - sympy.erf(Z / sympy.sqrt(2)) + sympy.erfc(W),
        sympy.Abs(Z) + sympy.sign(Z) + sympy.Heaviside(Z - W),
        sympy.log(1 + sympy.exp(Z)),
        1 / (1 + sympy.exp(-Z)),
        sympy.sqrt(1 + Z**2) ** 3,
        sympy.pi * Z + sympy.E + sympy.log(2) * W,
        sympy.Float("0.3") * Z,
        (1 + Z**2) ** sympy.Float(0.25),
        sympy.Integer(0),
        2.5,
    ],
    ids=str,
)
@pytest.mark.parametrize("point", [(0.7, 0.4), (-1.3, 1.9), (1.1, -0.6)])
def test_user_expressions_keep_their_values(expression: Any, point: tuple[float, float]) -> None:
    fn = Fn(read(expression), 1, 1)
    found = float(evaluate(fn, [np.float64(point[0])], [np.float64(point[1])]))
    exact = sympy.N(sympy.sympify(expression).subs({Z: point[0], W: point[1]}))
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-14)


def test_spelling() -> None:
    assert read(sympy.Max(0, Z)).text == "relu(x0)"
    assert read(sympy.Max(0, -Z)).text == "relu(-1*x0)"
    assert read(sympy.sqrt(Z)) == power(Var(0), Fraction(1, 2))
    assert read(sympy.sqrt(2)) == power(const(2), Fraction(1, 2))
    assert read(sympy.Function("tanh")(Z)).text == "tanh(x0)"
    assert read(Z**-1).text == "x0**(-1)"


def test_a_symbol_of_other_assumptions_is_another_symbol() -> None:
    with pytest.raises(TraceError, match=r"symbol z .* stands for nothing.*z, w.*real=True"):
        read(sympy.Symbol("z") + 1)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sympy.Piecewise((Z, Z > 0), (0, True)), r"Piecewise.*Max\(0, x\)"),
        (sympy.DiracDelta(Z), r"DiracDelta\(z\) \(DiracDelta\)"),
        (1 + sympy.gamma(Z), r"gamma\(z\) \(gamma\)"),
        (sympy.Integral(Z, Z), "Integral"),
        (sympy.tan(Z), r"tan\(z\)"),
        (Z**W, r"z\*\*w .* exponent that is not a number.*exp\(\(w\)\*log\(z\)\)"),
        (2**Z, r"2\*\*z"),
        (sympy.I * Z, "I in a sympy expression is not a finite real number"),
        (sympy.sqrt(-2), "not a finite real number"),
        (sympy.oo, "oo in a sympy expression is not a finite"),
        (sympy.nan, "nan in a sympy expression is not a finite"),
        (sympy.zoo * Z, "zoo in a sympy expression is not a finite"),
        (Z > 0, "StrictGreaterThan"),
        (sympy.Matrix([Z]), "Matrix"),
        (sympy.Function("f")(Z, W), "2 arguments"),
        ("z**2", "'z\\*\\*2' is not a sympy expression"),
        (pytest, "is not a sympy expression"),
    ],
    ids=str,
)
def test_parts_without_translation_are_named(expression: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(expression)


def test_unknown_functions_and_huge_numbers() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'relu'"):
        read(sympy.Function("rellu")(Z))
    with pytest.raises(ProgramError, match="range of a float"):
        read(sympy.Integer(10) ** 400 * Z)


@settings(max_examples=40)
@given(polynomials(1, 1))
def test_display_keeps_the_value(expr: Expr) -> None:
    shown = to_sympy(expr, [Z], [W])
    found = float(evaluate(Fn(expr, 1, 1), [np.float64(0.7)], [np.float64(0.4)]))
    # The smooth functions of this strategy show as undefined ones: put sympy's in.
    for name in ("tanh", "sin", "cos"):
        shown = shown.replace(sympy.Function(name), getattr(sympy, name))
    assert float(sympy.N(shown.subs({Z: 0.7, W: 0.4}))) == pytest.approx(found, rel=1e-9, abs=1e-9)


def test_display_of_named_functions() -> None:
    plain = Atom("phi", np.abs, None, params=(Fraction(1, 5),))
    assert str(to_sympy(plain(Var(0)), [Z])) == "phi[1/5](z)"
    assert to_sympy(atom_of("relu")(Var(0)) + Par(0) / 2, [Z], [W]) == sympy.Max(0, Z) + W / 2
    assert to_sympy(const(0.25), []) == sympy.Float(0.25)
