"""Rates with as few edits as there can be after which every parameter learns, by bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.names import what_of
from tpcalc.program.nodes import Ref
from tpcalc.questions.start.edits import LEARNS, Edited, edited
from tpcalc.questions.start.moves import Sizes
from tpcalc.questions.start.rates import largest_shifts
from tpcalc.questions.start.words import Found, network, parameter
from tpcalc.results import Exponent, ParameterMove
from tpcalc.results.first_order import FINE, kind_of
from tpcalc.training.training import Training

Shifts = Mapping[Ref, Fraction]


@dataclass(frozen=True)
class Fix:
    """Edits of a network, and powers of n beside its rates."""

    edited: Edited  # the network with its edits
    rates: Shifts  # the powers beside rates, by parameter
    deciding: Mapping[Ref, str]  # what decides them, where they are the largest
    word: str  # what the network does then
    rows: Mapping[Ref, ParameterMove]  # what each parameter does
    slow: int  # how many have lower rates than those at which each layer moves by itself

    @property
    def wrong(self) -> tuple[int, int, int]:
        """How far it is from a network all of which learns, and at the pace of each layer."""
        known = LEARNS[::-1].index(self.word) if self.word in LEARNS else len(LEARNS)
        return known, sum(row.word not in FINE for row in self.rows.values()), self.slow

    @property
    def lines(self) -> tuple[str, ...]:
        """What to write, all rates in a line of a script."""
        told = (
            f"{what} times {Exponent.number(power).raised('n')}"
            for what, power in self.edited.lines.items()
        )
        parameters = self.edited.sizes.steps.parameters
        moved = dict.fromkeys(kind_of(parameters[ref].name) for ref, p in self.rates.items() if p)
        return (*told, *([f"rates of {', '.join(moved)}"] if moved else ()))

    @property
    def wholes(self) -> Mapping[str, list[Ref]]:
        """Parameters as they stand in a module, each with its parts."""
        return _wholes(self.edited.sizes)

    def start(self, ref: Ref) -> Fraction:
        """The power before the start of a parameter."""
        name = self.edited.sizes.steps.parameters[ref].name
        return self.edited.starts.get(name, Fraction(0))


def fixes(run: Training, values: Mapping[str, Fraction], rates_only: bool) -> tuple[Fix, list[Fix]]:
    """A run as it is, and what is best, of the fewest lines first: nothing where all is right."""
    plain = Sizes.of(run, values)
    tries = _Tries(plain, _by_layer(plain))
    as_is = tries.judged(Edited(plain, {}, {}), {}, {})
    if not any(as_is.wrong[:2]):
        return as_is, []
    tried = sorted(tries.made(rates_only), key=lambda fix: (*fix.wrong, len(fix.lines)))
    better = [fix for fix in tried if fix.word in LEARNS and fix.wrong < as_is.wrong]
    kept = [tries.kept(fix) for fix in better if fix.wrong == better[0].wrong]
    return as_is, sorted(kept, key=lambda fix: len(fix.lines))


@dataclass(frozen=True)
class _Tries:
    """What is tried of a run."""

    plain: Sizes  # its first steps as they are
    # the powers beside rates at which each layer moves by itself, by parameter
    by_layer: Mapping[str, Fraction]

    def made(self, rates_only: bool) -> Iterator[Fix]:
        """The largest rates alone, else behind edits at rates at which layers move by themselves.

        Where these edits are not enough, behind those at the rates that were given.
        """
        plain, found = self.plain, [self.largest(Edited(self.plain, {}, {}))]
        for of in (self.by_layer, {}):
            yield from (fix for fix in found if fix is not None)
            if rates_only or any(fix is not None and not any(fix.wrong) for fix in found):
                return
            parameters = plain.steps.parameters.items()
            shifts = {ref: of.get(node.name, Fraction(0)) for ref, node in parameters}
            grown = Sizes.of(plain.run, plain.values, shifts, steps=plain.steps.anew())
            both = (edited(grown, of_starts) for of_starts in (True, False))
            found = [self.largest(one) for one in both if one is not None]
        yield from (fix for fix in found if fix is not None)

    def largest(self, one: Edited) -> Fix | None:
        """The largest rates of a network."""
        given, behind = one.sizes, _behind(one)
        steps = given.steps.anew()
        sizes = Sizes.of(given.run, given.values, given.shifts, capped=False, steps=steps)
        found = largest_shifts(sizes)
        if found is None:
            return None
        rates = {ref: power - behind[ref] for ref, power in found.shifts.items()}
        return self.judged(one, rates, {ref: tops[0][1] for ref, tops in found.tops.items()})

    def kept(self, fix: Fix) -> Fix:
        """The same with rates as they were of the parameters that are right with them."""
        given = self.judged(fix.edited, {}, {})
        rates = {ref: p for ref, p in fix.rates.items() if given.rows[ref].word not in FINE}
        found = self.judged(fix.edited, rates, fix.deciding)
        return fix if found.wrong > fix.wrong else found

    def judged(self, one: Edited, rates: Shifts, deciding: Mapping[Ref, str]) -> Fix:
        """What a network does at some rates; parts of a parameter have the smallest of theirs."""
        given, behind = one.sizes, _behind(one)
        lowest = {
            ref: min(rates.get(part, Fraction(0)) for part in parts)
            for parts in _wholes(given).values()
            for ref in parts
        }
        shifts = {ref: power + behind[ref] for ref, power in lowest.items()}
        sizes = Sizes.of(given.run, given.values, shifts, steps=given.steps.anew())
        found, nodes = Found(sizes, {}), sizes.steps.parameters
        rows = {ref: parameter(found, ref, node.name, "") for ref, node in nodes.items()}
        slow = sum(shifts[ref] < self.by_layer[node.name] for ref, node in nodes.items())
        word = network(found, list(rows.values())).word
        return Fix(one, lowest, deciding, word, rows, slow)


def _by_layer(plain: Sizes) -> dict[str, Fraction]:
    """Shifts at which a first step changes what it is added to by as much as there is.

    Of readouts, and of what starts at 0, those at which what changes least changes by order one.
    """
    given = Sizes.of(plain.run, plain.values, capped=False, steps=plain.steps.anew())
    shifts = dict[Ref, Fraction]()
    for ref, node in given.steps.parameters.items():
        move = next((step[ref] for step in given.moves if step[ref].changes), given.moves[0][ref])
        mark, sides = node.family.mark, len(node.family.width)
        start = Fraction(0) if sides == 2 else given.sizes(0, [ref])[ref]
        readout = mark is not None and mark.role == "readout"
        inner = [own for at, own in move.changes.items() if what_of(given.read[at]) != "f"]
        powers = [own for own in inner or [move.term] if isinstance(own, Fraction)]
        if isinstance(start, Fraction) and isinstance(move.step, Fraction) and not readout:
            powers = [move.step - start + Fraction(sides == 2) / 2]
        shifts[ref] = -min(powers, default=Fraction(0))
    # Equal blocks are moved together, so that one's change may be another's.
    names = {ref: node.name for ref, node in given.steps.parameters.items()}
    ranked = sorted(shifts, key=lambda ref: shifts[ref])
    most = {kind_of(names[ref]): shifts[ref] for ref in ranked}
    return {name: most[kind_of(name)] for name in names.values()}


def _wholes(sizes: Sizes) -> dict[str, list[Ref]]:
    """Parameters as they stand in a module, each with its parts."""
    found: dict[str, list[Ref]] = {}
    for ref, node in sizes.steps.parameters.items():
        mark = node.family.mark
        found.setdefault((mark.whole if mark else "") or node.name, []).append(ref)
    return found


def _behind(one: Edited) -> dict[Ref, Fraction]:
    """What a start stands for beside a rate: the weights behind its power move as before."""
    found = {}
    for ref, node in one.sizes.steps.parameters.items():
        mark = node.family.mark
        degree = one.sizes.run.optimizer_of(mark).degree if mark is not None else 0
        found[ref] = -(1 + degree) * one.starts.get(node.name, Fraction(0))
    return found
