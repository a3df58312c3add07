"""A function of one Gaussian as a sum of pieces that can be integrated.

A piece is a polynomial times an exponential of degree two, half-lines, a wave, a Dirac delta, or a
real power of the positive part. The distribution function of N(0, 1) is a half-line as well, of the
argument plus noise of its own: Phi(z) = P(N < z). Every atom says in its ``pieces`` what it is made
of; the atoms it may be made of are named in ``primitives``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tpcalc.activations.entries.relu import RELU
from tpcalc.functions import Expr
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Mul, Par, Pow, Var, add, mul, power, walk
from tpcalc.integrals.exact.piece import ONE, PLAIN, ZERO, Piece, Pieces, Polynomial, Unsupported
from tpcalc.integrals.exact.primitives import positive_power, primitive
from tpcalc.integrals.exact.products import combined, product, total, whole_power


@lru_cache(maxsize=2048)
def decompose(expr: Expr) -> Pieces:
    """The pieces of a function of ``Var(0)``."""
    if not any(isinstance(part, Var) for part in walk(expr)):
        exact = _exact(expr)
        return {} if exact == ZERO else {PLAIN: {0: exact}}
    if isinstance(expr, Var) and expr.index == 0:
        return {PLAIN: {1: ONE}}
    if isinstance(expr, Add):
        return combined(total([decompose(term) for term in expr.terms]))
    if isinstance(expr, Mul):
        out: Pieces = {PLAIN: {0: ONE}}
        for factor in expr.factors:
            out = product(out, decompose(factor))
        return combined(out)
    if isinstance(expr, Pow):
        return combined(_power(expr))
    if isinstance(expr, Call):
        if expr.atom.pieces is not None:
            return combined(decompose(expr.atom.pieces(expr.arg)))
        return primitive(expr.atom, _polynomial(expr.arg))
    raise Unsupported(expr.text)


def _exact(expr: Expr) -> Expr:
    """A constant with its floats as the fractions they are, so that what cancels does so."""
    if isinstance(expr, Par):
        raise Unsupported("a scalar argument")
    if isinstance(expr, Const):
        return Const(Fraction(expr.value))
    if isinstance(expr, Add):
        return add(_exact(term) for term in expr.terms)
    if isinstance(expr, Mul):
        return mul(_exact(factor) for factor in expr.factors)
    if isinstance(expr, Pow):
        return power(_exact(expr.base), expr.exponent)
    return expr


def _polynomial(arg: Expr) -> Polynomial:
    pieces = decompose(arg)
    if set(pieces) - {PLAIN}:
        raise Unsupported("an argument that is no polynomial")
    return pieces.get(PLAIN, {})


def _power(expr: Pow) -> Pieces:
    exponent = expr.exponent
    if exponent.denominator > 1:
        if isinstance(expr.base, Call) and expr.base.atom == RELU:
            return positive_power(_polynomial(expr.base.arg), exponent)
        raise Unsupported("a root")
    base = decompose(expr.base)
    if exponent > 0:
        return whole_power(base, int(exponent))
    if len(base) != 1:
        raise Unsupported("a quotient")
    (piece, polynomial) = next(iter(base.items()))
    if piece != Piece(piece.square, piece.slope) or set(polynomial) != {0}:
        raise Unsupported("a quotient")
    inverse = Piece(-piece.square, -piece.slope)
    return whole_power({inverse: {0: power(polynomial[0], Fraction(-1))}}, -int(exponent))
