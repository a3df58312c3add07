"""``Paths``: the start of a network whose matrices are paths along the depth, no random ones.

Where a block is linear on both sides of 0, it multiplies what goes on by itself (coordinates of one
sign, pairs that are turned) by 1 + L^(-alpha) lambda(l/L). So the log of what all blocks multiply
is the sum over j of (-1)^(j + 1) / j L^(1 - j alpha) times the integral of lambda^j, and the first
powers of L whose integrals are not 0 decide: their real parts make the stream grow or shrink, their
imaginary parts turn it. Integrals of polynomials are exact. Matrices of pairs that do not commute
along the depth change slowly beside what they do: the stream follows their eigenvalues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb

import numpy as np

from tpcalc.errors import UsageError
from tpcalc.exponents.chamber import Region
from tpcalc.functions.form import slopes_of
from tpcalc.limit.degrees import degree_of
from tpcalc.names import stepped
from tpcalc.networks.network import Architecture
from tpcalc.passes.block import Block
from tpcalc.program.along import Along, along_of
from tpcalc.questions.depth.generic import Pass
from tpcalc.questions.depth.shape import Unlike, block_at_start, start_of
from tpcalc.recursions.paths import is_path
from tpcalc.recursions.start import Start
from tpcalc.results import BlockRate, CriticalPower, Exponent, OrderRow, SetRow

Polynomial = tuple[Fraction, ...]  # of the share of the depth, from its constant on
ONE = Fraction(1)
SHARES = np.linspace(0.0, 1.0, 4097)
CLEAR = 1e-6  # of numbers that are surely not 0
DRIFT = "drift, a function of x[0]"
OUT, IN, TURN = "drift away from 0", "drift towards 0", "drift across x[0], a turn"
MOVES = {
    OUT: "each block multiplies the stream, which grows: log of its mean square is like {}",
    IN: "each block multiplies the stream, which shrinks: log of its mean square is like -{}",
    TURN: "blocks turn pairs of coordinates, all of them together by an angle of size {}",
}
WIDTH_FREE = "matrices are no random ones: the width is felt by nothing but the average"
LARGE = "with alpha = {} a block is no small change of the stream: nothing is read off"
CURVED = (
    "powers of L are read off where a function is linear on both sides of 0, and neither a turn "
    "nor a path that changes its sign meets a kink; of others at alpha >= 1, along paths of one "
    "sign"
)
MEETING = (
    "matrices of pairs are followed by their eigenvalues, and below 1 these do not tell here: they "
    "meet along the depth and leave the sign open, or are 0"
)
BETWEEN = "between its two critical powers blocks turn the stream: it neither grows nor stays"
BELOW = "below its critical power blocks shrink the stream"
EARLIER = (
    "on the way the stream grows: the first blocks have a positive eigenvalue (Proposition 13), "
    "and what is said here is about the last one"
)


def paths_of(network: Architecture, at: Mapping[str, Fraction]) -> Paths:
    """What is read off the block of a network of L blocks along paths of matrices.

    Source: Marion, Fermanian, Biau, Vert, Propositions 12 and 13 with the corrections of
        docs/claims.md; where these say nothing, the series above.
    """
    block = block_at_start(network)
    try:
        start = start_of(block, at)
    except Unlike as reason:
        raise UsageError(
            f"powers of L of matrices that are paths are read off blocks V phi(W x), and {reason}.",
            hint="tp.simulate(..., depth=) draws networks of finite width.",
        ) from None
    is_path(start)  # all of them, or an error
    return Paths(block, start)


@dataclass(frozen=True)
class _Mode:
    """Coordinates that go on by themselves, or pairs of them, by what all blocks do to them."""

    alpha: Fraction  # the power of 1/L in front of a block
    still: bool  # whether nothing is added
    # the first j whose lambda^j has a real part that adds up, lambda an eigenvalue; 0: not known
    order: int
    up: bool  # whether it is above 0; the second order is minus half the integral of lambda^2
    turned: bool  # whether pairs are turned
    mean: bool  # whether the integral of lambda is not 0
    first: bool  # whether the first blocks have a positive eigenvalue
    status: str = "proved"

    @staticmethod
    def of(matrix: tuple[Polynomial, ...], alpha: Fraction) -> _Mode:
        """What blocks do that multiply pairs by 1 + L^(-alpha) M(l/L), M row by row."""
        a, b, c, d = matrix
        turns = not any((*a, *d)) and b == tuple(-one for one in c)
        if not turns and (a != d or any((*b, *c))):
            return _pairs(matrix, alpha)
        p = b if turns else a
        mean, first = _integral(p), not turns and p[0] > 0
        order = 1 if mean and not turns else 2
        up = mean > 0 if order == 1 else turns
        return _Mode(alpha, not any(p), order, up, turns and bool(mean), bool(mean), first)

    @property
    def growth(self) -> Fraction:
        """The power of L of the log of what the size is multiplied by."""
        return 1 - self.order * self.alpha

    @property
    def regime(self) -> str:
        """What becomes of these coordinates: above 1 and at 1 by Proposition 12."""
        if self.still or self.alpha > 1:
            return "identity"
        if not self.order:
            return "stationary" if self.alpha == 1 else ""
        if self.growth > 0:
            return "unstable" if self.up else "vanishing"
        return "stationary" if self.turned or self.growth == 0 else "identity"

    @property
    def parts(self) -> Iterator[tuple[str, Fraction, str]]:
        """What all blocks add, with its power of L and how sure it is."""
        if self.turned:
            yield TURN, 1 - self.alpha, self.status
        # Where the integral is 0, a sum of L terms is not: its ends leave L^(-alpha).
        least = self.growth if self.mean else max(self.growth, -self.alpha)
        status = self.status if self.mean or self.alpha < 1 else "bound"
        if not self.order:
            yield DRIFT, 1 - self.alpha, "bound"
        elif not self.still:
            yield OUT if self.up else IN, least, status

    @property
    def borders(self) -> set[Fraction]:
        """The powers of 1/L at which it becomes another one."""
        if self.still:
            return set()
        return {ONE / (self.order or 1)} | ({ONE} if self.turned else set())


def _pairs(matrix: tuple[Polynomial, ...], alpha: Fraction) -> _Mode:
    """What matrices do that are no multiples of one, by their eigenvalues along the depth.

    Where these stay apart, or the matrix is one, the stream follows the one with the largest real
    part. Else it may be led to the other one, and the mean of both is a bound.
    """
    a, b, c, d = (np.polyval([float(x) for x in one[::-1]], SHARES) for one in matrix)
    half, roots = (a + d) / 2, ((a - d) / 2) ** 2 + b * c  # eigenvalues are half +- sqrt(roots)
    apart, constant = np.sqrt(np.maximum(roots, 0.0)), len(matrix[0]) == 1
    most = float((half + apart).mean())
    least = most if constant or roots.min() > 0 else float(half.mean())
    turned = bool(roots.max() < -CLEAR)
    order = 1 if least > CLEAR or most < -CLEAR else 2 if turned and not half.any() else 0
    first = bool(roots[0] >= 0 and half[0] + apart[0] > 0)
    status = "proved" if constant else "derived"
    return _Mode(alpha, False, order, order == 2 or least > 0, turned, True, first, status)


class Paths:
    """What is read off a block, as of ``Found``; only its start is."""

    diversity, steps, region = "", 0, Region()
    rates: tuple[BlockRate, ...] = ()
    sets: tuple[SetRow, ...] = ()
    stable: bool | None = None
    moves = features = faithful = linearized = stable

    def __init__(self, block: Block, start: Start) -> None:
        self.block, self.shape, self.alpha = block, start, start.alpha
        self.paths = [along_of(law) for law in (start.outer, start.inner) if law is not None]

    @property
    def status(self) -> str:
        """How sure it is."""
        return "derived" if any(m.status == "derived" for m in self.modes or ()) else "proved"

    @cached_property
    def modes(self) -> tuple[_Mode, ...] | None:
        """The coordinates that go on by themselves; None: they are not known."""
        slopes = slopes_of(self.shape.activation)
        if slopes is None:
            return None
        inner = self.shape.inner
        kept = inner is None or _sign_of(_entries(along_of(inner))[0])
        if slopes[0] != slopes[1] and (any(path.mixes for path in self.paths) or not kept):
            return None  # coordinates go on by themselves while W keeps the side of 0
        number = Fraction(self.shape.multiplier)
        found = (_product(self.paths, number * Fraction(slope)) for slope in dict.fromkeys(slopes))
        return tuple(_Mode.of(one, self.alpha) for one in found)

    @cached_property
    def verdict(self) -> str:
        """What becomes of the stream, and alike of its adjoint; "" where it is not known."""
        if self.alpha <= 0:
            return ""
        if self.modes is not None:
            found = {mode.regime for mode in self.modes}
            if len(found) == 1 or "" in found:
                return "" if "" in found else found.pop()
            return "unstable" if "unstable" in found else "stationary"
        growth = degree_of(self.shape.activation, (ONE,), ())
        if self.alpha < 1 or growth is None or growth > 1:
            return ""
        if self.alpha > 1:
            return "identity"
        kept = all(any(map(_sign_of, _entries(one))) for one in self.paths)
        return "stationary" if kept else ""

    @property
    def stable_start(self) -> bool | None:
        return self.verdict != "unstable" if self.verdict else None

    def start(self, own: Pass) -> str:
        """What becomes of the stream, or of its adjoint."""
        return self.verdict

    @cached_property
    def parts(self) -> list[tuple[str, Fraction, str]]:
        """What all blocks add, with its power of L and how sure it is."""
        if not self.verdict:
            return []
        if self.modes is None:
            return [(DRIFT, 1 - self.alpha, "bound")]
        found = dict.fromkeys(part for mode in self.modes for part in mode.parts)
        return sorted(found, key=lambda part: -part[1])

    @property
    def rows(self) -> Iterator[OrderRow]:
        for name in (stepped("x", 0), stepped("dx", 0)):
            for part, power, status in self.parts:
                yield OrderRow(name, status=status, L=Exponent.number(power), part=part)

    @property
    def facts(self) -> Iterator[str]:
        most = [part for part in self.parts if part[0] in MOVES and part[1] > 0]
        for part, power, _ in most:
            yield MOVES[part].format(f"L^({power})")
        for _, power, _ in self.parts[: not most]:
            size = f"like L^({power})" if power else "of order 1"
            yield f"outputs and gradients: {self.verdict}, what all blocks add is {size}"

    @property
    def notes(self) -> Iterator[str]:
        yield WIDTH_FREE
        if not self.verdict:
            reason = CURVED if self.modes is None else MEETING
            yield LARGE.format(self.alpha) if self.alpha <= 0 else reason
        if any(mode.turned for mode in self.modes or ()):
            yield BETWEEN
        if self.modes and all(mode.still or not mode.up for mode in self.modes):
            yield BELOW
        grows = any(mode.first for mode in self.modes or ()) and 0 < self.alpha < 1
        if grows and self.verdict != "unstable":
            yield EARLIER

    @property
    def critical(self) -> Iterator[CriticalPower]:
        borders = {border for mode in self.modes or () for border in mode.borders}
        for of in ("outputs", "gradients"):
            for border in sorted(borders):
                yield CriticalPower(of, "oo", Exponent.number(border), self.verdict, self.status)


def _entries(path: Along) -> tuple[Polynomial, ...]:
    """The matrix of pairs, row by row."""
    return tuple(zip(*path.coefficients, strict=True))


def _product(paths: list[Along], number: Fraction) -> tuple[Polynomial, ...]:
    """The entries of the product of matrices and a number."""
    one, zero = np.array([number], dtype=object), np.array([Fraction(0)], dtype=object)
    found = [one, zero, zero, one]
    for path in paths:
        own = [np.array(entry, dtype=object) for entry in _entries(path)]
        places = product((0, 2), (0, 1))
        found = [
            np.convolve(found[i], own[j]) + np.convolve(found[i + 1], own[j + 2]) for i, j in places
        ]
    return tuple(map(tuple, found))


def _integral(p: Polynomial) -> Fraction:
    """From 0 to 1."""
    return sum((c / (k + 1) for k, c in enumerate(p)), Fraction(0))


def _sign_of(p: Polynomial) -> int:
    """The sign of a polynomial between 0 and 1; 0: it has several, or they are not known.

    Its values there are averages of its coefficients in Bernstein's basis.
    """
    degree = len(p) - 1
    shares = [
        sum(Fraction(comb(k, j), comb(degree, j)) * p[j] for j in range(k + 1))
        for k in range(degree + 1)
    ]
    if not any(shares):
        return 0
    return 1 if all(c >= 0 for c in shares) else -1 if all(c <= 0 for c in shares) else 0
