"""Derivatives in the sense of distributions: a jump has a Dirac delta for its slope."""

from __future__ import annotations

from tpcalc.errors import NotDifferentiable
from tpcalc.evaluate.closure.demand import Unknown
from tpcalc.evaluate.exact import DELTA
from tpcalc.functions import Call, Expr, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, power, substitute

__all__ = ["slope"]

# Jumps whose slope is known: so many times the delta at the jump.
JUMPS = {"step": 1, "sign": 2}


def slope(expr: Expr, by: Var) -> Expr:
    """The derivative of an expression, jumps included.

    Args:
        expr: A function of Gaussians.
        by: The Gaussian.

    Raises:
        Unknown: A function on the way has no derivative even so.

    Example:
        >>> from tpcalc.catalog.activations import atom
        >>> slope(atom("step")(Var(0)) * Var(1), Var(0)).text
        'x1*delta(x0)'
    """
    if expr == by:
        return const(1)
    if isinstance(expr, Add):
        return add(slope(term, by) for term in expr.terms)
    if isinstance(expr, Mul):
        pieces = []
        for index, factor in enumerate(expr.factors):
            inner = slope(factor, by)
            if inner != const(0):
                pieces.append(mul((*expr.factors[:index], inner, *expr.factors[index + 1 :])))
        return add(pieces) if pieces else const(0)
    if isinstance(expr, Pow):
        inner = slope(expr.base, by)
        if inner == const(0):
            return inner
        return mul((const(expr.exponent), power(expr.base, expr.exponent - 1), inner))
    if isinstance(expr, Call):
        inner = slope(expr.arg, by)
        return inner if inner == const(0) else mul((_outer(expr), inner))
    return const(0)


def _outer(call: Call) -> Expr:
    """The derivative of a named function at its argument."""
    atom = call.atom
    if atom.name in JUMPS and not atom.params:
        return JUMPS[atom.name] * DELTA(call.arg)
    try:
        return atom.differentiate(call.arg)
    except NotDifferentiable:
        pass
    if atom.pieces is None:
        raise Unknown(f"{atom.text} has no derivative")
    # A function that is declared by its pieces jumps where they do.
    hidden = Var(-1)
    opened = slope(atom.pieces(hidden), hidden)
    return substitute(opened, {hidden: call.arg})
