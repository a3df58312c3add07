"""``Stream``: how the parts of the stream grow with the depth, pass by pass: a fixed point.

A pass is opened with what earlier passes pushed the stream by, a generic block is run, and what it
adds is summed over all blocks; that opens the passes again, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tpcalc.errors import LimitError
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber, Region, joined
from tpcalc.limit.claims import Record
from tpcalc.limit.scales import Scales, scales
from tpcalc.questions.depth.closing import Sum, Sums, in_depth, sums
from tpcalc.questions.depth.generic import FORWARD, Clear, Direction, Generic, Pass, Push, Pushes, R

ROUNDS, PATIENT = 12, 4  # after so many pushes that come and go stay: sizes are bounds there
FAR = 8  # powers of 1/L that are followed at the start, where there is little to expand
HALF, ONE = Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class Stream:
    """The parts of the stream.

    Args:
        generic: The generic block.
        sums: What all blocks add to the stream in each pass, up to the first that explodes.
        found: The derivation of the last round.
        exploded: The first pass in which a part grows.
        chamber: What was compared of the parts, besides what their derivation compared.
    """

    generic: Generic
    sums: Sums
    found: Scales
    exploded: Pass | None
    chamber: Chamber

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
