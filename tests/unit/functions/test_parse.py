"""Reading expressions: the grammar, and what it refuses. (Round trips: tests/properties.)"""

from __future__ import annotations

from fractions import Fraction

import pytest
from properties.programs import RELU, TANH, atoms, leaky_relu

from tpcalc.errors import ProgramError, UnknownName
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul, power
from tpcalc.functions.parse import parse_fn


def read(text: str) -> Expr:
    return parse_fn(text, 3, 2, atoms).expr


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("2*x0*tanh(x1)**2 + 1/2*s0", 2 * Var(0) * TANH(Var(1)) ** 2 + Par(0) / 2),
        ("leaky_relu[1/5](x0)", leaky_relu(Fraction(1, 5))(Var(0))),
        ("leaky_relu[-0.3](x0)", leaky_relu(-0.3)(Var(0))),
        ("x0**(1/2)", power(Var(0), Fraction(1, 2))),
        ("-x0**2", -(Var(0) ** 2)),
        ("(-1)*x0", -Var(0)),
        ("+x0 - x1 - -x2", Var(0) - Var(1) + Var(2)),
        ("x0/x1/2", Var(0) / Var(1) / 2),
        ("1e-05*x0 + -2.5e+20", 1e-05 * Var(0) - 2.5e20),
        ("  relu( x0 )  ", RELU(Var(0))),
        ("7", const(7)),
        ("0.5", const(0.5)),
    ],
)
def test_grammar(text: str, expr: Expr) -> None:
    assert read(text) == expr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an expression"),
        ("x0 +", "is not an expression"),
        ("x0 x1", "is not an expression"),
        ("y", "'y' is no argument"),
        ("x00", "'x00' is no argument"),
        ("tanh", "'tanh' is no argument; a function needs brackets"),
        ("tanh(x0, x1)", "takes one argument"),
        ("tanh()", "takes one argument"),
        ("tanh(z=x0)", "takes one argument"),
        ("tanh(*x0)", "has no meaning"),
        ("(tanh)(x0)(x1)", "is not the name of a function"),
        ("leaky_relu[x0](x1)", "the parameter x0 is not a number"),
        ("x0**x1", "the exponent x1 is not a rational number"),
        ("x0**0.5", "the exponent 0.5 is not a rational number"),
        ("x0 % 2", "uses an operator that is not known"),
        ("x0 @ x1", "uses an operator that is not known"),
        ("x0 if x1 else x2", "has no meaning"),
        ("x0.real", "has no meaning"),
        ("[x0]", "has no meaning"),
        ("not x0", "has no meaning"),
        ("True", "True is not a real number"),
        ("'x0'", "is not a real number"),
        ("1j", "is not a real number"),
        ("1/0", "division by the constant 0"),
        ("1e999", "range of a float"),
        ("1" * 5000, "is not an expression"),
        ("x0\0", "is not an expression"),
        ("x3", "uses x3 but has 3 vector arguments"),
        ("s2", "uses s2 but has 2 scalar arguments"),
        ("(" * 300 + "x0" + ")" * 300, "is not an expression"),
        ("-" * 5000 + "x0", "is not an expression"),
        ("__import__('os').getcwd()", "takes one argument"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        read(text)


def test_unknown_functions_come_with_near_names() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'relu'"):
        read("relo(x0)")
    with pytest.raises(UnknownName):
        read("tanh[2](x0)")


@pytest.mark.parametrize("build", [add, mul])
def test_long_sums_and_products_read_back(build: object) -> None:
    parts = [TANH(Var(0) + index) for index in range(2, 1500 if build is mul else 7000)]
    fn = Fn(build(parts), 1)  # type: ignore[operator]
    assert parse_fn(fn.text, 1, 0, atoms) == fn


def test_a_sum_inside_a_bracket_has_a_limit_that_is_told() -> None:
    fn = Fn(TANH(add([TANH(Var(0) + index) for index in range(5000)])), 1)
    with pytest.raises(ProgramError, match="nested too deeply"):
        parse_fn(fn.text, 1, 0, atoms)
