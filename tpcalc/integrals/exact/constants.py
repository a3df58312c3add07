"""Constant expressions as balls."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isfinite, pow
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, const
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Mul, Pow
from tpcalc.integrals.exact.ball import UNIT, Ball, total
from tpcalc.integrals.exact.piece import level

LARGEST_WHOLE = 1 << 53


@lru_cache(maxsize=4096)
def constant(expr: Expr) -> Any:
    """A constant expression as a ball, or as a Python integer where it is one."""
    if isinstance(expr, Const):
        value = Fraction(expr.value)
        if value.denominator == 1 and abs(value) < LARGEST_WHOLE:
            return int(value)
        near = float(value)
        return Ball(near, 0.0 if Fraction(near) == value else UNIT, 0.0, near >= 0)
    found = _ball(expr)
    if not isfinite(found.value):
        raise EvaluationError(f"the constant {expr.text} leaves the range of floats.")
    return found


def _known(expr: Expr) -> Ball:
    found = constant(expr)
    return found if isinstance(found, Ball) else Ball(float(found), positive=found >= 0)


def _ball(expr: Expr) -> Ball:
    if isinstance(expr, Add):
        return total([_known(term) for term in expr.terms])
    if isinstance(expr, Mul):
        out = _known(expr.factors[0])
        for factor in expr.factors[1:]:
            out = out * _known(factor)
        return out
    if isinstance(expr, Pow):
        base, exponent = _known(expr.base), float(expr.exponent)
        value = pow(base.value, exponent)
        error = base.error() / max(abs(base.value), 5e-324)
        spread = abs(exponent) * error * (1 + 4 * error * (1 + abs(exponent)))
        return Ball(value, 4 * UNIT + spread, 0.0, base.value > 0)
    value = level(expr)
    found = Ball(value, 16 * UNIT, 0.0, value > 0)
    if isinstance(expr, Call):
        argument = _known(expr.arg)
        error = argument.error()
        if error > 0:
            ends = [level(expr.atom(const(argument.value + way * error))) for way in (-1, 1)]
            found.absolute = 4 * max(abs(end - value) for end in ends) + 4 * UNIT * abs(value)
    return found
