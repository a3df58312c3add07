"""Small arguments: exponentials and waves as power series, where they cancel constants.

elu(z) for z < 0 is exp(z) - 1: for a variance of 1e-12 the closed form is a difference of numbers a
million times larger. Written as a polynomial before anything is integrated, the constants cancel
exactly. What is cut off is bounded in the mean square: with h_j the coefficients of the series with
absolute values,

    || sum_{j > n} h_j z^(j + d) || <= sum_{j > n} h_j || z^(j + d) ||,
    || z^j || <= (|m| + sqrt(q) ((2 j - 1)!!)^(1 / 2j))^j.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import factorial, sqrt
from typing import Any

from tpcalc.activations.entries.sine import COS, SIN
from tpcalc.functions import Expr, const
from tpcalc.functions.expr import add, mul
from tpcalc.integrals.exact.piece import ZERO, Piece, Pieces, Polynomial, level, total
from tpcalc.integrals.exact.pieces import decompose

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


def _exponential(square: Expr, slope: Expr) -> list[Expr]:
    """Coefficients of exp(a z^2 + b z): j h_j = b h_(j-1) + 2 a h_(j-2)."""
    out: list[Expr] = [const(1)]
    for j in range(1, ORDER + 1):
        terms = [mul((slope, out[j - 1]))]
        if j > 1:
            terms.append(mul((const(2), square, out[j - 2])))
        out.append(mul((const(Fraction(1, j)), add(terms))))
    return out


def _wave(piece: Piece) -> list[Expr]:
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
        first = _exponential(piece.square, piece.slope)
        second = _wave(piece)
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
