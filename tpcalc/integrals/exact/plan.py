"""A product of functions of several Gaussians as a plan of products of pieces, and its integral."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, prod
from typing import Any

from tpcalc.functions import Expr, const
from tpcalc.functions.expr import add, mul
from tpcalc.integrals.exact.gauss import Edge, Variables
from tpcalc.integrals.exact.numbers import Numbers
from tpcalc.integrals.exact.piece import Half, Piece, Pieces, Unsupported, level, sums_of_waves
from tpcalc.integrals.exact.pieces import decompose
from tpcalc.integrals.exact.recurrence import Moments, root

MOST_PRODUCTS = 3000
Degrees = tuple[int, ...]


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
        tilts: (variable, a, b) of exponentials exp(a x^2 + b x), at most one for a variable.
        deltas: (variable, point) of Dirac deltas.
        halves: (variable, half-line).
        wave: A wave.
        powers: (variable, side, p) of real powers of the positive part.
        densities: Number of factors 1/sqrt(2 pi).
    """

    tilts: tuple[tuple[int, Expr, Expr], ...] = ()
    deltas: tuple[tuple[int, Expr], ...] = ()
    halves: tuple[tuple[int, Half], ...] = ()
    wave: Line | None = None
    powers: tuple[tuple[int, int, Fraction], ...] = ()
    densities: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """What there is to integrate."""

    count: int  # the number of variables
    # for each product its polynomial: ((degrees, coefficient), ...)
    terms: tuple[tuple[Product, tuple[tuple[Degrees, Expr], ...]], ...]


def planned(factors: tuple[Pieces, ...]) -> Plan:
    """The plan for a product of decomposed functions."""
    if prod(map(len, factors)) > MOST_PRODUCTS:
        raise Unsupported("too many products")
    collected: dict[Product, dict[Degrees, Expr]] = {}
    for chosen in product(*(found.items() for found in factors)):
        pieces = [piece for piece, _ in chosen]
        base = _without_wave(pieces)
        for number, wave in _waves_of(pieces):
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
            (index, piece.square, piece.slope)
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


def _waves_of(pieces: list[Piece]) -> Iterator[tuple[Expr, Line | None]]:
    """The product of waves of different variables as a sum of single ones."""
    found: list[tuple[Expr, Line | None]] = [(const(1), None)]
    for index, piece in enumerate(pieces):
        if piece.wave is None:
            continue
        own = Line(piece.wave.kind, ((index, piece.wave.frequency),), piece.wave.phase)
        found = [
            (mul((number, share)), line)
            for number, before in found
            for share, line in (
                [(const(1), own)] if before is None else sums_of_waves(before, own, _turned)
            )
        ]
    yield from found


def _turned(one: Line, other: Line, kind: str, sign: int) -> Line:
    turned = ((i, mul((const(sign), w))) for i, w in other.frequencies)
    frequencies = sorted((*one.frequencies, *turned), key=lambda entry: entry[0])
    return Line(kind, tuple(frequencies), add((one.phase, mul((const(sign), other.phase)))))


@lru_cache(maxsize=1024)
def compiled(factors: tuple[Expr, ...]) -> Plan | None:
    """The plan for a product of functions of one variable each; None where there is none."""
    try:
        return planned(tuple(decompose(factor) for factor in factors))
    except Unsupported:
        return None


@dataclass(frozen=True, slots=True)
class Prepared:
    """One product of pieces with its numbers."""

    whole: Product  # the product
    deltas: tuple[tuple[int, Any], ...]  # (variable, point)
    # (variable, square, slope), growing in the square: what is finite with the negative ones need
    # not be so without them
    tilts: tuple[tuple[int, Any, Any], ...]
    halves: tuple[Edge, ...]  # half-lines
    used: tuple[int, ...]  # the variables that the polynomial holds
    entries: tuple[tuple[tuple[int, ...], Any], ...]  # (degrees in these variables, coefficient)
    state: int


def prepared(plan: Plan, numbers: Numbers) -> list[Prepared]:
    """A plan with its constants as numbers."""
    states: dict[Any, int] = {}
    out = []
    for whole, entries in plan.terms:
        used = tuple(i for i in range(plan.count) if any(degrees[i] for degrees, _ in entries))
        tilts = sorted(whole.tilts, key=lambda tilt: level(tilt[1]))
        out.append(
            Prepared(
                whole,
                tuple((i, numbers.constant(point)) for i, point in whole.deltas),
                tuple((i, *map(numbers.constant, more)) for i, *more in tilts),
                tuple(_edge(i, half, numbers) for i, half in whole.halves),
                used,
                tuple((tuple(d[i] for i in used), numbers.constant(c)) for d, c in entries),
                states.setdefault((whole.deltas, whole.tilts), len(states)),
            )
        )
    return out


def _edge(index: int, half: Half, numbers: Numbers) -> Edge:
    shift, noise = numbers.constant(half.shift), numbers.constant(half.noise)
    return Edge(index, half.side, shift, noise, half.kind)


def integral(terms: Sequence[Prepared], numbers: Numbers, base: Variables) -> Any:
    """The mean of everything in a plan."""
    states: dict[int, Variables] = {}
    found = []
    for term in terms:
        if term.state not in states:
            state = base
            for index, point in term.deltas:
                state = state.at(index, point)
            for index, square, slope in term.tilts:
                state = state.tilted(index, square, slope)
            states[term.state] = state
        found.append(_term(term, numbers, states[term.state]))
    return numbers.total(found)


def _term(term: Prepared, numbers: Numbers, base: Variables) -> Any:
    whole = term.whole
    factor = base.factor * numbers.per_root_tau(whole.densities)
    if whole.powers:
        return factor * _powers(term, numbers, base)
    if whole.wave is not None:
        return factor * _wave(whole.wave, term, numbers, base)
    values = [
        number * (coefficient * moments.of(degrees))
        for number, moments in root(numbers, base, term.used, term.halves)
        for degrees, coefficient in term.entries
    ]
    return factor * numbers.total(values)


def _wave(wave: Line, term: Prepared, numbers: Numbers, base: Variables) -> Any:
    """E[P(x) cos(w.x + phase)]: an imaginary shift of the means by Cov w, damped."""
    frequencies = [(i, numbers.constant(w)) for i, w in wave.frequencies]
    phase = numbers.constant(wave.phase)
    for i, w in frequencies:
        phase = phase + w * base.mean[i]
    quadratic = [
        (1 if i == j else 2) * (w * v * base.cov[i][j])
        for a, (i, w) in enumerate(frequencies)
        for j, v in frequencies[a:]
    ]
    spread = numbers.close_total(quadratic)
    damped = numbers.exponential(-1 * numbers.fraction(Fraction(1, 2)) * spread)
    shift = [numbers.total([w * base.cov[k][i] for i, w in frequencies]) for k in term.used]
    ((_, moments),) = root(numbers, base, term.used, [])
    real: list[Any] = []
    imaginary: list[Any] = []
    for degrees, c in term.entries:
        for turns, value in _shifted(degrees, shift, moments):
            sign = -1 if turns % 4 in (2, 3) else 1
            (imaginary if turns % 2 else real).append(sign * c * value)
    own, other = (
        numbers.wave(wave.kind, phase),
        numbers.wave("sin" if wave.kind == "cos" else "cos", phase),
    )
    sign = -1 if wave.kind == "cos" else 1
    return damped * numbers.total(
        [own * numbers.total(real), sign * other * numbers.total(imaginary)]
    )


def _shifted(
    degrees: tuple[int, ...], shift: Sequence[Any], moments: Moments
) -> list[tuple[int, Any]]:
    """The terms of E[prod (x_k + i shift_k)^n_k], each with its power of i."""
    found: list[tuple[int, tuple[int, ...], Any]] = [(0, (), 1)]
    for degree, by in zip(degrees, shift, strict=True):
        grown = []
        for turns, kept, value in found:
            power: Any = 1
            for j in range(degree + 1):
                if power == 0:
                    break
                grown.append((turns + j, (*kept, degree - j), value * (comb(degree, j) * power)))
                power = power * by
        found = grown
    return [(turns, value * moments.of(kept)) for turns, kept, value in found]


def _powers(term: Prepared, numbers: Numbers, base: Variables) -> Any:
    """Real powers of the positive part, of one or two centred variables."""
    if any(value != 0 for value in base.mean) or base.weight != 0:
        raise Unsupported("a real power of a variable with a mean")
    if any(edge.noise != 0 or edge.shift != 0 for edge in term.halves):
        raise Unsupported("a real power beside a soft edge")
    values = []
    for some, coefficient in term.entries:
        degrees = dict(zip(term.used, some, strict=True))
        sides = _sides(term, degrees)
        if len(sides) > 2:
            raise Unsupported("a real power of three variables")
        values += [coefficient * value for value in _rays(sides, numbers, base)]
    return numbers.total(values)


Ray = list[tuple[int, int, Fraction]]  # (sign of the term, side, power)


def _sides(term: Prepared, degrees: dict[int, int]) -> dict[int, Ray]:
    """For each variable its function as a sum of powers of its positive and negative part."""
    found: dict[int, Ray] = {}
    for i, side, p in term.whole.powers:
        n = degrees.get(i, 0)
        found[i] = [(side**n, side, p + n)]
    for edge in term.halves:
        n = degrees.get(edge.variable, 0)
        if edge.variable in found:
            raise Unsupported("a real power and an edge of one variable")
        right, left = (1, 1, Fraction(n)), ((-1) ** n, -1, Fraction(n))
        if edge.kind == "sign":
            found[edge.variable] = [right, (-left[0], -1, left[2])]
        else:
            found[edge.variable] = [right if edge.side == 1 else left]
    for i, n in degrees.items():
        if n and i not in found:
            found[i] = [(1, 1, Fraction(n)), ((-1) ** n, -1, Fraction(n))]
    return found


def _rays(sides: dict[int, Ray], numbers: Numbers, base: Variables) -> list[Any]:
    if len(sides) == 1:
        ((i, rays),) = sides.items()
        return [sign * numbers.power(p, base.cov[i][i]) for sign, _, p in rays]
    (i, first), (j, second) = sorted(sides.items())
    out = []
    for sign, side, p in first:
        for other_sign, other_side, q in second:
            turn = side * other_side
            entries = (
                base.cov[i][i],
                base.cov[j][j],
                turn * base.cov[i][j],
                base.minor(i, j, i, j),
            )
            out.append(sign * other_sign * numbers.powers((p, q), entries))
    return out
