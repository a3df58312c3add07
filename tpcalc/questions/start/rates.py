"""The largest learning rates at which no first step grows: powers of n, parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tpcalc.names import what_of
from tpcalc.program.nodes import Ref
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.moves import Sizes, largest
from tpcalc.results import Exponent, StableRate
from tpcalc.training.training import Training

ROUNDS = 4  # what later steps add depends on the rates, which are set by it


def stable_rates(
    run: Training, values: Mapping[str, Fraction], ratio: Fraction | None = None
) -> tuple[StableRate, ...]:
    """The largest powers of rates, the same at all steps, at which no step grows, by bounds.

    None where they are not found in a few rounds: where the start is nearly stationary.

    A change is proportional to the rate: the largest one at any read point says by which power of n
    the rate is too large, or may be raised. The first round looks at the first step, later ones at
    the later steps with the rates that were found as well. With the ratio of two widths every rate
    has its factor from one to the other.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = stable_rates(Training(MLP(2, "tanh"), "mup", optimizer="adam"), {})
        >>> print(*(f"{row.name}: n^({row.rate}) by {row.where}" for row in found))
        W1: n^(0) by h[1] W2: n^(-1) by h[2] W3: n^(-1) by the output
    """
    shifts: dict[Ref, Fraction] = {}
    for turn in range(ROUNDS):
        sizes = Sizes.of(run, values, shifts)
        tops = {ref: _top(sizes, ref, later=turn > 0) for ref in sizes.steps.parameters}
        found = {ref: power for ref, (power, _) in tops.items() if isinstance(power, Fraction)}
        if turn and not any(found.values()):
            break
        shifts = {ref: shifts.get(ref, Fraction(0)) - power for ref, power in found.items()}
    else:
        return ()
    rows = []
    for ref, node in sizes.steps.parameters.items():
        given = -sizes.units(ref)[1]
        power, where = tops[ref]
        shift = shifts.get(ref, Fraction(0))
        rate = Exponent.number(given + shift) if isinstance(power, Fraction) else Exponent()
        role = node.family.mark.role if node.family.mark is not None else ""
        known = None if ratio is None or rate.constant is None else rate.constant
        factor = None if known is None or ratio is None else float(ratio) ** float(known)
        rows.append(StableRate(node.name, role, rate, Exponent.number(given), where, factor))
    return tuple(rows)


def _top(sizes: Sizes, ref: Ref, *, later: bool) -> tuple[Power, str]:
    """The largest change that steps of a parameter make, and where."""
    moves = [step[ref] for step in sizes.moves]
    first = next((move for move in moves if move.changes), moves[0])
    places: dict[str, Power] = {
        sizes.read[at]: by for at, by in first.changes.items() if what_of(sizes.read[at]) != "f"
    }
    started = next((k for k, move in enumerate(moves) if move.term is not None), 0)
    places["the output"] = moves[started].term
    if later:
        rest = (move.term for move in moves[started + 1 :])
        places["the output at a later step"] = largest(rest)
    top = largest(places.values())
    return top, next((place for place, by in places.items() if by == top), "")
