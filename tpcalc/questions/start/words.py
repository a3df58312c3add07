"""From sizes to words: what a parameter does, and what a network does at first order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf

from tpcalc.names import what_of
from tpcalc.program.nodes import Ref
from tpcalc.questions.start.attained import BOUND, EXACT, MEASURED, OPEN, Size
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.moves import BY_WEIGHT, LOOSE, Sizes, largest
from tpcalc.results.exponent import UNKNOWN, ZERO, Exponent
from tpcalc.results.first_order import ParameterMove, ReadPoint

RANKED = (EXACT, MEASURED, BOUND, OPEN)
ORDER_ONE = Fraction(0)
GRADIENT, START, CHANGE = "gradient", "start", "change"
REPLACED = "replaced"
UNUSED = "no output depends on it"
FROM_ZERO = "what it is multiplied by starts at 0"
CAPPED = "a norm reads what the step replaces, and bounds what is added"
UNEVEN = "behind functions of what grows entries of a gradient have several sizes"
Key = tuple[str, Ref, Ref]  # a kind, what it is of, and the step or the parameter


@dataclass(frozen=True)
class Found:
    """Sizes with what is known of them."""

    sizes: Sizes  # the bounds
    # what was asked: of the gradient of a parameter at a step, of a read point at the start, of the
    # change of a read point by a parameter
    settled: Mapping[Key, Size]
    # Asked again and again.
    _terms: dict[tuple[Ref, int], Power] = field(default_factory=dict)
    _changes: dict[tuple[Ref, Ref], Size] = field(default_factory=dict)

    def gradient(self, ref: Ref, step: int = 0) -> Size:
        """The size of the entries of a gradient."""
        power = self.sizes.moves[step][ref].gradient
        found = self.settled.get((GRADIENT, ref, step), Size(power, _plain(power)))
        doubt = self._doubt(ref, step)
        return found if found.is_zero or not doubt else Size(found.power, BOUND, doubt)

    def _doubt(self, ref: Ref, step: int) -> str:
        """Why a step is a bound, whatever is known of the gradient; empty: it is not."""
        if self.sizes.moves[step][ref].by_weight:
            return BY_WEIGHT
        if self.sizes.is_linear(ref):
            return LOOSE if self._is_loose else ""
        return UNEVEN if self.is_uneven else ""

    @cached_property
    def _is_loose(self) -> bool:
        """Whether gradients are clipped by a norm of which no more than a bound is known."""
        norms, moves = self.sizes.norms[0], self.sizes.moves[0]
        top = [ref for ref, norm in norms.items() if norm == max(norms.values())]
        found = {ref: self.settled.get((GRADIENT, ref, 0), Size(None, BOUND)) for ref in top}
        known = (own.is_known and own.power == moves[ref].gradient for ref, own in found.items())
        return self.sizes.clips and not any(known)

    @cached_property
    def is_uneven(self) -> bool:
        """Whether functions read what grows at the start, so that entries have several sizes."""
        return any(_above(self.start(ref).power) for ref in self.inner)

    def term(self, ref: Ref, step: int = 0) -> Power:
        """What a step of a parameter adds to the output."""
        if (ref, step) not in self._terms:
            power = self.gradient(ref, step).power
            if isinstance(power, Fraction):
                power = self.sizes.term(ref, step, power)
            self._terms[ref, step] = power
        return self._terms[ref, step]

    def added(self, ref: Ref, step: int = 0) -> Power:
        """The same, or what a norm leaves of it where it reads what the step replaces."""
        term, move = self.term(ref, step), self.sizes.moves[step][ref]
        if term is None or move.capped.isdisjoint(self.outputs):
            return term
        most = largest(map(move.changes.get, self.outputs))
        return most if most is None or most < term else term

    def later(self, ref: Ref) -> Power:
        """The largest of what its later steps add."""
        steps = range(1, len(self.sizes.moves))
        if self.settled.get((GRADIENT, ref, 1), Size(ORDER_ONE, BOUND)).is_zero:
            return None  # by a symmetry that stays
        return largest(self.term(ref, step) for step in steps)

    def starts_at(self, ref: Ref) -> int:
        """The step, from 1, at which a parameter first has a gradient; 0: at none."""
        if self.later(ref) is None and self.term(ref) is None:
            return 0
        steps = range(len(self.sizes.moves))
        return next(step + 1 for step in steps if self.term(ref, step) is not None)

    def start(self, ref: Ref) -> Size:
        """The size of a read point at the start."""
        power = self.sizes.sizes(0, [ref])[ref]
        return self.settled.get((START, ref, 0), Size(power, _plain(power)))

    def change(self, ref: Ref, by: Ref) -> Size:
        """The change of a read point by a first step."""
        if (ref, by) not in self._changes:
            self._changes[ref, by] = self._change(ref, by)
        return self._changes[ref, by]

    def _change(self, ref: Ref, by: Ref) -> Size:
        power = self.sizes.moves[0][by].changes.get(ref)
        if self.term(by) is None:  # its gradient is 0
            return Size(None, EXACT)
        doubt = self._doubt(by, 0)
        if power is not None and doubt and doubt != UNEVEN:
            return Size(power, BOUND, doubt)
        return self.settled.get((CHANGE, ref, by), Size(power, _plain(power)))

    def largest(self, ref: Ref) -> Size:
        """The largest change of a read point by a first step."""
        changes = (self.change(ref, by) for by in self.sizes.moves[0])
        return max(changes, key=lambda own: own.rank, default=Size(None, EXACT))

    def placed(self, ref: Ref) -> str:
        """A read point with its line."""
        line = self.sizes.steps.network.line_of(ref)
        return self.sizes.read[ref] + (f" ({line})" if line else "")

    @cached_property
    def has_lines(self) -> bool:
        """Whether lines tell read points apart."""
        return len(set(map(self.sizes.steps.network.line_of, self.sizes.read))) > 1

    @cached_property
    def inner(self) -> tuple[Ref, ...]:
        """The read points but outputs."""
        return tuple(ref for ref, name in self.sizes.read.items() if what_of(name) != "f")

    @cached_property
    def outputs(self) -> tuple[Ref, ...]:
        """The outputs."""
        return tuple(ref for ref, name in self.sizes.read.items() if what_of(name) == "f")


def _plain(power: Power) -> str:
    return EXACT if power is None else BOUND


def parameter(found: Found, ref: Ref, name: str, role: str) -> ParameterMove:
    """What the first steps of a parameter do."""
    sizes, own = found.sizes, found.gradient(ref)
    changes = {at: found.change(at, ref) for at in found.inner}
    if found.starts_at(ref) > 1:  # its first step is a later one
        first = next(step[ref] for step in sizes.moves if step[ref].changes)
        changes = {at: Size(first.changes.get(at), BOUND) for at in found.inner}
    at = max(changes, key=lambda at: changes[at].rank, default=None)
    inside = Size(None, EXACT) if at is None else changes[at]
    term, later = found.term(ref), found.later(ref)
    unit, rate = sizes.units(ref)
    added, made = found.added(ref), sizes.passes[0]
    if own.is_zero and not own.why:
        used = made.gradients.of(made.new[ref]) is not None
        own = replace(own, why=FROM_ZERO if used else UNUSED)
    if _above(term) and not _above(added):
        own = replace(own, why=CAPPED)
    grows = (_above(added) and own.is_known) or (_above(inside.power) and inside.is_known)
    return ParameterMove(
        name,
        role,
        Exponent.number(-rate),
        exponent(own.power + unit if isinstance(own.power, Fraction) else own.power),
        exponent(term),
        exponent(later),
        exponent(inside.power),
        sizes.read[at] if at is not None and not inside.is_zero else "",
        found.starts_at(ref),
        _word(term, added, later, inside.power, grows),
        own.status,
        own.why,
        line=sizes.steps.network.line_of(ref) or "",
    )


def _word(term: Power, added: Power, later: Power, inside: Power, sure: bool) -> str:
    top = largest((added, later, inside))
    if term is None and later is None:
        return "exactly 0"
    if inf in (term, inside):
        return "may explode"
    if _above(added) or _above(inside):
        return "explodes" if sure else "may explode"
    if _above(term):
        return REPLACED
    if term == ORDER_ONE:
        return "learns"
    if later == ORDER_ONE:
        return "output later"
    if _above(later):
        return "may explode later"
    if inside == ORDER_ONE:
        return "inside only"
    assert top is not None
    return "slow" if top > -1 else "frozen"


def point(found: Found, ref: Ref, names: Mapping[Ref, str]) -> ReadPoint:
    """What happens at a read point."""
    sizes, top = found.sizes, found.largest(ref)
    later = largest(step.get(ref) for step in sizes.changes[1:])
    rank = top.rank
    moved = [by for by in sizes.moves[0] if found.change(ref, by).rank == rank]
    who = () if top.is_zero else tuple(names[by] for by in moved)
    start, change = exponent(found.start(ref).power), exponent(top.power)
    return ReadPoint(found.placed(ref), start, change, exponent(later), who, top.status, top.why)


@dataclass(frozen=True, slots=True)
class Word:
    """What a network does."""

    word: str  # in a word
    status: str  # of the facts that decide it
    facts: tuple[str, ...]  # these facts


def network(found: Found, rows: Sequence[ParameterMove]) -> Word:
    """What a network does at first order, the worst first."""
    read, sizes = found.sizes.read, found.sizes
    large = {ref: own for ref in read if _above((own := found.start(ref)).power)}
    if large:
        return _said("unstable at the start", large, found, "is of size {} already")
    changes = {ref: found.largest(ref) for ref in found.inner}
    moved = {ref: own for ref, own in changes.items() if _above(own.power)}
    if moved:
        return _said("unstable", moved, found, "changes by {} in a step")
    grown = [row for row in rows if row.word != REPLACED and _above(row.output.constant)]
    if grown:
        return _grows(grown)
    steps = range(len(sizes.moves))
    if any(_above(found.added(ref, step)) for step in steps for ref in sizes.moves[step]):
        facts = ("at a later step the output may grow: " + _later(found, rows),)
        return Word("may be unstable", BOUND, facts)
    later = [ref for ref in found.inner if any(_above(step.get(ref)) for step in sizes.changes[1:])]
    if later:
        facts = (f"at a later step {read[later[0]]} may change by a power of n",)
        return Word("may be unstable", BOUND, facts)
    learning = [row for row in rows if row.output == Exponent.number(0) or row.word == REPLACED]
    late = [row for row in rows if row.later == Exponent.number(0)]
    if not learning and not late:
        # Bounds below n^0 prove it, where nothing is divided by what may be smaller than its bound.
        status = BOUND if sizes.bounds.divisors or sizes.clips else EXACT
        return Word("trivial", status, ("no step of any parameter adds Θ(1) to the output",))
    # One parameter that is known to move the output is enough.
    known = (BOUND if row.word == REPLACED else row.status for row in learning)
    status = min(known, key=RANKED.index, default=BOUND)
    moves = f"{_names(learning or late)} move the output"
    features = [ref for ref in found.inner if what_of(read[ref]) == "x"] or list(found.inner)
    now = [ref for ref in features if changes[ref].power == ORDER_ONE]
    if now:
        status = _least((status, changes[now[0]].status))
        return Word("feature learning", status, (moves, f"{read[now[0]]} changes by Θ(1)"))
    if any(step.get(ref) == ORDER_ONE for step in sizes.changes[1:] for ref in features):
        return Word("feature learning", BOUND, (moves, "features move from step 2 on"))
    return Word("kernel", status, (moves, "no step moves the features"))


def _said(word: str, sizes: Mapping[Ref, Size], found: Found, how: str) -> Word:
    ref = max(sizes, key=lambda ref: (sizes[ref].is_known, sizes[ref].rank))
    own, read = sizes[ref], found.placed(ref) if found.has_lines else found.sizes.read[ref]
    fact = f"{read} {how.format(exponent(own.power).size('n'))}"
    if own.is_known:
        return Word(word, own.status, (fact,))
    return Word("may be unstable", own.status, (f"{fact}, at most",))


def _grows(rows: Sequence[ParameterMove]) -> Word:
    top = max(row.output.constant or ORDER_ONE for row in rows)
    own = [row for row in rows if row.output.constant == top]
    sure = [row for row in own if row.status in (EXACT, MEASURED)]
    size = Exponent.number(top).size("n")
    fact = f"the step of {_names(own)} adds {size} to the output; inside nothing grows"
    return Word(
        "output grows" if sure else "may be unstable", _least(r.status for r in own), (fact,)
    )


def _later(found: Found, rows: Sequence[ParameterMove]) -> str:
    own = [row.name for row in rows if row.word == "may explode later"]
    return ", ".join(own) or "see the rows"


def _names(rows: Sequence[ParameterMove]) -> str:
    names = [row.name for row in rows]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _least(statuses: Iterable[str]) -> str:
    return max(statuses, key=RANKED.index)


def _above(power: Power) -> bool:
    return power is not None and power > ORDER_ONE


def exponent(power: Power) -> Exponent:
    """An exponent as a record."""
    if power is None:
        return ZERO
    return Exponent.number(power) if isinstance(power, Fraction) else UNKNOWN
