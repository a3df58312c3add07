"""Pieces of functions of one Gaussian, with their sums and products.

A piece is what is integrated next to a polynomial; a product of half-lines of one argument is a sum
of half-lines. Numbers stay constant expressions, so that one decomposition serves floats and
formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeVar

from tpcalc.functions import Expr, Fn, const
from tpcalc.functions.expr import add, mul
from tpcalc.functions.tape import evaluate

ZERO, ONE, TWO, HALF = const(0), const(1), const(2), const(Fraction(1, 2))


class Unsupported(Exception):
    """Nothing here integrates this; the caller turns to another way."""


@dataclass(frozen=True)
class Half:
    """A function of w = side * z + shift + sqrt(noise) * N, with N a fresh N(0, 1)."""

    # "step" is 1 for w > 0 and 0 else; "sign" is 1 or -1 (its side is always 1)
    kind: Literal["step", "sign"]
    side: int  # 1 or -1
    shift: Expr  # a constant
    noise: Expr  # the variance of the noise, a constant; 0 for a sharp edge

    @property
    def sharp(self) -> bool:
        """Whether the edge is a point."""
        return self.noise == ZERO

    @property
    def edge(self) -> Expr:
        """The z at which w without its noise is 0."""
        return mul((const(-self.side), self.shift))


@dataclass(frozen=True)
class Wave:
    """cos or sin of ``frequency * z + phase``."""

    kind: str  # "cos" or "sin"
    frequency: Expr
    phase: Expr


@dataclass(frozen=True)
class Piece:
    """What stands next to a polynomial: all of it multiplied together."""

    square: Expr = ZERO  # a of exp(a z^2 + b z)
    slope: Expr = ZERO  # b of exp(a z^2 + b z)
    halves: tuple[Half, ...] = ()  # half-lines; at most one of them sharp
    delta: Expr | None = None  # the point of a Dirac delta
    wave: Wave | None = None
    # (side, p) of max(side * z, 0)^p, with p no integer
    positive: tuple[int, Fraction] | None = None
    densities: int = 0  # number of factors 1/sqrt(2 pi)


AnyWave = TypeVar("AnyWave", bound=Any)
Polynomial = dict[int, Expr]
Pieces = dict[Piece, Polynomial]
PLAIN = Piece()


@lru_cache(maxsize=4096)
def level(expr: Expr) -> float:
    """A constant expression as a float."""
    return float(evaluate(Fn(expr, 0), []))


LARGEST_DEGREE = 48
MOST_PIECES = 64


def _add_to(total: Pieces, piece: Piece, degree: int, coefficient: Expr) -> None:
    polynomial = total.setdefault(piece, {})
    value = add((polynomial.get(degree, ZERO), coefficient))
    if value == ZERO:
        polynomial.pop(degree, None)
        if not polynomial:
            del total[piece]
    else:
        polynomial[degree] = value


def total(parts: list[Pieces]) -> Pieces:
    """The sum of sums of pieces."""
    found: Pieces = {}
    for part in parts:
        for piece, polynomial in part.items():
            for degree, coefficient in polynomial.items():
                _add_to(found, piece, degree, coefficient)
    return found


def product(left: Pieces, right: Pieces) -> Pieces:
    """The product of two sums of pieces.

    Args:
        left: One factor.
        right: The other.

    Raises:
        Unsupported: It is not integrated, or has too many pieces.
    """
    found: Pieces = {}
    for one, first in left.items():
        for other, second in right.items():
            for number, extra, piece in _joined(one, other):
                for i, a in first.items():
                    for j, b in second.items():
                        if i + j + extra > LARGEST_DEGREE:
                            raise Unsupported("a polynomial of too high a degree")
                        _add_to(found, piece, i + j + extra, mul((number, a, b)))
        if len(found) > MOST_PIECES:
            raise Unsupported("too many pieces")
    return found


def _joined(one: Piece, other: Piece) -> list[tuple[Expr, int, Piece]]:
    """The product of two pieces: (coefficient, power of z, piece) for each term."""
    if one == PLAIN or other == PLAIN:
        return [(ONE, 0, other if one == PLAIN else one)]
    if one.delta is not None and other.delta is not None:
        raise Unsupported("a product of two Dirac deltas")
    delta = one.delta if one.delta is not None else other.delta
    noisy = tuple(half for half in one.halves + other.halves if not half.sharp)
    noisy = tuple(sorted(noisy, key=lambda half: (half.kind, half.side, half.shift.text)))
    sharp = [half for half in one.halves + other.halves if half.sharp]
    joined = replace(
        one,
        square=add((one.square, other.square)),
        slope=add((one.slope, other.slope)),
        delta=delta,
        densities=one.densities + other.densities,
    )
    out: list[tuple[Expr, int, Piece]] = []
    for factor, wave in _waves(one.wave, other.wave):
        for number, extra, edge, positive in _edges(one.positive, other.positive, sharp):
            if delta is not None and edge is not None and level(add((delta, -edge.edge))) == 0.0:
                raise Unsupported("a Dirac delta where another factor jumps")
            halves = noisy if edge is None else (*noisy, edge)
            piece = replace(joined, halves=halves, wave=wave, positive=positive)
            out.append((mul((factor, number)), extra, piece))
    return out


def _waves(one: Wave | None, other: Wave | None) -> list[tuple[Expr, Wave | None]]:
    if one is None or other is None:
        return [(ONE, other if one is None else one)]
    found: list[tuple[Expr, Wave | None]] = []
    for number, wave in sums_of_waves(one, other, _turned):
        if wave.frequency != ZERO or wave.phase != ZERO:
            found.append((number, wave))
        elif wave.kind == "cos":
            found.append((number, None))
    return found


def sums_of_waves(
    one: AnyWave, other: AnyWave, joined: Callable[[AnyWave, AnyWave, str, int], AnyWave]
) -> list[tuple[Expr, AnyWave]]:
    """A product of cosines and sines as a sum of those of their difference and their sum."""
    if one.kind == "cos" and other.kind == "sin":
        one, other = other, one
    kind = "cos" if one.kind == other.kind else "sin"
    share = -HALF if one.kind == other.kind == "sin" else HALF
    return [(HALF, joined(one, other, kind, -1)), (share, joined(one, other, kind, 1))]


def _turned(one: Wave, other: Wave, kind: str, sign: int) -> Wave:
    frequency, phase = (
        add((own, mul((const(sign), more))))
        for own, more in ((one.frequency, other.frequency), (one.phase, other.phase))
    )
    return Wave(kind, frequency, phase)


Edge = tuple[Expr, int, Half | None, tuple[int, Fraction] | None]


def _edges(
    first: tuple[int, Fraction] | None,
    second: tuple[int, Fraction] | None,
    sharp: list[Half],
) -> list[Edge]:
    """The product of sharp edges and real powers, all of the same argument."""
    powers = [power for power in (first, second) if power is not None]
    if powers:
        sides = {side for side, _ in powers}
        p = sum((p for _, p in powers), Fraction(0))
        return _one_power(sides.pop(), p, sharp) if len(sides) == 1 else []
    if len(sharp) < 2:
        return [(ONE, 0, sharp[0] if sharp else None, None)]
    return [(number, 0, half, None) for number, half in _two_edges(sharp[0], sharp[1])]


def _one_power(side: int, p: Fraction, sharp: list[Half]) -> list[Edge]:
    """The product of a real power and sharp edges."""
    number: Expr = ONE
    for half in sharp:
        if level(half.shift) != 0.0:
            raise Unsupported("a real power with an edge elsewhere")
        if half.kind == "sign":
            number = mul((number, const(side)))
        elif half.side != side:
            return []
    if p.denominator > 1:
        return [(number, 0, None, (side, p))]
    if p < 0:
        raise Unsupported("a negative power")
    return [(mul((number, const(side ** int(p)))), int(p), Half("step", side, ZERO, ZERO), None)]


def _above(edge: Expr) -> Half:
    return Half("step", 1, -edge, ZERO)


def _two_edges(one: Half, other: Half) -> list[tuple[Expr, Half | None]]:
    """The product of two sharp half-lines as a sum of single ones."""
    if one.kind == "step" and other.kind == "sign":
        one, other = other, one
    low, high = one.edge, other.edge
    order = level(add((low, -high)))
    if one.kind == other.kind == "sign":
        if order == 0.0:
            return [(ONE, None)]
        low, high = (high, low) if order > 0 else (low, high)
        return [(ONE, None), (-TWO, _above(low)), (TWO, _above(high))]
    if one.kind == "sign":
        return _sign_and_step(low, other, order)
    if one.side == other.side:
        return [(ONE, one if order * one.side >= 0 else other)]
    if one.side == -1:
        low, high, order = high, low, -order
    return [] if order >= 0 else [(ONE, _above(low)), (-ONE, _above(high))]


def _sign_and_step(turn: Expr, half: Half, order: float) -> list[tuple[Expr, Half | None]]:
    """sign(z - turn) times a step, where ``order`` has the sign of turn - edge."""
    if order * half.side <= 0:
        return [(const(half.side), half)]
    if half.side == 1:
        return [(-ONE, half), (TWO, _above(turn))]
    return [(-ONE, Half("step", -1, turn, ZERO)), (ONE, _above(turn)), (-ONE, _above(half.edge))]


def whole_power(base: Pieces, exponent: int) -> Pieces:
    """A power of a sum of pieces."""
    if exponent > LARGEST_DEGREE:
        raise Unsupported("a power that is too high")
    out: Pieces = {PLAIN: {0: ONE}}
    while True:
        if exponent & 1:
            out = product(out, base)
        exponent >>= 1
        if not exponent:
            return out
        base = product(base, base)


def combined(pieces: Pieces) -> Pieces:
    """The same with c * step(w) - c as a step to the other side, and 2c * step(w) - c as a sign.

    Both keep small numbers from being differences of large ones.
    """
    out: Pieces = {piece: dict(polynomial) for piece, polynomial in pieces.items()}
    for piece, polynomial in pieces.items():
        if not piece.halves or any(half.kind == "sign" for half in piece.halves):
            continue
        *kept, half = piece.halves
        without = replace(piece, halves=tuple(kept))
        for degree, number in polynomial.items():
            rest = pieces.get(without, {}).get(degree)
            if rest is None or out.get(without, {}).get(degree) != rest:
                continue
            if rest == -number:
                other = Half("step", -half.side, -half.shift, half.noise)
                new = replace(piece, halves=(*kept, other))
                share = rest
            elif add((rest, rest)) == -number:
                flip = const(half.side)
                new = replace(piece, halves=(*kept, _sign(half)))
                share = mul((-rest, flip))
            else:
                continue
            _add_to(out, piece, degree, -number)
            _add_to(out, without, degree, -rest)
            _add_to(out, new, degree, share)
    return out


def _sign(half: Half) -> Half:
    """The sign with the edge of a step; it looks to the right (the step's side is a factor)."""
    return Half("sign", 1, mul((const(half.side), half.shift)), half.noise)
