"""Powers of n under the constraint that what is read stays bounded: outputs and preactivations.

Rates at which every update contributes at order one may let the output explode. Then, step after
step and from the first layer on, each rate is lowered until nothing grows, with the updates of the
layers behind it left out. How fast something grows is a piecewise affine function of one power, so
its zero is found exactly: at a sample point the affine piece is derived with the region where it
holds, and the zero of a piece counts if it lies at the closure of its region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Region
from tpcalc.program.program import restricted
from tpcalc.questions.rates.unknowns import Rates, Run, Unknown
from tpcalc.questions.verdict.ledger import Answer, Ledger
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import grows, power

Formula = Callable[[Fraction], tuple[Ex, Region]]
OFF = Fraction(64)  # the power of a rate at which an update does nothing that is followed
MOST = 16  # pieces of a piecewise affine function that are looked at


@dataclass(frozen=True, slots=True)
class Lowered:
    """A power that a constraint decides in place of its own update."""

    unknown: Unknown  # the power
    alone: Ex  # where its update would contribute at order one
    grows: str  # the name of what would grow there
    like: Ex  # its power of n
    contributes: Ex  # what the update contributes instead

    def words(self, steps: Sequence[int]) -> str:
        """What binds, in words."""
        layer = self.unknown.words.partition(" at step")[0]
        when = f"step {steps[0]}" if len(steps) == 1 else f"steps {', '.join(map(str, steps))}"
        rate = f"{self.unknown.letter.partition('(')[0]} = {self.alone}"
        return (
            f"{layer} at {when}: its update contributes {power(self.contributes)}; at {rate}, "
            f"where it would contribute order one, {self.grows} would grow like "
            f"{power(self.like)} at the next step"
        )


@dataclass
class Bounded:
    """Powers at which nothing that is read grows."""

    rates: Rates  # the powers
    lowered: list[Lowered] = field(default_factory=list)  # those that a constraint decides
    start: str = ""  # what grows at the start already, whatever the rates; "" where nothing does

    @property
    def sizes(self) -> dict[str, Fraction]:
        """The powers of n of updates that are not of order one, by symbol."""
        return {low.unknown.symbol: low.contributes.constant or Fraction(0) for low in self.lowered}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        alike: dict[Lowered, list[int]] = {}
        for low in self.lowered:
            unknown = replace(low.unknown, step=0, symbol="", output="")
            name = low.grows if low.grows[0] != "f" else "the output"
            alike.setdefault(replace(low, unknown=unknown, grows=name), []).append(low.unknown.step)
        start = f"whatever the rates, {self.start} at the start" if self.start else ""
        return tuple(filter(None, (start, *(low.words(steps) for low, steps in alike.items()))))


def bounded(run: Run, watched: Probe, values: Mapping[str, Ex]) -> Bounded:
    """Solve for all powers so that every update contributes as much as it can."""
    fixed = dict(values)
    found = Bounded(run.derive(watched.program, {}, fixed))
    start = _growth(watched, 0, found.rates.found.solved)
    if start is not None:
        found.start = f"{start.name} grows like {start.order.words}"
        return found
    for step in range(1, run.steps + 1):
        if _growth(watched, step, found.rates.found.solved) is None:
            continue
        every = [u for u in found.rates.unknowns if u.symbol not in run.idle]
        own = [u for u in every if u.kind != "a" and u.step == step - 1]
        fixed |= dict.fromkeys(run.idle, Ex())
        fixed |= {
            u.symbol: found.rates.found.solved[u.symbol]
            for u in every
            if u.kind == "a" or u.step < step - 1
        }
        found.lowered += _lower(run, watched, own, fixed) if own else []
        found.rates = run.derive(watched.program, {}, fixed)
    return found


def _lower(
    run: Run, watched: Probe, unknowns: list[Unknown], fixed: dict[str, Ex]
) -> list[Lowered]:
    """Fix the powers of one step, from the first layer on; returns those that are lowered."""
    step = unknowns[0].step + 1
    values = {**fixed, **{u.symbol: as_ex(OFF) for u in unknowns}}
    lowered = []
    for unknown in unknowns:
        del values[unknown.symbol]
        here = alone = _alone(run, watched, unknown, values)
        growing: list[Answer] = []
        while (answer := _growth(watched, step, {**values, unknown.symbol: here})) is not None:
            growing.append(answer)
            formula = _at_rate(watched, answer.name, unknown.symbol, values)
            lower = _calm(formula, unknown.symbol, here.at({}), _value(answer.order.n))
            if lower is None:
                raise _unbounded(unknown, answer.name)
            here = lower
        values[unknown.symbol] = fixed[unknown.symbol] = here
        if growing:
            first = growing[0]
            like = first.order.n or as_ex(OFF)
            lowered.append(Lowered(unknown, alone, first.name, like, alone - here))
    return lowered


def _alone(run: Run, watched: Probe, unknown: Unknown, values: Mapping[str, Ex]) -> Ex:
    """The power at which the update contributes at order one."""
    program = restricted(watched.program, (unknown.output,))
    return run.solved(program, (unknown,), {}, values).solved[unknown.symbol]


def _growth(watched: Probe, step: int, values: Mapping[str, Ex]) -> Answer | None:
    """What grows at a step, or is not known not to: the fastest."""
    names = watched.levels(step)
    ledger = Ledger(restricted(watched.program, names), values=values)
    if ledger.ask(names, grows).holds is False:
        return None
    every = [Answer(True, name, order) for name, order in ledger.orders.items()]
    return max(every, key=lambda each: _value(each.order.n))


def _value(n: Ex | None) -> Fraction:
    return _finite(n).at({})


def _calm(formula: Formula, symbol: str, above: Fraction, growth: Fraction) -> Ex | None:
    """The least power above one at which a quantity that falls with it no longer grows."""
    low, point = above, above + growth / 2
    for _ in range(MOST):
        size, region = formula(point)
        here = size.at({symbol: point})
        if here <= 0:
            point = (low + point) / 2
            continue
        if region.zero:  # on a wall, where pieces meet
            point += (point - low) / 7
            continue
        slope = size.at({symbol: Fraction(1)}) - size.at({symbol: Fraction(0)})
        if slope >= 0:
            return None
        zero, end = point - here / slope, _end(region, symbol, point)
        if end is None or zero <= end:
            return as_ex(zero)
        low, point = end, (end + zero) / 2
    return None


def _at_rate(watched: Probe, name: str, symbol: str, values: Mapping[str, Ex]) -> Formula:
    program = restricted(watched.program, (name,))

    def formula(point: Fraction) -> tuple[Ex, Region]:
        ledger = Ledger(program, {symbol: point}, values=values)
        ledger.ask((name,), grows)
        return _finite(ledger.orders[name].n), ledger.region

    return formula


def _end(region: Region, symbol: str, point: Fraction) -> Fraction | None:
    """Where a region of one symbol ends to the right of a point; None: nowhere."""
    ends = []
    for condition in region.positive:
        start = condition.at({symbol: Fraction(0)})
        slope = condition.at({symbol: Fraction(1)}) - start
        if slope < 0:
            ends.append(-start / slope)
    return min(ends, default=None)


def _unbounded(unknown: Unknown, name: str) -> ScaleError:
    return ScaleError(
        f"no power {unknown.letter} is known at which {name} stays bounded.",
        where=unknown.words,
        hint="Ask for fewer steps.",
    )


def with_readout(run: Run, watched: Probe) -> dict[str, Ex]:
    """The power of the readout: the smallest at which outputs stay bounded as features move.

    At first it is that of an output of order one at the start.
    """
    readout = run.readout
    names = [u.output for u in run.unknowns() if u.kind == "a"]
    program = restricted(watched.program, (*names, readout.output))
    multipliers = [u for u in run.unknowns() if u.kind == "a"]
    here = run.solved(program, (*multipliers, readout), {}, {}).solved[readout.symbol]
    for step in range(1, run.steps + 1):
        while (answer := _growth(watched, step, _rates(run, watched, here))) is not None:
            formula = _at_readout(run, watched, answer.name)
            larger = _calm(formula, readout.symbol, here.at({}), _value(answer.order.n))
            if larger is None:
                raise _unbounded(readout, answer.name)
            here = larger
    return {readout.symbol: here}


def _rates(run: Run, watched: Probe, readout: Ex) -> Mapping[str, Ex]:
    return run.derive(watched.program, {}, {run.readout.symbol: readout}).found.solved


def _at_readout(run: Run, watched: Probe, name: str) -> Formula:
    """All rates follow the readout: each update goes on to contribute at order one."""

    def formula(point: Fraction) -> tuple[Ex, Region]:
        found = run.derive(watched.program, {run.readout.symbol: point}).found
        size = found.scale(name).power
        return _finite(None if size is None else as_ex(size)), found.region

    return formula


def _finite(n: Ex | None) -> Ex:
    """An exponent; where no bound is known, one beyond all."""
    return as_ex(OFF) if n is None else n
