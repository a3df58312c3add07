"""``Paths``: the start of a network whose matrices are paths along the depth, no random ones.

Where a block is linear on both sides of 0, it multiplies what goes on by itself (coordinates of one
sign, pairs that are turned) by 1 + L^(-alpha) lambda(l/L). So the log of what all blocks multiply
is the sum over j of (-1)^(j + 1) / j L^(1 - j alpha) times the integral of lambda^j, and the first
powers of L whose integrals are not 0 decide: their real parts make the stream grow or shrink, their
imaginary parts turn it. Integrals of polynomials are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
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
ONE, HALF = Fraction(1), Fraction(1, 2)
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
    """Coordinates that all blocks multiply by 1 + L^(-alpha) i^turns p(l/L)."""

    p: Polynomial  # the polynomial
    turns: int  # how many of the matrices are turns
    alpha: Fraction  # the power of 1/L in front of a block

    @cached_property
    def mean(self) -> Fraction:
        """The integral of lambda, without i where it turns."""
        return (-ONE if self.turns == 2 else ONE) * _integral(self.p)

    @property
    def still(self) -> bool:
        """Whether nothing is added."""
        return not any(self.p)

    @property
    def order(self) -> int:
        """The first j that the size of the stream feels: of lambda^2 the integral is not 0."""
        return 1 if self.mean and self.turns != 1 else 2

    @property
    def growth(self) -> Fraction:
        """The power of L of the log of what the size is multiplied by."""
        return 1 - self.order * self.alpha

    @property
    def up(self) -> bool:
        """Whether it grows: the second order is minus half the integral of lambda^2."""
        return self.mean > 0 if self.order == 1 else self.turns == 1

    @property
    def angle(self) -> Fraction | None:
        """The power of L of the angle by which pairs are turned; None: they are not."""
        return 1 - self.alpha if self.turns == 1 and self.mean else None

    @property
    def regime(self) -> str:
        """What becomes of these coordinates."""
        if self.still:
            return "identity"
        if self.growth > 0:
            return "unstable" if self.up else "vanishing"
        turned = self.angle is not None and self.angle >= 0
        return "stationary" if turned or self.growth == 0 else "identity"

    @property
    def parts(self) -> Iterator[tuple[str, Fraction, str]]:
        """What all blocks add, with its power of L and how sure it is."""
        if self.still:
            return
        if self.angle is not None:
            yield TURN, self.angle, "proved"
        # Where the integral is 0, a sum of L terms is not: its ends leave L^(-alpha).
        least = self.growth if self.mean else max(self.growth, -self.alpha)
        yield OUT if self.up else IN, least, "proved" if self.mean or self.alpha < 1 else "bound"

    @property
    def borders(self) -> set[Fraction]:
        """The powers of 1/L at which it becomes another one."""
        if self.still:
            return set()
        return {ONE / self.order} | ({ONE} if self.angle is not None else set())


class Paths:
    """What is read off a block, as of ``Found``; only its start is."""

    status, diversity, steps, region = "proved", "", 0, Region()
    rates: tuple[BlockRate, ...] = ()
    sets: tuple[SetRow, ...] = ()
    stable: bool | None = None
    moves = features = faithful = linearized = stable

    def __init__(self, block: Block, start: Start) -> None:
        self.block, self.shape, self.alpha = block, start, start.alpha
        self.paths = [along_of(law) for law in (start.outer, start.inner) if law is not None]

    @cached_property
    def modes(self) -> tuple[_Mode, ...] | None:
        """The coordinates that go on by themselves; None: they are not known."""
        slopes = slopes_of(self.shape.activation)
        if slopes is None:
            return None
        turns = sum(path.row.turns for path in self.paths)
        p = _product(list(map(_polynomial, self.paths)), Fraction(self.shape.multiplier))
        inner = self.shape.inner
        kept = inner is None or _sign_of(_polynomial(along_of(inner)))
        if slopes[0] != slopes[1] and (turns or not kept):
            return None  # coordinates go on by themselves while W keeps the side of 0
        return tuple(
            _Mode(tuple(Fraction(slope) * c for c in p), turns, self.alpha)
            for slope in dict.fromkeys(slopes)
        )

    @cached_property
    def verdict(self) -> str:
        """What becomes of the stream, and alike of its adjoint; "" where it is not known."""
        if self.alpha <= 0:
            return ""
        if self.modes is not None:
            found = {mode.regime for mode in self.modes}
            if len(found) == 1:
                return found.pop()
            return "unstable" if "unstable" in found else "stationary"
        growth = degree_of(self.shape.activation, (ONE,), ())
        if self.alpha < 1 or growth is None or growth > 1:
            return ""
        if self.alpha > 1:
            return "identity"
        return "stationary" if all(_sign_of(_polynomial(one)) for one in self.paths) else ""

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
            yield LARGE.format(self.alpha) if self.alpha <= 0 else CURVED
        if any(mode.angle is not None for mode in self.modes or ()):
            yield BETWEEN
        if self.modes and all(mode.still or not mode.up for mode in self.modes):
            yield BELOW
        first = [mode.p[0] * (-1 if mode.turns == 2 else 1) for mode in self.modes or ()]
        straight = all(mode.turns != 1 for mode in self.modes or ())
        grows = straight and any(one > 0 for one in first) and 0 < self.alpha < 1
        if grows and self.verdict != "unstable":
            yield EARLIER

    @property
    def critical(self) -> Iterator[CriticalPower]:
        borders = {border for mode in self.modes or () for border in mode.borders}
        for of in ("outputs", "gradients"):
            for border in sorted(borders):
                yield CriticalPower(of, "oo", Exponent.number(border), self.verdict, "proved")


def _polynomial(path: Along) -> Polynomial:
    """The number in front of the matrix."""
    assert path.numbers
    return tuple(value.constant or Fraction(0) for value in path.arguments)


def _product(factors: list[Polynomial], number: Fraction) -> Polynomial:
    """The product of polynomials and a number."""
    found = np.array([number], dtype=object)
    for factor in factors:
        found = np.convolve(found, np.array(factor, dtype=object))
    return tuple(found)


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
