"""Terms of an entrywise function that are a product of rows and of columns: no matrix is needed.

A sum of forms is a sum of outer products, and the sign of one product is the product of signs; both
are exact at every width.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tpcalc.functions import Call, Const, Expr, Fn, Var, const
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Add, Mul, add, mul
from tpcalc.functions.form import least
from tpcalc.functions.numbers import Number
from tpcalc.program.base import lincomb_of, nonlin_of, scale_of
from tpcalc.program.nodes import Nonlin, Ref
from tpcalc.program.program import Builder

# A number, the place of the pair, and what rows and columns go through.
Separable = tuple[Number, int, Atom | None]


def separated(expr: Expr, forms: Sequence[int]) -> tuple[list[Separable], Expr]:
    """The terms of a function of forms that separate, and the sum of the others.

    Example:
        >>> found, rest = separated(2 * Var(0) + Var(1) ** 2, [0, 0, 1])
        >>> found, rest.text
        ([(Fraction(2, 1), 0, None), (Fraction(2, 1), 1, None)], 'x1**2')
    """
    found: list[Separable] = []
    left: list[Expr] = []
    for term in expr.terms if isinstance(expr, Add) else (expr,):
        number, rest = scaled(term)
        atom = rest.atom if isinstance(rest, Call) and is_sign(rest.atom) else None
        inside = rest.arg if isinstance(rest, Call) and atom is not None else rest
        pairs = [k for k, form in enumerate(forms) if inside == Var(form)]
        if isinstance(inside, Var) and (atom is None or len(pairs) == 1):
            found += [(number, pair, atom) for pair in pairs]
        else:
            left.append(term)
    return found, add(left)


def sign_of(sign: Atom, expr: Expr) -> Expr:
    """The sign of a product: gates and what is above 0 need no sign of their own.

    Example:
        >>> from tpcalc.activations.entries import atom
        >>> sign_of(atom("sign"), 2 * Var(0) * atom("step")(Var(1))).text
        'sign(x0)*step(x1)'
    """
    outside: list[Expr] = []
    inside: list[Expr] = []
    for factor in expr.factors if isinstance(expr, Mul) else (expr,):
        gate = _gate(factor)
        if isinstance(factor, Const):
            outside.append(const((factor.value > 0) - (factor.value < 0)))
        elif gate is not None:
            outside.append(gate)
        elif not least(factor) > 0:
            inside.append(factor)
    return mul([*outside, sign(mul(inside))] if inside else outside)


def signed(
    out: Builder, sign: Atom, ref: Ref, line: str | None = None
) -> tuple[int, tuple[Ref, ...], Ref]:
    """The sign of a vector as a number, scalars whose signs stand in front, and a vector.

    They stand in front where the sign of what is left is known better: of a product with a gate.
    """
    number, scalars, whole = 1, list[Ref](), ref
    while True:
        node = out.node(ref)
        scale, total = scale_of(node), lincomb_of(node)
        if scale is not None:
            ref = scale.of
        elif total is not None and len(total.vectors) == 1 and total.numbers[0] != 0:
            number = number if total.numbers[0] > 0 else -number
            scalars += [scalar for scalar in total.scalars if scalar is not None]
            ref = total.vectors[0]
        else:
            break
    inner = nonlin_of(node)
    if inner is None or sign_of(sign, inner.fn.expr) == sign(inner.fn.expr):
        return 1, (), out.add(Nonlin(Fn(sign(Var(0)), 1), (whole,)), line)
    own = Fn(sign_of(sign, inner.fn.expr), inner.fn.vectors, inner.fn.scalars)
    return number, tuple(scalars), out.add(Nonlin(own, inner.vectors, inner.scalars), line)


def _gate(expr: Expr) -> Expr | None:
    """The gate that is the sign of a gate, or of a function such as ReLU; None of any other."""
    if not isinstance(expr, Call) or expr.atom.facts.least != 0:
        return None
    if expr.atom.facts.homogeneity == 0:
        return expr
    slope = expr.atom.derivative
    if expr.atom.facts.homogeneity == 1 and isinstance(slope, Atom) and slope.facts.least == 0:
        return slope(expr.arg)
    return None


def is_sign(atom: Atom) -> bool:
    """Whether f(x y) = f(x) f(y): odd, of degree 0, and 1 above 0."""
    return atom.facts.parity == "odd" and atom.facts.homogeneity == 0 and atom.facts.least == -1


def scaled(term: Expr) -> tuple[Number, Expr]:
    """A term as a number and what stands behind it.

    Example:
        >>> number, rest = scaled(3 * Var(0) * Var(1))
        >>> str(number), rest.text
        ('3', 'x0*x1')
    """
    if isinstance(term, Mul) and isinstance(term.factors[0], Const):
        return term.factors[0].value, mul(term.factors[1:])
    return Fraction(1), term
