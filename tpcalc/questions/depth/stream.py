"""``Stream``: how the parts of the stream grow with the depth, pass by pass: a fixed point.

A pass is opened with what earlier passes pushed the stream by, a generic block is run, and what it
adds is summed over all blocks (``sums``); that opens the passes again, until nothing changes.

A term that the block's own matrices make random, with mean 0 given the stream, adds up like a
random walk: L^(1/2) of them; what is left of it when they are averaged out points the same way in
every block: L of them. Which is which is read off the signs that a term feels. Of matrices that are
correlated along the depth random terms add up to other powers (``correlation``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tpcalc.errors import LimitError, ScaleError
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Chamber, Power, Region, joined
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.expr import Add, add, walk
from tpcalc.limit.context import Context, Record
from tpcalc.limit.graph import Expect, LRef, function_of, start_of
from tpcalc.limit.scales import Scales, scales
from tpcalc.limit.series import Rest
from tpcalc.names import stepped
from tpcalc.passes.block import CARRY, SEED
from tpcalc.program.base import lincomb_of
from tpcalc.questions.depth.correlation import Correlation, below
from tpcalc.questions.depth.generic import (
    BACKWARD,
    FORWARD,
    NAMES,
    Clear,
    Direction,
    Generic,
    Pass,
    Push,
    Pushes,
    R,
)

HALF, ONE = Fraction(1, 2), Fraction(1)
WAYS = {CARRY: FORWARD, SEED: BACKWARD}
NOTHING = 2**20  # of what nothing is known: no power of L that is met is as large


@dataclass(frozen=True)
class Sum:
    """What all blocks together add to the stream in a pass."""

    noise: Ex | None  # the power e of L^(-e) of the random walk; None: there is none
    drift: Mapping[Direction, Ex]  # the same of what adds up, by direction
    bound: Ex | None  # a power of L^(-e) of all that was not followed; None: nothing is left
    kinked: bool  # whether something is left on a vanishing share of the coordinates, at kinks
    # the power of L^(-e) of what is of size n^(-1/2) at a finite width, where it is larger than the
    # rest for many blocks: limits of width and depth do not commute
    aside: Ex | None = None
    logs: bool = False  # whether a logarithm stands beside a power
    # the power of 1/L in front of a block, besides what is there, at which the largest part is of
    # order one; None: there is no part
    shift: Ex | None = None

    @property
    def all(self) -> Iterator[tuple[str, Ex]]:
        """Every part with its power."""
        if self.noise is not None:
            yield "noise", self.noise
        for direction, power in self.drift.items():
            yield direction.words, power


Sums = Mapping[Pass, Sum]


def in_depth(power: Power) -> tuple[Fraction, Ex]:
    """A power of n as it is written in a generic block: that of n, and the power of L in it."""
    found = as_ex(power)
    width = Fraction(round(2 * found.put(dict.fromkeys(found.symbols, Ex())).at({})), 2)
    return width, (found - width) / R


def sums(
    scales: Scales, passes: tuple[Pass, ...], chamber: Chamber, laws: Mapping[str, Ex | None]
) -> Sums:
    """What the blocks add to the stream in each pass."""
    return {one: _sum(scales, one, chamber, laws) for one in passes}


def _sum(scales: Scales, own: Pass, chamber: Chamber, laws: Mapping[str, Ex | None]) -> Sum:
    context = scales.context
    correlation = Correlation(context, laws, chamber)
    aside: Ex | None = None
    series = scales.series(stepped(*own))
    noise: Ex | None = None
    less: Ex | None = None  # minus the shift
    drift: dict[Direction, Ex] = {}
    stream = _bits(context)
    every = stream[FORWARD] | stream[BACKWARD]
    for power, node in series.terms:
        width, depth = in_depth(power)
        if width < 0:
            continue
        if width > 0:
            raise ScaleError(
                f"what a block adds to {stepped(NAMES[own[0]], own[1])} grows like n^({width}): "
                "there is no limit in the width, which comes first.",
                where="the repeated block",
                hint="Change the powers of n; tp.solve of a number of blocks finds them.",
            )
        depends = context.parity.depends[node]
        if depends & ~every:
            walk = correlation.walk(node)
            noise = _least(chamber, noise, -depth - walk)
            less = _least(chamber, less, -depth - walk)
            if chamber.sign(HALF - walk) > 0:  # then sums of pairs may add up to more
                # What cancels along the depth does not where the stream has changed meanwhile.
                rough = ONE + correlation.roughness(node)
                pairs = -rough * depth - HALF
                noise = _least(chamber, noise, pairs)
                less = _least(chamber, less, pairs / rough)
            fluctuating = correlation.aside(node)
            if fluctuating is not None and chamber.sign(fluctuating - walk) > 0:
                aside = _least(chamber, aside, -depth - fluctuating)
        for odd in _odd(context, node, stream):
            if not odd and not depends & every and _is_centred(context, node):
                continue
            direction = Direction(odd, _passes(context, node) if depends & every else ())
            drift[direction] = _least(chamber, drift.get(direction), -depth - ONE)
            less = _least(chamber, less, -depth - ONE)
    rest = series.rest
    # What kinks do on a share of the coordinates that vanishes has a peak; averaged it is o().
    jumps = rest is not None and (rest.peak is not None or (rest.strict and own[1] > 0))
    kinked = series.soft is not None or jumps
    bound = None if jumps else _bound(rest)
    shift = None if less is None else -less
    return Sum(noise, drift, bound, kinked, aside, correlation.logs, shift)


def _least(chamber: Chamber, known: Ex | None, power: Ex) -> Ex:
    return power if known is None or chamber.sign(known - power) > 0 else known


def _bound(rest: Rest | None) -> Ex | None:
    """What is left of the series of a block, if all blocks add it up; None: nothing."""
    if rest is None:
        return None
    width, depth = (ONE, Ex()) if rest.power is None else in_depth(rest.power)
    if width > 0:
        return as_ex(-NOTHING)
    return -depth - ONE if width >= 0 else None


def _bits(context: Context) -> dict[str, int]:
    """The directions of what the stream carries, of forward and of backward passes."""
    found = {FORWARD: 0, BACKWARD: 0}
    for ref, node in enumerate(context.nodes):
        start = start_of(node)
        if start is not None and start.group in WAYS:
            found[WAYS[start.group]] |= context.parity.depends[ref]
    return found


def _odd(context: Context, node: LRef, stream: Mapping[str, int]) -> list[str]:
    """With which vectors of the stream a term changes its sign, its own matrices averaged out."""
    forward, backward = stream[FORWARD], stream[BACKWARD]
    lattice = context.parity.lattice
    found = lattice.inside(context.parity.coset(node), forward | backward)
    if found is None:
        return []
    first, *basis = ((_is_odd(one & forward), _is_odd(one & backward)) for one in found)
    signs = {first}
    for step in basis:
        signs |= {(one[0] ^ step[0], one[1] ^ step[1]) for one in signs}
    return [FORWARD * one[0] + BACKWARD * one[1] for one in sorted(signs)]


def _is_odd(bits: int) -> bool:
    return bits.bit_count() % 2 == 1


def _passes(context: Context, node: LRef) -> tuple[Pass, ...]:
    """The passes whose stream a term is made of."""
    found = set[Pass]()
    for ref in below(context, node):
        start = start_of(context.nodes[ref])
        if start is not None and start.group in WAYS:
            found.add((WAYS[start.group], start.index))
    return tuple(sorted(found, key=lambda one: (one[1], one[0] == BACKWARD)))


def _is_centred(context: Context, node: LRef) -> bool:
    """Whether a vector is something less its own average, by its form."""
    terms = lincomb_of(context.nodes[node])
    if terms is not None:
        return all(_is_centred(context, vector) for vector in terms.vectors)
    found = function_of(context.nodes[node])
    if found is None or not isinstance(found.fn.expr, Add):
        return False
    parts = [part for part in found.fn.expr.terms if any(isinstance(x, Var) for x in walk(part))]
    rest = [part for part in found.fn.expr.terms if part not in parts]
    fn, vectors, _ = Fn(add(parts), found.fn.vectors, found.fn.scalars).compact()
    args = tuple(found.vectors[place] for place in vectors)
    own = function_of(context.nodes[args[0]]) if fn.expr == Var(0) else None
    average = Expect(fn, args) if own is None else Expect(own.fn, own.vectors, own.scalars)
    return context.known.get(average) in [
        scalar for place, scalar in enumerate(found.scalars) if add(rest) == -1 * Par(place)
    ]


ROUNDS, PATIENT = 12, 4  # after so many pushes that come and go stay: sizes are bounds there
FAR = 8  # powers of 1/L that are followed at the start, where there is little to expand
HALF, ONE = Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class Stream:
    """The parts of the stream."""

    generic: Generic  # the generic block
    sums: Sums  # what all blocks add to the stream in each pass, up to the first that explodes
    found: Scales  # the derivation of the last round
    exploded: Pass | None  # the first pass in which a part grows
    chamber: Chamber  # what was compared of the parts, besides what their derivation compared

    @property
    def region(self) -> Region:
        """Where all comparisons have the same answers."""
        return joined((self.chamber.region, self.found.region))

    def lead(self, name: str) -> tuple[Ex | None, bool]:
        """The growth exponent in L of something in the generic block, and whether it is a bound.

        None: it vanishes identically, or faster than what was followed.
        """
        series = self.found.series(name)
        if series.terms:
            width, depth = in_depth(series.terms[0][0])
            return (depth if width >= 0 else None), False
        rest = series.rest
        if rest is None or rest.power is None:
            return None, rest is not None
        width, depth = in_depth(rest.power)
        return (depth if width >= 0 else None), True

    @cached_property
    def forward(self) -> tuple[Pass, ...]:
        """The forward passes that were followed."""
        return tuple(one for one in self.sums if one[0] == FORWARD)


def stream(generic: Generic, at: Mapping[str, Fraction]) -> Stream:
    """The parts of the stream of a network in training."""
    pushes: Pushes = {}
    depth = R if generic.steps else FAR * R
    for round_ in range(ROUNDS):
        found = scales(generic.program(pushes), at=at, depth=depth, record=Record(clear=Clear()))
        chamber = Chamber(at)
        now = sums(found, generic.passes, chamber, generic.laws)
        grown = next((one for one in generic.passes if _grows(now[one], chamber)), None)
        followed = generic.passes[: generic.passes.index(grown)] if grown else generic.passes
        entering = {one: _entering(now[one], chamber, pushes.get(one, {})) for one in followed}
        if round_ >= PATIENT:
            entering = {
                one: _largest(chamber, pushes.get(one, {}), entering[one]) for one in followed
            }
        if entering == {one: pushes.get(one, {}) for one in followed}:
            # At the start passes do not feel whether those before explode.
            kept = [one for one in generic.passes if one in (*followed, grown) or not one[1]]
            return Stream(generic, {one: now[one] for one in kept}, found, grown, chamber)
        pushes = entering
    raise LimitError(
        f"what blocks add to the stream does not settle in {ROUNDS} rounds.",
        where="the repeated block",
        hint="Ask fewer steps, or write the network with a number of blocks.",
    )


def _largest(
    chamber: Chamber, before: Mapping[Direction, Push], now: Mapping[Direction, Push]
) -> dict[Direction, Push]:
    """Of each direction the larger push of two rounds, as what is not followed may hide it."""
    found = {**now}
    for direction, push in before.items():
        other = now.get(direction)
        if other is None or chamber.sign(other.power - push.power) > 0:
            found[direction] = push
    return found


def _grows(total: Sum, chamber: Chamber) -> bool:
    return any(chamber.sign(power) < 0 for _, power in total.all)


def _entering(
    total: Sum, chamber: Chamber, before: Mapping[Direction, Push]
) -> dict[Direction, Push]:
    """What the blocks before a generic one push the stream by, as far as it can come back.

    A push that vanishes is followed only where it carries what this block itself added before. On
    a wall one power has several forms: that of the round before is kept.
    """
    found = dict[Direction, Push]()
    for direction, power in total.drift.items():
        known = before.get(direction)
        if known is not None and chamber.at(known.power - power) == 0:
            found[direction] = known
        elif chamber.sign(power - 1) <= 0:
            found[direction] = Push(power, chamber.sign(power) > 0)
    return found
