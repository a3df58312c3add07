"""Functions of coordinates, as users hand them over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.dsl.elementwise import Elementwise
from tpcalc.dsl.operands import Number, Operand, misuse, noun, number_or_none
from tpcalc.errors import TpcalcError
from tpcalc.functions import Atom, Expr, Fn, Par, Var, const

Coordinatewise = Elementwise | Atom | Fn | Callable[..., Any]


def formula_of(fn: Coordinatewise, vectors: int, scalars: int) -> Fn:
    """The function that a user hands over for one of coordinates."""
    if isinstance(fn, Fn):
        if (fn.vectors, fn.scalars) != (vectors, scalars):
            raise misuse(
                f"{fn.text} takes {fn.vectors} vectors and {fn.scalars} scalars; {vectors} and "
                f"{scalars} are given."
            )
        return fn
    if not callable(fn):
        raise misuse(
            f"a coordinatewise function is needed, not {noun(fn)}.",
            "Give an activation, or a Python function of the coordinates.",
        )
    return Fn(_formula(fn, vectors, scalars), vectors, scalars)


def _formula(fn: Callable[..., Any], vectors: int, scalars: int) -> Expr:
    """What a Python function computes from one coordinate of each vector, and the scalars."""
    name = getattr(fn, "__name__", type(fn).__name__)
    arguments = [*map(Var, range(vectors)), *map(Par, range(scalars))]
    try:
        found = fn(*arguments)
    except TpcalcError:
        raise
    except Exception as error:  # whatever the user's code raises is the news here
        raise misuse(
            f"the function {name!r} fails on a formula: {type(error).__name__}: {error}.",
            "Write it with operators and tpcalc functions (tp.tanh, not np.tanh), or make an "
            "activation of numpy code with tp.function(name, evaluate, derivative=...).",
        ) from error
    value: Number | None = None if isinstance(found, Expr | Operand) else number_or_none(found)
    if value is not None:
        return const(value)
    if not isinstance(found, Expr):
        raise misuse(
            f"the function {name!r} returns {noun(found)}, not a formula of its arguments.",
            "Hand vectors and scalars over as arguments; inside, use operators and tpcalc "
            "functions.",
        )
    return found
