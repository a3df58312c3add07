"""Functions given as formulas: read, as numpy code, and as polynomials with exact coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions import Const, Expr, Fn, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul
from tpcalc.functions.tape import evaluate

MOST_TERMS = 20_000
MOST_POWER = 64
CODE = "Write it with + - * / ** and the functions of tpcalc; sampled_nlc takes numpy code."


def outputs_of(function: Any, dimension: int) -> tuple[Expr, ...]:
    """The outputs of a function of d numbers that is given as formulas."""
    found = function
    if callable(function) and not isinstance(function, Expr | Fn):
        try:
            found = function(*(Var(index) for index in range(dimension)))
        except (TypeError, AttributeError, ValueError) as error:
            raise UsageError(
                f"the function does not take {dimension} formulas: {error}.", hint=CODE
            ) from None
    parts = list(found) if isinstance(found, list | tuple) else [found]
    if not parts:
        raise UsageError("the function has no outputs.")
    return tuple(_output(part, dimension) for part in parts)


def _output(part: Any, dimension: int) -> Expr:
    expr = part.expr if isinstance(part, Fn) else part
    if isinstance(expr, int | float | Fraction) and not isinstance(expr, bool):
        expr = const(expr)
    if not isinstance(expr, Expr):
        raise UsageError(f"an output is a {type(part).__name__}, not a formula.", hint=CODE)
    vectors, scalars = Fn(expr, 2**31, 2**31).uses
    if scalars or any(index >= dimension for index in vectors):
        raise UsageError(
            f"{expr.text} uses numbers that are not there; the law has {dimension}: "
            f"x0 to x{dimension - 1}."
        )
    return expr


def numpy_form(
    function: Any, dimension: int = 1
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """A function given as formulas, and its Jacobian, as code on batches of inputs."""
    outputs = outputs_of(function, dimension)
    forms = [Fn(part, dimension) for part in outputs]
    slopes = [[form.by(index) for index in range(dimension)] for form in forms]

    def column(form: Fn, x: Array) -> Array:
        found = evaluate(form, [x[:, index] for index in range(dimension)])
        return np.broadcast_to(np.asarray(found, dtype=float), (len(x),))

    def values(x: Array) -> Array:
        return np.stack([column(form, x) for form in forms], axis=1)

    def jacobian(x: Array) -> Array:
        rows = [np.stack([column(slope, x) for slope in row], axis=1) for row in slopes]
        return np.stack(rows, axis=1)

    return values, jacobian


def polynomial(expr: Expr, size: int) -> Any:
    """A formula of x0, ... as an element of a ring of polynomials; None where it is none."""
    import sympy

    ring, *numbers = sympy.ring([f"x{index}" for index in range(size)], sympy.QQ)
    return _read(expr, ring, numbers)


def _read(expr: Expr, ring: Any, numbers: Sequence[Any]) -> Any:
    if isinstance(expr, Const):
        return ring(fraction(Fraction(expr.value)))
    if isinstance(expr, Var):
        return numbers[expr.index]
    if isinstance(expr, Add):
        parts = [_read(term, ring, numbers) for term in expr.terms]
        return None if any(part is None for part in parts) else sum(parts, ring.zero)
    if isinstance(expr, Mul):
        return _product((_read(factor, ring, numbers) for factor in expr.factors), ring.one)
    if isinstance(expr, Pow) and expr.exponent.denominator == 1 and 0 < expr.exponent <= MOST_POWER:
        return _product([_read(expr.base, ring, numbers)] * int(expr.exponent), ring.one)
    return None


def _product(factors: Iterable[Any], total: Any) -> Any:
    for factor in factors:
        if factor is None or len(total) * len(factor) > MOST_TERMS:
            return None
        total = total * factor
    return total


def fraction(value: Fraction) -> Any:
    """A number as coefficients have it."""
    import sympy

    return sympy.QQ(value.numerator, value.denominator)


def expanded(expr: Expr, size: int) -> Expr:
    """A polynomial written as a sum of monomials; another formula as it is."""
    found = polynomial(expr, size)
    if found is None:
        return expr
    return add(
        mul((const(exact(value)), *(Var(i) ** power for i, power in enumerate(powers))))
        for powers, value in found.terms()
    )


def exact(value: Any) -> Fraction:
    """A coefficient as a fraction."""
    return Fraction(int(value.numerator), int(value.denominator))
