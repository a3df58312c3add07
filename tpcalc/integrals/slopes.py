"""Derivatives in the sense of distributions: a jump has a Dirac delta for its slope."""

from __future__ import annotations

from contextlib import suppress

from tpcalc.dsl.elementwise import UserAtom
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Call, Expr, Var, derivative
from tpcalc.functions.expr import Mul, Pow, substitute, walk
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.exact import DELTA

# Jumps whose slope is known: so many times the delta at the jump.
JUMPS = {"step": 1, "sign": 2}


def slope(expr: Expr, by: Var) -> Expr:
    """The derivative of an expression, jumps included.

    Example:
        >>> from tpcalc.activations.entries import atom
        >>> slope(atom("step")(Var(0)) * Var(1), Var(0)).text
        'x1*delta(x0)'
    """
    for part in walk(expr):
        if isinstance(part, Mul) and sum(jumps(factor, by) for factor in part.factors) > 1:
            raise Unknown("the slope of a product of functions that jump")
        if isinstance(part, Pow | Call):
            _refuse_jump(part.base if isinstance(part, Pow) else part.arg, by)
    return derivative(expr, by, _outer)


def jumps(expr: Expr, by: Var) -> bool:
    """Whether a function may jump where one of its arguments moves.

    Example:
        >>> from tpcalc.activations.entries import atom
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
    with suppress(NotDifferentiable):
        return atom.differentiate(call.arg)
    if atom.pieces is None:
        raise Unknown(f"{atom.text} has no derivative")
    # A function that is declared by its pieces jumps where they do.
    hidden = Var(-1)
    opened = slope(atom.pieces(hidden), hidden)
    return substitute(opened, {hidden: call.arg})
