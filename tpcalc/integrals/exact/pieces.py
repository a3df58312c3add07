"""A function of one Gaussian as a sum of pieces that can be integrated; a series near 0.

A piece is a polynomial times an exponential of degree two, half-lines, a wave, a Dirac delta, or a
real power of the positive part. The distribution function of N(0, 1) is a half-line as well, of the
argument plus noise of its own: Phi(z) = P(N < z). Every atom says in its ``pieces`` what it is made
of; ``_RULES`` has the atoms that it may be made of.

Of small arguments exponentials and waves are power series, as there they cancel constants: elu(z)
for z < 0 is exp(z) - 1, and for a variance of 1e-12 the closed form is a difference of numbers a
million times larger. Written as a polynomial before anything is integrated, the constants cancel
exactly. What is cut off is bounded in the mean square: with h_j the coefficients of the series with
absolute values,

    || sum_{j > n} h_j z^(j + d) || <= sum_{j > n} h_j || z^(j + d) ||,
    || z^j || <= (|m| + sqrt(q) ((2 j - 1)!!)^(1 / 2j))^j.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import factorial, sqrt
from typing import Any

from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.normal import NORMAL_CDF, NORMAL_PDF
from tpcalc.activations.entries.relu import RELU
from tpcalc.activations.entries.relu_pow import relu_pow
from tpcalc.activations.entries.sine import COS, SIN
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Expr, const
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Mul, Par, Pow, Var, add, mul, power, walk
from tpcalc.integrals.exact.delta import DELTA
from tpcalc.integrals.exact.piece import (
    HALF,
    ONE,
    PLAIN,
    ZERO,
    Half,
    Piece,
    Pieces,
    Polynomial,
    Unsupported,
    Wave,
    combined,
    level,
    product,
    total,
    whole_power,
)


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


def _bounded(polynomial: Polynomial, degree: int) -> Polynomial:
    if max(polynomial, default=0) > degree:
        raise Unsupported("an argument of too high a degree")
    return polynomial


def _line(arg: Polynomial) -> tuple[int, Expr, Expr]:
    """(side, |a|, b / |a|) of an argument a z + b."""
    slope = _bounded(arg, 1).get(1, ZERO)
    size = level(slope)
    if size == 0.0:
        raise Unsupported("a constant argument that is not written as one")
    side = 1 if size > 0 else -1
    width = mul((const(side), slope))
    return side, width, mul((arg.get(0, ZERO), power(width, Fraction(-1))))


def _step(arg: Polynomial) -> Pieces:
    side, _, shift = _line(arg)
    return {Piece(halves=(Half("step", side, shift, ZERO),)): {0: ONE}}


def _distribution(arg: Polynomial) -> Pieces:
    side, width, shift = _line(arg)
    noise = power(width, Fraction(-2))
    return {Piece(halves=(Half("step", side, shift, noise),)): {0: ONE}}


def _height(exponent: Expr) -> Expr:
    return ONE if exponent == ZERO else EXP(exponent)


def _exponential(arg: Polynomial) -> Pieces:
    arg = _bounded(arg, 2)
    piece = Piece(square=arg.get(2, ZERO), slope=arg.get(1, ZERO))
    return {piece: {0: _height(arg.get(0, ZERO))}}


def _density(arg: Polynomial) -> Pieces:
    """exp(-(a z + b)^2 / 2) / sqrt(2 pi)."""
    a, b = _bounded(arg, 1).get(1, ZERO), arg.get(0, ZERO)
    piece = Piece(square=mul((-HALF, a, a)), slope=mul((const(-1), a, b)), densities=1)
    return {piece: {0: _height(mul((-HALF, b, b)))}}


def _cosine(arg: Polynomial) -> Pieces:
    arg = _bounded(arg, 1)
    return {Piece(wave=Wave("cos", arg.get(1, ZERO), arg.get(0, ZERO))): {0: ONE}}


def _sine(arg: Polynomial) -> Pieces:
    arg = _bounded(arg, 1)
    return {Piece(wave=Wave("sin", arg.get(1, ZERO), arg.get(0, ZERO))): {0: ONE}}


def _delta(arg: Polynomial) -> Pieces:
    side, width, shift = _line(arg)
    return {Piece(delta=mul((const(-side), shift))): {0: power(width, Fraction(-1))}}


def positive_power(arg: Polynomial, exponent: Fraction) -> Pieces:
    """max(a z, 0)^p for a p that is no integer."""
    side, width, shift = _line(arg)
    if shift != ZERO or exponent <= -1:
        raise Unsupported("a real power of a shifted argument")
    return {Piece(positive=(side, exponent)): {0: power(width, exponent)}}


def primitive(atom: Atom, arg: Polynomial) -> Pieces:
    """The pieces of a primitive at a polynomial."""
    for known, rule in _RULES:
        if atom.name == known.name and atom == known:
            return rule(arg)
    if atom.name == "relu_pow" and len(atom.params) == 1:
        p = atom.params[0]
        if isinstance(p, Fraction) and p.denominator > 1 and atom == relu_pow(p):
            return positive_power(arg, p)
    raise Unsupported(f"{atom.text} has no pieces")


_RULES: tuple[tuple[Atom, Callable[[Polynomial], Pieces]], ...] = (
    (STEP, _step),
    (NORMAL_CDF, _distribution),
    (NORMAL_PDF, _density),
    (EXP, _exponential),
    (SIN, _sine),
    (COS, _cosine),
    (DELTA, _delta),
)


ORDER = 16
# The series stands for the function where rate * (sqrt(q) + |m|) is at most this.
REACH = 0.25
BEYOND = 16


def rate(factor: Expr) -> float:
    """How fast exponentials and waves of a function grow; 0 where none may cancel another piece."""
    pieces = decompose(factor)
    found = [_rate(piece) for piece in pieces]
    if len(pieces) < 2 and not any(
        piece.wave is not None and piece.wave.kind == "sin" for piece in pieces
    ):
        return 0.0
    return max(found, default=0.0)


def _rate(piece: Piece) -> float:
    wave = 0.0 if piece.wave is None else abs(level(piece.wave.frequency))
    return abs(level(piece.slope)) + sqrt(abs(level(piece.square))) + wave


def _exponential_series(square: Expr, slope: Expr) -> list[Expr]:
    """Coefficients of exp(a z^2 + b z): j h_j = b h_(j-1) + 2 a h_(j-2)."""
    out: list[Expr] = [const(1)]
    for j in range(1, ORDER + 1):
        terms = [mul((slope, out[j - 1]))]
        if j > 1:
            terms.append(mul((const(2), square, out[j - 2])))
        out.append(mul((const(Fraction(1, j)), add(terms))))
    return out


def _wave_series(piece: Piece) -> list[Expr]:
    """Coefficients of cos(w z + phase) or of the sine."""
    wave = piece.wave
    if wave is None:
        return [const(1)]
    at_rest = wave.phase == ZERO
    cosine = const(1) if at_rest else COS(wave.phase)
    sine = const(0) if at_rest else SIN(wave.phase)
    turns = [cosine, -sine, -cosine, sine]  # derivatives of cos at the phase
    start = 0 if wave.kind == "cos" else 3
    return [
        mul((const(Fraction(1, factorial(j))), wave.frequency**j, turns[(start + j) % 4]))
        for j in range(ORDER + 1)
    ]


@lru_cache(maxsize=256)
def expanded(factor: Expr) -> Pieces:
    """The pieces of a function with its exponentials and waves as polynomials."""
    parts: list[Pieces] = []
    for piece, polynomial in decompose(factor).items():
        rest = Piece(
            halves=piece.halves,
            delta=piece.delta,
            positive=piece.positive,
            densities=piece.densities,
        )
        first = _exponential_series(piece.square, piece.slope)
        second = _wave_series(piece)
        found: dict[int, list[Expr]] = {}
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                if i + j <= ORDER:
                    for degree, c in polynomial.items():
                        found.setdefault(i + j + degree, []).append(mul((a, b, c)))
        merged: Polynomial = {degree: add(terms) for degree, terms in found.items()}
        parts.append({rest: {d: c for d, c in merged.items() if c != ZERO}})
    return total(parts)


@lru_cache(maxsize=64)
def _double_factorial_root(j: int) -> float:
    """((2 j - 1)!!)^(1 / 2j)."""
    product = 1
    for odd in range(1, 2 * j, 2):
        product *= odd
    return float(product) ** (0.5 / j) if j else 0.0


def _power_norm(j: int, mean: Any, deviation: Any) -> Any:
    return (abs(mean) + deviation * _double_factorial_root(j)) ** j


def norm(factor: Expr, mean: Any, deviation: Any) -> Any:
    """A bound of the root mean square of the expanded function."""
    found: Any = 0.0
    for polynomial in expanded(factor).values():
        for degree, coefficient in polynomial.items():
            found = found + abs(level(coefficient)) * _power_norm(degree, mean, deviation)
    return 1.001 * found


def remainder(factor: Expr, mean: Any, deviation: Any) -> Any:
    """A bound of the root mean square of what the expansion leaves out."""
    found: Any = 0.0
    for piece, polynomial in decompose(factor).items():
        if not _rate(piece):
            continue
        series = _majorant(piece)
        for degree, coefficient in polynomial.items():
            size = abs(level(coefficient))
            for j in range(ORDER + 1, len(series)):
                found = found + size * series[j] * _power_norm(j + degree, mean, deviation)
    return 2.0 * found  # the rest of the series falls faster than a geometric one of ratio 1/2


@lru_cache(maxsize=256)
def _majorant(piece: Piece) -> list[float]:
    """Coefficients of exp(|a| z^2 + (|b| + |w|) z), above those of every product of the series."""
    a = abs(level(piece.square))
    b = abs(level(piece.slope)) + (0.0 if piece.wave is None else abs(level(piece.wave.frequency)))
    out = [1.0]
    for j in range(1, ORDER + BEYOND + 1):
        out.append((b * out[j - 1] + (2 * a * out[j - 2] if j > 1 else 0.0)) / j)
    return out
