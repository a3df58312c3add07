"""The product of functions of several Gaussians, as a sum of products of their pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod

from tpcalc.functions import Expr, const
from tpcalc.functions.expr import add, mul
from tpcalc.integrals.exact.piece import HALF, Half, Piece, Pieces, Unsupported
from tpcalc.integrals.exact.pieces import decompose

MOST_PRODUCTS = 3000
Degrees = tuple[int, ...]


@dataclass(frozen=True)
class Tilt:
    """The factor exp(square * x^2 + slope * x) of variable ``index``."""

    index: int
    square: Expr
    slope: Expr


@dataclass(frozen=True)
class Line:
    """The wave cos or sin of a linear form of the variables plus a phase."""

    kind: str
    frequencies: tuple[tuple[int, Expr], ...]
    phase: Expr


@dataclass(frozen=True)
class Product:
    """One product of pieces, without its polynomial.

    Args:
        tilts: Exponentials, at most one for a variable.
        deltas: (variable, point) of Dirac deltas.
        halves: (variable, half-line).
        wave: A wave.
        powers: (variable, side, p) of real powers of the positive part.
        densities: Number of factors 1/sqrt(2 pi).
    """

    tilts: tuple[Tilt, ...] = ()
    deltas: tuple[tuple[int, Expr], ...] = ()
    halves: tuple[tuple[int, Half], ...] = ()
    wave: Line | None = None
    powers: tuple[tuple[int, int, Fraction], ...] = ()
    densities: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """What there is to integrate.

    Args:
        count: The number of variables.
        terms: For each product its polynomial: ((degrees, coefficient), ...).
    """

    count: int
    terms: tuple[tuple[Product, tuple[tuple[Degrees, Expr], ...]], ...]


def planned(factors: tuple[Pieces, ...]) -> Plan:
    """The plan for a product of decomposed functions."""
    if prod(map(len, factors)) > MOST_PRODUCTS:
        raise Unsupported("too many products")
    collected: dict[Product, dict[Degrees, Expr]] = {}
    for chosen in product(*(found.items() for found in factors)):
        pieces = [piece for piece, _ in chosen]
        base = _without_wave(pieces)
        for number, wave in _wave(pieces):
            whole = Product(base.tilts, base.deltas, base.halves, wave, base.powers, base.densities)
            _check(whole)
            into = collected.setdefault(whole, {})
            for entries in product(*(polynomial.items() for _, polynomial in chosen)):
                degrees = tuple(degree for degree, _ in entries)
                value = mul((number, *(coefficient for _, coefficient in entries)))
                into[degrees] = add((into[degrees], value)) if degrees in into else value
    terms = tuple(
        (whole, tuple((d, c) for d, c in polynomial.items() if c != const(0)))
        for whole, polynomial in collected.items()
    )
    return Plan(len(factors), tuple((whole, entries) for whole, entries in terms if entries))


def _without_wave(pieces: list[Piece]) -> Product:
    zero = const(0)
    return Product(
        tilts=tuple(
            Tilt(index, piece.square, piece.slope)
            for index, piece in enumerate(pieces)
            if piece.square != zero or piece.slope != zero
        ),
        deltas=tuple((i, piece.delta) for i, piece in enumerate(pieces) if piece.delta is not None),
        halves=tuple((i, half) for i, piece in enumerate(pieces) for half in piece.halves),
        powers=tuple((i, *piece.positive) for i, piece in enumerate(pieces) if piece.positive),
        densities=sum(piece.densities for piece in pieces),
    )


def _check(whole: Product) -> None:
    if whole.wave is not None and (whole.halves or whole.powers):
        raise Unsupported("a wave on a half-line")
    if whole.powers and (len(whole.powers) > 2 or whole.tilts or whole.deltas):
        raise Unsupported("a real power with an exponential or a delta, or three of them")
    if len(whole.halves) > 8:
        raise Unsupported("too many half-lines")


def _wave(pieces: list[Piece]) -> Iterator[tuple[Expr, Line | None]]:
    """The product of waves of different variables as a sum of single ones."""
    found: list[tuple[Expr, Line | None]] = [(const(1), None)]
    for index, piece in enumerate(pieces):
        if piece.wave is None:
            continue
        own = Line(piece.wave.kind, ((index, piece.wave.frequency),), piece.wave.phase)
        found = [
            (mul((number, share)), line)
            for number, before in found
            for share, line in (_times(before, own) if before is not None else [(const(1), own)])
        ]
    yield from found


def _times(one: Line, other: Line) -> list[tuple[Expr, Line]]:
    if one.kind == "cos" and other.kind == "sin":  # sin a cos b with a later: the same formulas
        one, other = other, one

    def joined(kind: str, sign: int) -> Line:
        turned = tuple((i, mul((const(sign), w))) for i, w in other.frequencies)
        return Line(
            kind,
            tuple(sorted((*one.frequencies, *turned), key=lambda entry: entry[0])),
            add((one.phase, mul((const(sign), other.phase)))),
        )

    if one.kind == other.kind:
        sign = HALF if one.kind == "cos" else -HALF
        return [(HALF, joined("cos", -1)), (sign, joined("cos", 1))]
    return [(HALF, joined("sin", -1)), (HALF, joined("sin", 1))]


@lru_cache(maxsize=1024)
def compiled(factors: tuple[Expr, ...]) -> Plan | None:
    """The plan for a product of functions of one variable each; None where there is none."""
    try:
        return planned(tuple(decompose(factor) for factor in factors))
    except Unsupported:
        return None
