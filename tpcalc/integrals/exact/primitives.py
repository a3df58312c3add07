"""The functions that every decomposition ends in."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.normal import NORMAL_CDF, NORMAL_PDF
from tpcalc.activations.entries.relu_pow import relu_pow
from tpcalc.activations.entries.sine import COS, SIN
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Expr, const
from tpcalc.functions.expr import mul, power
from tpcalc.integrals.exact.delta import DELTA
from tpcalc.integrals.exact.piece import (
    HALF,
    ONE,
    ZERO,
    Half,
    Piece,
    Pieces,
    Polynomial,
    Unsupported,
    Wave,
    level,
)


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


_RULES: tuple[tuple[Atom, Callable[[Polynomial], Pieces]], ...] = (
    (STEP, _step),
    (NORMAL_CDF, _distribution),
    (NORMAL_PDF, _density),
    (EXP, _exponential),
    (SIN, _sine),
    (COS, _cosine),
    (DELTA, _delta),
)


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
