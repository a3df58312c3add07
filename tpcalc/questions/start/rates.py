"""The largest learning rates at which no first step grows: powers of n, parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from tpcalc.names import what_of
from tpcalc.program.nodes import Ref
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.edits import stable_edits
from tpcalc.questions.start.moves import Sizes, largest
from tpcalc.results import Exponent, StableEdit, StableRate
from tpcalc.training.training import Training

Top = tuple[Power, str]
ROUNDS = 4  # what later steps add depends on the rates, which are set by it


@dataclass(frozen=True)
class Largest:
    """What the largest rates have beside theirs, and what decides, by parameter."""

    shifts: Mapping[Ref, Fraction]
    tops: Mapping[Ref, list[Top]]


def stable_rates(
    run: Training, values: Mapping[str, Fraction], ratio: Fraction | None = None
) -> tuple[tuple[StableRate, ...], tuple[StableEdit, ...]]:
    """The largest powers of rates, the same at all steps, at which no step grows, by bounds.

    With them what to edit besides where something grows as it is. No rates where they are not found
    in a few rounds: where the start is nearly stationary.

    A change is proportional to the rate: the largest one at any read point says by which power of n
    the rate is too large, or may be raised. The first round looks at the first step, later ones at
    the later steps with the rates that were found as well. With the ratio of two widths every rate
    has its factor from one to the other.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found, _ = stable_rates(Training(MLP(2, "tanh"), "mup", optimizer="adam"), {})
        >>> print(*(f"{row.name}: n^({row.rate}) by {row.where}" for row in found))
        W1: n^(0) by h[1] W2: n^(-1) by h[2] W3: n^(-1) by the output
    """
    given = Sizes.of(run, values, capped=False)
    found = largest_shifts(given)
    if found is None:
        return (), stable_edits(given, {})
    rows = []
    for ref, node in given.steps.parameters.items():
        own, ((power, where), *rest) = -given.units(ref)[1], found.tops[ref]
        reach = own + found.shifts.get(ref, Fraction(0))
        rate = Exponent.number(reach) if isinstance(power, Fraction) else Exponent()
        role = node.family.mark.role if node.family.mark is not None else ""
        known = None if ratio is None or rate.constant is None else rate.constant
        factor = None if known is None or ratio is None else float(ratio) ** float(known)
        row = StableRate(node.name, role, rate, Exponent.number(own), where, factor)
        for less, place in rest:
            if isinstance(power, Fraction) and isinstance(less, Fraction) and less != power:
                row = replace(row, other=Exponent.number(reach + power - less), beside=place)
        rows.append(row)
    return tuple(rows), stable_edits(given, found.shifts)


def largest_shifts(given: Sizes) -> Largest | None:
    """The powers of n that the largest rates have beside theirs; None: not in a few rounds."""
    shifts, sizes = dict(given.shifts), given
    for turn in range(ROUNDS):
        if turn:
            steps = given.steps.anew()
            sizes = Sizes.of(given.run, given.values, shifts, capped=False, steps=steps)
        tops = {ref: _tops(sizes, ref, later=turn > 0) for ref in sizes.steps.parameters}
        tried = {ref: own[0][0] for ref, own in tops.items()}
        found = {ref: power for ref, power in tried.items() if isinstance(power, Fraction)}
        if turn and not any(found.values()):
            return Largest(shifts, tops)
        moved = {ref: shifts.get(ref, Fraction(0)) - power for ref, power in found.items()}
        shifts = {**shifts, **moved}
    return None


def _tops(sizes: Sizes, ref: Ref, *, later: bool) -> list[Top]:
    """The largest changes that steps of a parameter make inside and of the output, and where."""
    moves = [step[ref] for step in sizes.moves]
    first = next((move for move in moves if move.changes), moves[0])
    read = ((by, sizes.read[at]) for at, by in first.changes.items())
    started = next((k for k, move in enumerate(moves) if move.term is not None), 0)
    output = [(moves[started].term, "the output")]
    if later:
        rest = (move.term for move in moves[started + 1 :])
        output.append((largest(rest), "the output at a later step"))
    inside = [pair for pair in read if what_of(pair[1]) != "f"]
    found = [max(pairs, key=_size) for pairs in (inside, output) if pairs]
    return sorted(found, key=_size, reverse=True)


def _size(pair: tuple[Power, str]) -> Fraction | float:
    return -inf if pair[0] is None else pair[0]
