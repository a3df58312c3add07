"""Homogeneity read off an expression: tau(c s) = c^p tau(s) for every c > 0."""

from __future__ import annotations

from fractions import Fraction
from numbers import Rational

import numpy as np

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Pow, Var, add
from tpcalc.functions.fn import Fn
from tpcalc.functions.tape import evaluate


def degree(expr: Expr) -> Fraction | None:
    """The p with f(c s) = c^p f(s) for every c > 0; None where none is seen.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> degree(2 * lookup("relu").fn.expr), degree(lookup("tanh").fn.expr)
        (Fraction(1, 1), None)
        >>> degree(Var(0) ** 3 - 2 * Var(0) ** 3), degree(1 + Var(0))
        (Fraction(3, 1), None)
    """
    match expr:
        case Var():
            return Fraction(1)
        case Const():
            return Fraction(0)
        case Call(atom=atom, arg=arg):
            own, inner = atom.facts.homogeneity, degree(arg)
            return None if not isinstance(own, Rational) or inner is None else Fraction(own) * inner
        case Pow(base=base, exponent=exponent):
            inner = degree(base)
            return None if inner is None else inner * exponent
        case Mul(factors=factors):
            known = [own for own in map(degree, factors) if own is not None]
            return sum(known, Fraction(0)) if len(known) == len(factors) else None
        case Add(terms=terms):
            found = set(map(degree, terms))
            return found.pop() if len(found) == 1 else None
    return None


def slopes_of(expr: Expr) -> tuple[float, float] | None:
    """The slopes above and below 0 of a function that is linear on both sides; None if it is not.

    Example:
        >>> slopes_of(2 * Var(0))
        (2.0, 2.0)
    """
    if degree(expr) != 1:
        return None
    up, down = np.broadcast_to(evaluate(Fn(expr, 1), [np.array([1.0, -1.0])]), (2,))
    return float(up), -float(down)


def varying(tau: Expr) -> Expr:
    """A function without its constant term.

    Example:
        >>> varying(Var(0) ** 2 - 1).text
        'x0**2'
    """
    if not isinstance(tau, Add):
        return tau
    return add(term for term in tau.terms if not isinstance(term, Const))
