"""Derivatives in the sense of distributions: a jump has a Dirac delta for its slope."""

from __future__ import annotations

from tpcalc.dsl.elementwise import UserAtom
from tpcalc.errors import NotDifferentiable
from tpcalc.evaluate.closure.demand import Unknown
from tpcalc.evaluate.exact import DELTA
from tpcalc.functions import Call, Expr, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, power, substitute, walk

__all__ = ["jumps", "slope"]

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
        if sum(jumps(factor, by) for factor in expr.factors) > 1:
            raise Unknown("the slope of a product of functions that jump")
        pieces = []
        for index, factor in enumerate(expr.factors):
            inner = slope(factor, by)
            if inner != const(0):
                pieces.append(mul((*expr.factors[:index], inner, *expr.factors[index + 1 :])))
        return add(pieces) if pieces else const(0)
    if isinstance(expr, Pow):
        _refuse_jump(expr.base, by)
        inner = slope(expr.base, by)
        if inner == const(0):
            return inner
        return mul((const(expr.exponent), power(expr.base, expr.exponent - 1), inner))
    if isinstance(expr, Call):
        _refuse_jump(expr.arg, by)
        inner = slope(expr.arg, by)
        return inner if inner == const(0) else mul((_outer(expr), inner))
    return const(0)


def jumps(expr: Expr, by: Var) -> bool:
    """Whether a function may jump where one of its arguments moves.

    Args:
        expr: The function.
        by: The argument.

    Example:
        >>> from tpcalc.catalog.activations import atom
        >>> jumps(atom("step")(Var(0)) + Var(1), Var(0)), jumps(atom("relu")(Var(0)), Var(0))
        (True, False)
    """
    return any(
        isinstance(part, Call) and _is_jump(part) and any(inner == by for inner in walk(part.arg))
        for part in walk(expr)
    )


def _is_jump(call: Call) -> bool:
    try:
        call.atom.differentiate(call.arg)
    except NotDifferentiable:
        return True
    return False


def _refuse_jump(inner: Expr, by: Var) -> None:
    """The chain rule does not hold where the inner function jumps."""
    if jumps(inner, by):
        raise Unknown(f"the slope of a function of {inner.text}, which jumps")


def _outer(call: Call) -> Expr:
    """The derivative of a named function at its argument."""
    atom = call.atom
    if isinstance(atom, UserAtom):  # its derivative may be another's, and leave out a jump
        raise Unknown(f"the slope of {atom.text}, which is given as code")
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
