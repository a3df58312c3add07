"""Terms of an entrywise function that are a product of rows and of columns: no matrix is needed.

A sum of forms is a sum of outer products, and the sign of one product is the product of signs; both
are exact at every width.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tpcalc.functions import Call, Const, Expr, Var
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Add, Mul, add
from tpcalc.functions.numbers import Number

__all__ = ["Separable", "separated"]

# A number, the place of the pair, and what rows and columns go through.
Separable = tuple[Number, int, Atom | None]


def separated(expr: Expr, forms: Sequence[int]) -> tuple[list[Separable], Expr]:
    """The terms of a function of forms that separate, and the sum of the others.

    Args:
        expr: The function; argument s is the form s.
        forms: For each pair of a row and a column the form that it is part of.

    Example:
        >>> found, rest = separated(2 * Var(0) + Var(1) ** 2, [0, 0, 1])
        >>> found, rest.text
        ([(Fraction(2, 1), 0, None), (Fraction(2, 1), 1, None)], 'x1**2')
    """
    found: list[Separable] = []
    left: list[Expr] = []
    for term in expr.terms if isinstance(expr, Add) else (expr,):
        number, rest = _scaled(term)
        atom = rest.atom if isinstance(rest, Call) and _is_sign(rest.atom) else None
        inside = rest.arg if isinstance(rest, Call) and atom is not None else rest
        pairs = [k for k, form in enumerate(forms) if inside == Var(form)]
        if isinstance(inside, Var) and (atom is None or len(pairs) == 1):
            found += [(number, pair, atom) for pair in pairs]
        else:
            left.append(term)
    return found, add(left)


def _is_sign(atom: Atom) -> bool:
    """Whether f(x y) = f(x) f(y): odd, of degree 0, and 1 above 0."""
    return atom.facts.parity == "odd" and atom.facts.homogeneity == 0 and atom.facts.least == -1


def _scaled(term: Expr) -> tuple[Number, Expr]:
    if isinstance(term, Mul) and isinstance(term.factors[0], Const) and len(term.factors) == 2:
        return term.factors[0].value, term.factors[1]
    return Fraction(1), term
