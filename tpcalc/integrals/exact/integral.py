"""The integral of a plan, in any number system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

from tpcalc.integrals.exact.edges import Edge
from tpcalc.integrals.exact.gauss import Variables
from tpcalc.integrals.exact.numbers import Numbers
from tpcalc.integrals.exact.piece import Half, Unsupported, level
from tpcalc.integrals.exact.plan import Line, Plan, Product
from tpcalc.integrals.exact.recurrence import Moments, root


@dataclass(frozen=True, slots=True)
class Prepared:
    """One product of pieces with its numbers.

    Args:
        whole: The product.
        deltas: (variable, point).
        tilts: (variable, square, slope), growing in the square: what is finite with the negative
            ones need not be so without them.
        halves: Half-lines.
        used: The variables that the polynomial holds.
        entries: (degrees in these variables, coefficient).
    """

    whole: Product
    deltas: tuple[tuple[int, Any], ...]
    tilts: tuple[tuple[int, Any, Any], ...]
    halves: tuple[Edge, ...]
    used: tuple[int, ...]
    entries: tuple[tuple[tuple[int, ...], Any], ...]
    state: int


def prepared(plan: Plan, numbers: Numbers) -> list[Prepared]:
    """A plan with its constants as numbers."""
    states: dict[Any, int] = {}
    out = []
    for whole, entries in plan.terms:
        used = tuple(i for i in range(plan.count) if any(degrees[i] for degrees, _ in entries))
        tilts = sorted(whole.tilts, key=lambda tilt: level(tilt.square))
        out.append(
            Prepared(
                whole,
                tuple((i, numbers.constant(point)) for i, point in whole.deltas),
                tuple(
                    (t.index, numbers.constant(t.square), numbers.constant(t.slope)) for t in tilts
                ),
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
